"""The part of an engine that is needed to settle an episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.matchers import CarefulMatcher
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.part import EnginePart
from cascade_memory.engine.parts import Parts


class Settles(Protocol):
    """The part of an engine that is needed to settle an episode."""

    parts: Parts
    matcher: CarefulMatcher
    judges: tuple[EnginePart, ...]  # parts of capabilities that add to what a judgement stores

    @property
    def learning(self) -> str:
        """When outcomes are learned from; "off" if never."""
        ...

    def namespace_id(self, namespace: str) -> int:
        """Return the id of a namespace."""
        ...

    def namespace_state(self, namespace: str) -> NamespaceState:
        """Return the state of a namespace."""
        ...

    def note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that no exception reports to the caller."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text."""
        ...

"""What the verbs hand to the engine, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cascade_memory.domain.showing import Showing
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.validation import MetadataValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A recall, or with ``search`` a search, that somebody asks for."""

    query: str
    namespace: str
    k: int
    where: object | None
    episode_id: str | None
    thread_id: str | None
    metadata: Mapping[str, MetadataValue]
    showing: Showing
    search: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How somebody says that an episode ended."""

    episode_id: str
    value: float
    source: str
    solution: Solution | None  # None: the one on record
    metadata: dict[str, MetadataValue]
    overwrite: bool
    confirms: str | None  # the fingerprint of the episode as they saw it

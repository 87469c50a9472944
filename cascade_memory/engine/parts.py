"""The parts that a memory is assembled from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cascade_memory.domain.failure_warning import WarningOptions
from cascade_memory.domain.trust import Vigilance
from cascade_memory.engine.door import Door
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.case_index import CaseIndex, CaseMirror
from cascade_memory.ports.encoders import Embedder, SolutionMatcher
from cascade_memory.ports.lock import Alone, Lease, Owning
from cascade_memory.ports.policy import Policy
from cascade_memory.ports.snapshots import Snapshots

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger


class MirrorBuild(Protocol):
    """A mirror that another process is building from the ledger."""

    def poll(self) -> int | None:
        """Return the exit status of the build, or None while it runs."""
        ...

    def finish(self) -> tuple[int, str]:
        """Put the finished mirror in place; return the greatest case key in it, and the mirror's seal.

        The seal is a text by which ``CaseMirror.is_sealed`` tells later whether the mirror was changed.
        """
        ...

    def abandon(self) -> None:
        """Stop the build and remove its files."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the engine works with. ``mirror`` and ``lock`` are None for a memory in RAM."""

    place: str = "in RAM: gone when the process ends"  # for people
    ledger: Ledger
    embedder: Embedder
    ranker: Ranker
    shadow: Ranker | None  # makes choices that are recorded but never shown
    fallback: Policy
    matcher: SolutionMatcher
    hindsight: bool
    vigilance: Vigilance = field(default_factory=Vigilance)
    warnings: WarningOptions | None = None  # None: no action is checked, and no failure is kept
    embeds_at_once: bool = False  # the embedder is our own and no model, so it cannot hang, and needs no thread
    ranks_at_once: bool = False  # the same of the ranker and the shadow
    door: Door = field(default_factory=Door)  # through which all texts come in
    index: Callable[[int, str], CaseIndex]  # (dimension, namespace)
    snapshots: Snapshots
    mirror: CaseMirror | None = None
    lock: Owning | None = None  # who feeds the mirror
    fence: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext  # refuses to note what another one fed
    job: Callable[[str, int], Lease] = Alone.of  # (name of the job, namespace)
    shared: Callable[[], Mapping[str, str]] | None = None  # which worker holds which lease, if workers share a database
    rereads: float = 0.0  # seconds for which a recall may go on without reading what other processes wrote
    build: Callable[[], MirrorBuild] | None = None
    # Deletes files that a purge must not leave; describes what it could not delete.
    sweep: Callable[[], tuple[str, ...]] = tuple

    @property
    def rest_at_once(self) -> bool:
        """True if nothing but the embedder can hang in a recall.

        If the embedder may hang and workers share a database, this is False, since the database server may hang as well.
        """
        return self.ranks_at_once and (self.embeds_at_once or self.shared is None)

"""The source of truth. If a method returns, its change is stored; if it raises, nothing was changed.

``Ledger`` has what every recall and every reward needs, and the log that all projections follow. Its other capabilities are
grouped into parts, one for each concern; the protocol of each part is in its own file beside this one.

Three terms occur in all parts. A *key* is the number of a row; keys ascend with age and are never reused. An *id* is a text
that the library generates, and that an export keeps. A *durable* write survives a power cut; every other acknowledged write
survives at least the death of the process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Change, RecallRecord, Settled, Settlement, Unsettled
from cascade_memory.ports.ledger_actions import Actions
from cascade_memory.ports.ledger_actors import Actors
from cascade_memory.ports.ledger_archive import Archive
from cascade_memory.ports.ledger_cases import Cases
from cascade_memory.ports.ledger_episodes import Episodes
from cascade_memory.ports.ledger_expiry import Expiry
from cascade_memory.ports.ledger_facts import Facts
from cascade_memory.ports.ledger_forgetting import Forgetting
from cascade_memory.ports.ledger_insight import Insight
from cascade_memory.ports.ledger_lessons import Lessons
from cascade_memory.ports.ledger_maintenance import Maintenance
from cascade_memory.ports.ledger_provenance import Provenance
from cascade_memory.ports.ledger_viewing import Viewing
from cascade_memory.ports.ledger_warnings import Warnings
from cascade_memory.ports.pair_encoder import Candidates


class Ledger(Protocol):
    """Records recalls, settles episodes, and lets others read its log by ``tail``. Safe for many threads and processes."""

    path: Path | None  # of its file, if it has one

    # -- the parts ---------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Small facts about the folder, by name."""
        ...

    @property
    def cases(self) -> Cases:
        """The cases: adding, reading, counting and evicting them."""
        ...

    @property
    def episodes(self) -> Episodes:
        """Episodes, how their runs ended, and closing them without a label."""
        ...

    @property
    def lessons(self) -> Lessons:
        """What can be learned from outcomes."""
        ...

    @property
    def forgetting(self) -> Forgetting:
        """Deleting data on request."""
        ...

    @property
    def expiry(self) -> Expiry:
        """Setting aside cases that were not verified for long, and bringing them back."""
        ...

    @property
    def insight(self) -> Insight:
        """Statistics about the content, and the outcomes."""
        ...

    @property
    def viewing(self) -> Viewing:
        """What people look at, a page at a time."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """Checking a ledger for damage, and repairing it."""
        ...

    @property
    def actions(self) -> Actions:
        """What people do to cases and episodes, and the audit log."""
        ...

    @property
    def provenance(self) -> Provenance:
        """Who wrote what, and when."""
        ...

    @property
    def actors(self) -> Actors:
        """Who made the cases and reported the outcomes."""
        ...

    @property
    def warnings(self) -> Warnings:
        """The steps at which failed runs went wrong, and what came of the warnings about them."""
        ...

    @property
    def archive(self) -> Archive:
        """Export and import as plain records, and complete copies."""
        ...

    # -- the ledger as a whole ---------------------------------------------------------------------------------------

    def bind(self, embedder: str) -> None:
        """Declare the embedder of the folder's vectors: its identity and its dimension, as JSON.

        This text is the fact ``embedder`` in ``facts``. The first write of a recall, an outcome or a case stores that fact if
        it is missing. If the fact names another embedder, every write raises ``EncoderMismatch`` and stores nothing.
        """
        ...

    def check(self, *, log: bool = True) -> None:
        """Raise if a file that is written to is no longer the one in the folder: somebody moved, deleted or replaced it.

        A write now would be lost. With ``log``, the write-ahead log is checked as well. It takes microseconds.
        """
        ...

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written now; None if writing is possible."""
        ...

    def close(self) -> None:
        """Release the ledger. Every later call raises ``StoreError``; closing again does nothing."""
        ...

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the id of a namespace, which never changes (the first one is 1); create a missing one, or return None."""
        ...

    def namespaces(self) -> dict[str, int]:
        """Return the id of each namespace, by the namespace's name."""
        ...

    # -- the log -----------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """Return the number of the last log line; 0 if there is none."""
        ...

    def tail(self, after: int, limit: int = 10_000, namespace: int | None = None) -> list[Change]:
        """Return the changes after a log line, oldest first: those of all namespaces, or of one.

        A reader that goes on after the last change it has read misses no acknowledged change.
        """
        ...

    # -- recall ------------------------------------------------------------------------------------------------------

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return up to ``limit`` cases with keys after ``after`` and up to ``until``, with their vectors, in order of age.

        Unusable cases are left out. The result is empty only if no cases follow.
        """
        ...

    def newest(self, namespace: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the newest cases, ascending."""
        ...

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases whose metadata match a filter, ascending; raise ``InvalidInput`` if it is invalid."""
        ...

    def trusted(self, namespace: int, min_trust: int) -> NDArray[np.int64]:
        """Return the keys of all cases that may be shown and whose trust is at least ``min_trust``, ascending."""
        ...

    def candidates(
        self, keys: NDArray[np.int64], verified_after: float = 0.0, min_trust: int = 0
    ) -> dict[int, tuple[str, str, int, str, str | None]]:
        """Return (text, beginning of the solution, group, id, author) by key, for the cases that a recall may choose from.

        Cases whose solutions agree have the same group. Left out are deleted and hidden cases, cases that are trusted less than
        ``min_trust``, and cases last verified before ``verified_after``, unless they are pinned. The author of a person's case
        is None, because no actor's record matters for it.
        """
        ...

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall, and open its episode if the episode is new; return the recall's key.

        Raises ``UnknownEpisode`` if the episode belongs to another namespace, or if data that the recall may contain was
        forgotten after the log line ``unless_forgotten_since``; ``EpisodeClosed`` if the episode takes no more recalls.
        """
        ...

    # -- reward ------------------------------------------------------------------------------------------------------

    def unsettled(self, episode_id: str, namespace: int | None) -> Unsettled:
        """Return what is needed to settle an episode; raise ``UnknownEpisode`` if this namespace has no such episode."""
        ...

    def settle(self, new: Settlement) -> Settled:
        """Record an outcome, its labels and its case, durably: all or nothing. Recording the same value again changes nothing.

        Raises ``AlreadyRewarded`` if the outcome contradicts one that it may not replace, ``EpisodeClosed`` if the episode was
        closed without an outcome, ``UnknownEpisode`` if the episode was deleted, ``ContentChanged`` if the episode differs from
        what was confirmed, and ``QuotaExceeded`` if too many agents' reports already wait for confirmation.
        """
        ...

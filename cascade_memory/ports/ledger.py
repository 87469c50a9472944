"""The system of record. Whatever returns from here has happened; whatever raises has not.

``Ledger`` is what every recall and every reward needs, and the log that everybody follows. What else can be asked of a ledger
it hands out in parts, one for each concern, each a protocol in a file of its own beside this one.

Three words run through all of them. A *key* is the number of a row, which ascends with age and is never given twice; an *id*
is a text that the library makes, and that lives on in an export. A *durable* write survives a power cut; every other write
that was acknowledged survives at least the death of the process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Change, RecallRecord, Settled, Settlement, Unsettled
from cascade_memory.ports.ledger_archive import Archive
from cascade_memory.ports.ledger_cases import Cases
from cascade_memory.ports.ledger_episodes import Episodes
from cascade_memory.ports.ledger_expiry import Expiry
from cascade_memory.ports.ledger_facts import Facts
from cascade_memory.ports.ledger_forgetting import Forgetting
from cascade_memory.ports.ledger_insight import Insight
from cascade_memory.ports.ledger_lessons import Lessons
from cascade_memory.ports.ledger_maintenance import Maintenance
from cascade_memory.ports.pair_encoder import Candidates


class Ledger(Protocol):
    """Record, settle once, and let others follow by ``tail``. Any number of threads and processes may use it at once."""

    path: Path | None  # of its file, where it has one

    # -- the parts ---------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """Small facts about the folder, by name."""
        ...

    @property
    def cases(self) -> Cases:
        """The cases themselves: put in, read whole, counted, and taken out to make room."""
        ...

    @property
    def episodes(self) -> Episodes:
        """Episodes, how their runs ended, and those that close without a label."""
        ...

    @property
    def lessons(self) -> Lessons:
        """What outcomes teach."""
        ...

    @property
    def forgetting(self) -> Forgetting:
        """Deleting what somebody wants gone."""
        ...

    @property
    def expiry(self) -> Expiry:
        """Setting aside what was not verified for long, and bringing it back."""
        ...

    @property
    def insight(self) -> Insight:
        """What a ledger holds, and what came of it."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """Whether a ledger is sound, and putting it right."""
        ...

    @property
    def archive(self) -> Archive:
        """Everything as plain records and back, and a copy of it all."""
        ...

    # -- the ledger as a whole ---------------------------------------------------------------------------------------

    def bind(self, embedder: str) -> None:
        """Expect from now on that the folder's vectors are of this embedder, which the fact ``embedder`` names.

        The first write of a recall, an outcome or a case notes that fact where it is missing. Where it names another one,
        every write raises ``EncoderMismatch`` and stores nothing.
        """
        ...

    def check(self, *, log: bool = True) -> None:
        """Raise if what is written now would not be in the folder (``log``: nor in its write-ahead log); microseconds."""
        ...

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written at the moment; None where it can."""
        ...

    def close(self) -> None:
        """Let go of it. Whatever is asked afterwards raises ``StoreError``; closing again does nothing."""
        ...

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the number of a namespace, which it keeps for ever: 1 for the first one. None where there is none."""
        ...

    def namespaces(self) -> dict[str, int]:
        """Return the numbers of all namespaces, by name."""
        ...

    # -- the log -----------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """Return the number of the last line of the log; 0 where there is none."""
        ...

    def tail(self, after: int, limit: int = 10_000) -> list[Change]:
        """Return what happened after a line of the log, oldest first: whoever follows misses nothing that was acknowledged."""
        ...

    # -- recall ------------------------------------------------------------------------------------------------------

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return up to ``limit`` cases with keys after ``after`` and up to ``until``, with their vectors, in order of age.

        A case that cannot be used is left out. There are none only where none follow.
        """
        ...

    def newest(self, namespace: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the newest cases, ascending."""
        ...

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases whose metadata match a filter, ascending. ``InvalidInput`` where it is none."""
        ...

    def candidates(self, keys: NDArray[np.int64], verified_after: float = 0.0) -> dict[int, tuple[str, str, int, str]]:
        """Return (text, head of the solution, group, id) by key, of cases that were verified since then.

        Cases whose solutions agree are one group. Those that are gone are missing.
        """
        ...

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall, opening its episode if that is new; return its key.

        ``UnknownEpisode`` if the episode is another namespace's, or if something that may have been part of the recall was
        forgotten after this line of the log; ``EpisodeClosed`` if the episode takes none any more.
        """
        ...

    # -- reward ------------------------------------------------------------------------------------------------------

    def unsettled(self, episode_id: str, namespace: int | None) -> Unsettled:
        """Return what must be known of an episode to settle it; ``UnknownEpisode`` where this namespace has none such."""
        ...

    def settle(self, new: Settlement) -> Settled:
        """Record an outcome, its labels and its case, durably: all at once, or nothing. The same value again changes nothing.

        ``AlreadyRewarded`` where it contradicts the outcome that stands and may not replace it, ``EpisodeClosed`` where the
        episode was closed without one, ``UnknownEpisode`` where it is gone, ``ContentChanged`` where it is not what was
        confirmed, ``QuotaExceeded`` where it waits for somebody's word and too much does already.
        """
        ...

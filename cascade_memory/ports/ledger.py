"""The system of record. Whatever returns from here has happened; whatever raises has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case, ExpiredCase
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import CaseRecords, Change, Expiring, NewCase, RecallRecord, Settled, Settlement, Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ports.judged import Judged
from cascade_memory.ports.pair_encoder import Candidates
from cascade_memory.ports.policy import Feedback


class Ledger(Protocol):
    """Record, settle once, tell history, and let others follow by ``tail``."""

    path: Path | None

    def bind(self, embedder: str) -> None:
        """Refuse every write from now on unless the folder's vectors are of this embedder; the first one notes it."""
        ...

    def check(self, *, log: bool = True) -> None:
        """Raise if what is written now would not be in the folder (``log``: nor in its write-ahead log); microseconds."""
        ...

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written at the moment; None where it can."""
        ...

    def meta(self, key: str) -> str | None:
        """Return a fact about the folder."""
        ...

    def metas(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin so."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact about the folder, durably."""
        ...

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the number of a namespace."""
        ...

    def namespaces(self) -> dict[str, int]:
        """Return the numbers of all namespaces."""
        ...

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record that something was done: for people and for replays."""
        ...

    def tail(self, after: int, limit: int = 10_000) -> list[Change]:
        """Return what happened after a line of the log, oldest first."""
        ...

    def head(self) -> int:
        """Return the number of the last line of the log."""
        ...

    def recalls(self, namespace: int) -> int:
        """Return the number of recalls."""
        ...

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall; survives a killed process. ``UnknownEpisode`` if something was forgotten after a line of the log."""
        ...

    def candidates(self, keys: NDArray[np.int64], verified_after: float = 0.0) -> dict[int, tuple[str, str, int, str]]:
        """Return (text, head of the solution, group, id) by key, of cases that were verified since then."""
        ...

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases that match a filter, ascending."""
        ...

    def newest(self, namespace: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the newest cases, ascending."""
        ...

    def unsettled(self, episode_id: str, namespace: int | None) -> Unsettled:
        """Return what must be known of an episode to settle it."""
        ...

    def settle(self, settlement: Settlement) -> Settled:
        """Record an outcome, its labels and its case: all at once; survives a power cut."""
        ...

    def close_episodes(self, ids: Sequence[str], status: str, *, reported: bool = False) -> list[str]:
        """Close episodes without a label; return those that were open, or ``reported`` by their agents and nobody else."""
        ...

    def check_room(self, namespace: int, size: int) -> None:
        """Refuse one more report of an agent where too much waits for somebody's word."""
        ...

    def episodes(
        self, namespace: int | None, *, status: str | None = None, before: float | None = None, source: str | None = None
    ) -> list[Episode]:
        """Return episodes, oldest first: by namespace, status, time of opening, and who judged them."""
        ...

    def episode(self, episode_id: str) -> Episode | None:
        """Return one episode."""
        ...

    def latest_episode(self, namespace: int, thread: str) -> Episode | None:
        """Return the newest episode of a thread."""
        ...

    def finish(self, episode_id: str, namespace: int, status: str, solution: Solution | None) -> bool:
        """Note how the run of an open episode ended; return whether it was open."""
        ...

    def feedback(self, outcome: int, shadow: str | None = None) -> list[Feedback]:
        """Return what an outcome teaches: the live policy, or the shadow policy of this name."""
        ...

    def asked(self, recall: int) -> tuple[str, NDArray[np.int64]] | None:
        """Return the query of a recall and the keys of its candidates; None when it is gone."""
        ...

    def last_outcome(self) -> int:
        """Return the key of the newest outcome there ever was."""
        ...

    def history(self, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None) -> list[Feedback]:
        """Return what the last outcomes of a namespace (or of all) up to one of them teach, oldest first."""
        ...

    def votes(self, namespace: int, limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Return (case keys, similarity, agreement) of the recalls of the last outcomes in which something was verified."""
        ...

    def compact(self, namespace: int, keep: int, limit: int) -> int:
        """Shrink recalls beyond the last ``keep`` outcomes; return how many episodes were looked at, at most ``limit``."""
        ...

    def took_back(self, namespace: int, since: int) -> bool:
        """Say whether anything of a namespace was taken back, forgotten or purged after a line of the log."""
        ...

    def recalls_of(self, episode_key: int) -> list[int]:
        """Return the keys of an episode's recalls."""
        ...

    def add(self, new: Sequence[NewCase]) -> list[str]:
        """Store cases, all or none; survives a power cut."""
        ...

    def case_count(self, namespace: int | None, until: int = 2**62) -> int:
        """Return the number of cases, up to a key."""
        ...

    def behind(self, key: int, seq: int) -> int:
        """Return how much a copy lacks that has the cases up to a key and has read the log up to a line."""
        ...

    def case_records(self, namespace: int) -> CaseRecords:
        """Return novelty and use of all cases of a namespace."""
        ...

    def evict(self, keys: Sequence[int]) -> None:
        """Remove cases to make room; their episodes stay."""
        ...

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set some of the cases aside that were not verified for so long, delete those that were set aside for long.

        Both by running time, which no wall clock can push. Without ``ttl`` only the latter.
        """
        ...

    def expired(self, namespace: int) -> list[ExpiredCase]:
        """Return the cases that were set aside, oldest first."""
        ...

    def revive(self, namespace: int, ids: Sequence[str] | None) -> list[str]:
        """Bring back cases that were set aside, or all of them; return their ids."""
        ...

    def expired_keys(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of cases that were set aside by id."""
        ...

    def cases(self, keys: Sequence[int]) -> dict[int, Case]:
        """Return whole cases by key."""
        ...

    def cases_by_id(self, ids: Sequence[str], namespace: int) -> list[Case]:
        """Return whole cases by id."""
        ...

    def cases_after(self, key: int, limit: int) -> list[tuple[Case, NDArray[np.float32]]]:
        """Return cases of all namespaces with their vectors, in order of age."""
        ...

    def keys_of(self, ids: Sequence[str]) -> list[int]:
        """Return the keys of cases by id."""
        ...

    def odd_vectors(self, dimension: int) -> int:
        """Return how many vectors have another length than those of the embedder."""
        ...

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return cases with their vectors, in order of age."""
        ...

    def solutions(self, groups: Sequence[int]) -> dict[int, Solution]:
        """Return one stored solution for each group."""
        ...

    def told_apart(self, groups: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return (digest of the key, kind) of one stored solution for each group, without reading its text."""
        ...

    def forget(self, namespace: int, keys: Sequence[int]) -> dict[str, int]:
        """Delete cases and the episodes that made them."""
        ...

    def forget_where(self, namespace: int, where: object) -> dict[str, int]:
        """Delete what was said with such metadata; a case goes when nobody else vouches for it."""
        ...

    def scrub(self, namespace: int) -> tuple[int, bool]:
        """Leave no byte of what was deleted, nor of searches, in the file; return the log's line and whether it is so."""
        ...

    def forget_episode(self, episode_id: str) -> dict[str, int]:
        """Delete an episode, and the case it made unless somebody else vouches for it."""
        ...

    def forget_namespace(self, namespace: int) -> dict[str, int]:
        """Delete everything of a namespace."""
        ...

    def counts(self, namespace: int | None) -> dict[str, float]:
        """Return how many of everything there are."""
        ...

    def rewards(self, namespace: int | None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) of every standing outcome, oldest first."""
        ...

    def judged(self, namespace: int | None) -> Iterator[Judged]:
        """Yield the settled episodes of a namespace, or of all, oldest first, with how their first choice was made."""
        ...

    def arms(self, namespace: int | None) -> dict[str, int]:
        """Return how many episodes each arm has, of those in which chance decided."""
        ...

    def dump(self) -> Iterator[dict[str, Any]]:
        """Yield everything as plain records."""
        ...

    def load(self, records: Iterable[dict[str, Any]], dimension: int, key: Callable[[Solution], str]) -> int:
        """Take records that are not there yet: all, or none. ``key`` is equal for solutions that agree."""
        ...

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state into a new file, check it, and return what it holds."""
        ...

    def integrity(self) -> str:
        """Return ``ok`` or what is wrong with the file."""
        ...

    def orphans(self) -> dict[str, int]:
        """Return how many rows of which table belong to nothing."""
        ...

    def remove_orphans(self) -> None:
        """Delete rows that belong to nothing."""
        ...

    def faults(self, limit: int) -> list[str]:
        """Return up to ``limit`` rows that cannot be used, in words."""
        ...

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Put rows right that cannot be used, or remove them; say what was done."""
        ...

    def ahead_of(self, now: float) -> int:
        """Return how many times lie in the future."""
        ...

    def bring_back(self, now: float) -> None:
        """Set times that lie in the future to the present."""
        ...

    def open_before(self, moment: float) -> int:
        """Return how many open episodes began earlier."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...

"""The ledger as the rest of the library sees it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case, ExpiredCase
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import (
    FORGOTTEN,
    PURGED,
    WITHDRAWN,
    CaseRecords,
    Change,
    Expiring,
    NewCase,
    RecallRecord,
    Settled,
    Settlement,
    Unsettled,
)
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ledger import cases, compaction, copying, episodes, expiry, history, outcomes, recalls, transfer, vectors
from cascade_memory.ledger.connections import Connections
from cascade_memory.ledger.forgetting import Forgetting
from cascade_memory.ledger.looking import Looking
from cascade_memory.ports.pair_encoder import Candidates
from cascade_memory.ports.policy import Feedback


class SQLiteLedger(Looking, Forgetting):
    """Everything that was acknowledged, in one SQLite file (or in RAM, with ``path=None``).

    A recall survives a killed process; an outcome, its case, and everything else also a power cut.

    >>> ledger = SQLiteLedger(None)
    >>> ledger.namespace("default", create=True)
    1
    >>> ledger.counts(1)["cases"]
    0
    """

    def __init__(self, path: Path | None) -> None:
        path = None if path is None else Path(os.path.abspath(path))  # the working directory may change
        self.path = path
        self.connections = Connections(path)

    def bind(self, embedder: str) -> None:
        """Refuse every write from now on unless the folder's vectors are of this embedder; the first one notes it."""
        with self.connections.read() as connection:
            self.connections.belonging.bind(connection, embedder)

    def check(self, *, log: bool = True) -> None:
        """Raise if what is written now would not be in the folder: its ledger was replaced, deleted or embedded anew."""
        self.connections.belonging.check(log=log)

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written at the moment; None where it can."""
        return self.connections.read_only

    # -- small facts -------------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """Return a fact about the folder."""
        with self.connections.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def metas(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin so."""
        with self.connections.read() as connection:
            rows = connection.execute("SELECT key FROM meta WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)).fetchall()
        return [str(key) for (key,) in rows]

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact about the folder, durably."""
        with self.connections.write(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the number of a namespace."""
        with self.connections.read() as connection:
            row = connection.execute("SELECT id FROM namespace WHERE name = ?", (name,)).fetchone()
        if row is None and create:
            with self.connections.write(durable=False) as connection:
                connection.execute("INSERT OR IGNORE INTO namespace (name) VALUES (?)", (name,))
                row = connection.execute("SELECT id FROM namespace WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    def namespaces(self) -> dict[str, int]:
        """Return the numbers of all namespaces."""
        with self.connections.read() as connection:
            return dict(connection.execute("SELECT name, id FROM namespace ORDER BY name").fetchall())

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record that something was done (training, forgetting): for people and for replays, never read by recall."""
        with self.connections.write(durable=False) as connection:
            connection.execute(
                "INSERT INTO event (at, namespace, kind, payload) VALUES (?, ?, ?, ?)",
                (time.time(), namespace, kind, json.dumps(payload)),
            )

    # -- the log -----------------------------------------------------------------------------------------------------

    def tail(self, after: int, limit: int = 10_000) -> list[Change]:
        """Return what happened after a line of the log, oldest first."""
        with self.connections.read() as connection:
            rows = connection.execute(
                "SELECT seq, namespace, kind, ref, id FROM change WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
            ).fetchall()
        return [Change(*row) for row in rows]

    def head(self) -> int:
        """Return the number of the last line of the log."""
        with self.connections.read() as connection:
            return int(connection.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()[0])

    # -- recall ------------------------------------------------------------------------------------------------------

    def recalls(self, namespace: int) -> int:
        """Return the number of recalls."""
        with self.connections.read() as connection:
            return int(connection.execute("SELECT count(*) FROM recall WHERE namespace = ?", (namespace,)).fetchone()[0])

    def record(self, entry: RecallRecord, *, unless_forgotten_since: int | None = None) -> int:
        """Store a recall; refuse it if something of its namespace was forgotten after a line of the log."""
        with self.connections.write(durable=False) as connection:
            self.connections.belonging.claim(connection)
            return recalls.record(connection, entry, unless_forgotten_since)

    def candidates(self, keys: NDArray[np.int64], verified_after: float = 0.0) -> dict[int, tuple[str, str, int, str]]:
        """Return (text, head of the solution, group, id) by key, of cases that were verified since then."""
        with self.connections.read() as connection:
            return cases.candidates(connection, keys, verified_after)

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases that match a filter."""
        with self.connections.read() as connection:
            return cases.filtered(connection, namespace, where)

    def newest(self, namespace: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the newest cases, ascending."""
        with self.connections.read() as connection:
            query = "SELECT key FROM cases WHERE namespace = ? ORDER BY key DESC LIMIT ?"
            keys = [key for (key,) in connection.execute(query, (namespace, limit))]
        return np.array(keys[::-1], np.int64)

    # -- reward ------------------------------------------------------------------------------------------------------

    def unsettled(self, episode_id: str, namespace: int | None) -> Unsettled:
        """Return what must be known of an episode to settle it."""
        with self.connections.read() as connection:
            return outcomes.find(connection, episode_id, namespace)

    def settle(self, settlement: Settlement) -> Settled:
        """Record an outcome, its labels and its case: all at once, durably."""
        with self.connections.write(durable=True) as connection:
            self.connections.belonging.claim(connection)
            return outcomes.settle(connection, settlement)

    def close_episodes(self, ids: Sequence[str], status: str, *, reported: bool = False) -> list[str]:
        """Close episodes without a label; return those that were open, or ``reported`` by their agents and nobody else."""
        with self.connections.write(durable=True) as connection:
            return outcomes.close(connection, list(ids), status, time.time(), reported=reported)

    def check_room(self, namespace: int, size: int) -> None:
        """Refuse one more report of an agent where too much waits for somebody's word."""
        with self.connections.read() as connection:
            outcomes.check_room(connection, namespace, 1, size)

    def episodes(
        self, namespace: int | None, *, status: str | None = None, before: float | None = None, source: str | None = None
    ) -> list[Episode]:
        """Return episodes, oldest first: by namespace, status, time of opening, and who judged them."""
        with self.connections.read() as connection:
            return episodes.listed(connection, namespace, status, before, source)

    def episode(self, episode_id: str) -> Episode | None:
        """Return one episode."""
        with self.connections.read() as connection:
            return episodes.one(connection, episode_id)

    def latest_episode(self, namespace: int, thread: str) -> Episode | None:
        """Return the newest episode of a thread."""
        with self.connections.read() as connection:
            return episodes.latest(connection, namespace, thread)

    def finish(self, episode_id: str, namespace: int, status: str, solution: Solution | None) -> bool:
        """Note how the run of an open episode ended; return whether it was open. Survives a killed process."""
        with self.connections.write(durable=False) as connection:
            return episodes.finish(connection, episode_id, namespace, status, solution, time.time())

    # -- learning ----------------------------------------------------------------------------------------------------

    def feedback(self, outcome: int, shadow: str | None = None) -> list[Feedback]:
        """Return what an outcome teaches: one entry per recall of its episode. Empty if it was withdrawn or forgotten."""
        with self.connections.read() as connection:
            return history.of_outcome(connection, outcome, shadow)

    def last_outcome(self) -> int:
        """Return the key of the newest outcome there ever was: one that was forgotten counts."""
        ever = "SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'outcome'"
        query = f"SELECT coalesce(max(key), 0), ({ever}) FROM outcome"
        with self.connections.read() as connection:
            return max(int(key or 0) for key in connection.execute(query).fetchone())

    def history(self, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None) -> list[Feedback]:
        """Return what the last ``limit`` outcomes of a namespace, or of all, teach, oldest first."""
        with self.connections.read() as connection:
            return history.recent(connection, namespace, limit, until, shadow)

    def votes(self, namespace: int, limit: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
        """Return (case keys, similarity, agreement) of the recalls of the last outcomes in which something was verified."""
        with self.connections.read() as connection:
            return history.votes(connection, namespace, limit)

    def compact(self, namespace: int, keep: int, limit: int) -> int:
        """Shrink recalls that nobody learns from any more, a few at a time; return how many episodes were looked at."""
        with self.connections.write(durable=False) as connection:
            return compaction.compact(connection, namespace, keep, limit)

    def took_back(self, namespace: int, since: int) -> bool:
        """Say whether anything of a namespace was taken back, forgotten or purged after a line of the log."""
        kinds = (WITHDRAWN, FORGOTTEN, PURGED)
        query = "SELECT 1 FROM change WHERE seq > ? AND namespace = ? AND kind IN (?, ?, ?) LIMIT 1"
        with self.connections.read() as connection:
            return connection.execute(query, (since, namespace, *kinds)).fetchone() is not None

    def asked(self, recall: int) -> tuple[str, NDArray[np.int64]] | None:
        """Return the query of a recall and the keys of its candidates."""
        with self.connections.read() as connection:
            return recalls.asked(connection, recall)

    def recalls_of(self, episode_key: int) -> list[int]:
        """Return the keys of an episode's recalls."""
        with self.connections.read() as connection:
            rows = connection.execute("SELECT key FROM recall WHERE episode = ?", (episode_key,)).fetchall()
        return [row[0] for row in rows]

    # -- cases -------------------------------------------------------------------------------------------------------

    def add(self, new: Sequence[NewCase]) -> list[str]:
        """Store cases, all or none, durably; return their ids (the known one's for a repeated pair)."""
        with self.connections.write(durable=True) as connection:
            self.connections.belonging.claim(connection)
            return [cases.insert(connection, case)[1] for case in new]

    def case_count(self, namespace: int | None, until: int = 2**62) -> int:
        """Return the number of cases, up to a key."""
        with self.connections.read() as connection:
            where, values = ("", ()) if namespace is None else ("namespace = ? AND", (namespace,))
            query = f"SELECT count(*) FROM cases WHERE {where} key <= ?"
            return int(connection.execute(query, (*values, until)).fetchone()[0])

    def behind(self, key: int, seq: int) -> int:
        """Return how much a copy lacks that has the cases up to a key and has read the log up to a line."""
        with self.connections.read() as connection:
            return cases.behind(connection, key, seq)

    def case_records(self, namespace: int) -> CaseRecords:
        """Return novelty and use of all cases of a namespace."""
        with self.connections.read() as connection:
            return cases.records(connection, namespace)

    def evict(self, keys: Sequence[int]) -> None:
        """Remove cases to make room; their episodes stay."""
        with self.connections.write(durable=False) as connection:
            cases.evict(connection, keys)

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set some of the cases aside that were not verified for so long, delete those that were set aside for long."""
        with self.connections.write(durable=False) as connection:
            return expiry.expire(connection, namespace, ttl, time.time())

    def expired(self, namespace: int) -> list[ExpiredCase]:
        """Return the cases that were set aside, oldest first."""
        with self.connections.read() as connection:
            return expiry.listed(connection, namespace)

    def revive(self, namespace: int, ids: Sequence[str] | None) -> list[str]:
        """Bring back cases that were set aside, or all of them, durably; return their ids."""
        with self.connections.write(durable=True) as connection:
            return expiry.bring_back(connection, namespace, ids, time.time())

    def expired_keys(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of cases that were set aside by id."""
        with self.connections.read() as connection:
            return expiry.keys_of(connection, namespace, ids)

    def cases(self, keys: Sequence[int]) -> dict[int, Case]:
        """Return whole cases by key."""
        with self.connections.read() as connection:
            return cases.by_keys(connection, keys)

    def cases_by_id(self, ids: Sequence[str], namespace: int) -> list[Case]:
        """Return whole cases by id."""
        with self.connections.read() as connection:
            return cases.by_ids(connection, ids, namespace)

    def cases_after(self, key: int, limit: int) -> list[tuple[Case, NDArray[np.float32]]]:
        """Return cases of all namespaces with their vectors, in order of age."""
        with self.connections.read() as connection:
            return cases.whole(connection, key, limit)

    def keys_of(self, ids: Sequence[str]) -> list[int]:
        """Return the keys of cases by id."""
        with self.connections.read() as connection:
            return cases.keys_of(connection, ids)

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return cases with their vectors, in order of age."""
        with self.connections.read() as connection:
            return cases.scan(connection, namespace, after, limit, until)

    def query_texts(self) -> list[str]:
        """Return the distinct queries of which there is a vector."""
        with self.connections.read() as connection:
            return vectors.texts(connection)

    def replace_vectors(self, embed: vectors.Embed, embedder: str) -> int:
        """Give every query its new vector and note the embedder: all, or none. Return the number of cases.

        What others wrote meanwhile is embedded here, while they wait; they are refused from then on.
        """
        with self.connections.write(durable=True) as connection:
            return vectors.replace(connection, embed, embedder)

    def odd_vectors(self, dimension: int) -> int:
        """Return how many vectors have another length than those of the embedder."""
        with self.connections.read() as connection:
            return vectors.odd(connection, dimension)

    def solutions(self, groups: Sequence[int]) -> dict[int, Solution]:
        """Return one stored solution for each group."""
        with self.connections.read() as connection:
            return cases.solutions(connection, groups)

    def told_apart(self, groups: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return (digest of the key, kind) of one stored solution for each group, without reading its text."""
        with self.connections.read() as connection:
            return cases.told_apart(connection, groups)

    def scrub(self, namespace: int) -> tuple[int, bool]:
        """Leave no byte of what was deleted in the file; return the line of the log about it, and whether the file is clean.

        It is not while another process reads an older state of the write-ahead log.

        The namespace's log of searches goes as well: their queries belong to no episode by which they could be found.
        """
        with self.connections.write(durable=True) as connection:
            connection.execute("DELETE FROM recall WHERE namespace = ? AND kind = 'search'", (namespace,))
            cases.note(connection, namespace, PURGED, 0)
        clean = self.connections.vacuum()
        return self.head(), clean

    def forget_namespace(self, namespace: int) -> dict[str, int]:
        """Delete everything of a namespace."""
        with self.connections.write(durable=True) as connection:
            return episodes.forget_namespace(connection, namespace)

    # -- moving -----------------------------------------------------------------------------------------------------

    def dump(self) -> Iterator[dict[str, Any]]:
        """Yield everything as plain records, from one consistent state."""
        with self.connections.read() as connection:
            connection.execute("BEGIN")
            try:
                yield from transfer.dump(connection)
            finally:
                connection.execute("COMMIT")

    def load(self, records: Iterable[dict[str, Any]], dimension: int, key: Callable[[Solution], str]) -> int:
        """Take records that are not there yet: all, or (on an error) none. ``key`` is equal for solutions that agree."""
        with self.connections.write(durable=True) as connection:
            taken = transfer.load(connection, records, dimension, key)
            if taken:
                self.connections.belonging.claim(connection)
            return taken

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state into a new file, check it, and return what it holds."""
        with self.connections.read() as connection:
            return copying.copy_into(connection, target)

    def close(self) -> None:
        """Close the file."""
        self.connections.close()

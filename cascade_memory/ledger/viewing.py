"""The part of the ledger that people look at, a page at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import StoredRecall
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.episodes import read_episode
from cascade_memory.ledger.filters import compile_where
from cascade_memory.ledger.rows import (
    KEYS,
    fetched,
    fetched_for,
    picked,
    solution_if_readable,
    unpack_floats,
    unpack_ints,
    usable,
)

if TYPE_CHECKING:
    from cascade_memory.domain.viewed import PastOutcome

# How each order is computed. The last is how new a case was times how often it was right: what eviction goes by as well.
_ORDERS = {
    "newest": "cases.key",
    "oldest": "-cases.key",
    "shown": "cases.shown",
    "successes": "cases.succeeded",
    "use": "cases.novelty * (cases.succeeded + 0.5) / (cases.shown + 1.0)",
}
_STATES = {"pinned": "cases.pinned = 1", "hidden": "cases.hidden <> 0"}
_BEGINNING = 2_000  # characters of a task
_OUTCOMES = """SELECT episode.id, outcome.value, outcome.source, outcome.at, outcome.solution_kind, outcome.solution,
    outcome.learns, outcome.withdrawn_at, (SELECT cases.id FROM cases WHERE cases.key = outcome.cases_key),
    outcome.actor, outcome.channel
  FROM outcome JOIN episode ON episode.key = outcome.episode"""


class SQLViewing:
    """Reads pages of cases, episodes and outcomes for people; it writes nothing."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def cases(
        self,
        namespace: int,
        limit: int,
        *,
        sort: str = "newest",
        after: tuple[float, int] | None = None,
        words: Sequence[str] = (),
        source: str | None = None,
        where: object | None = None,
        state: str | None = None,
    ) -> list[tuple[float, int]]:
        """Return (sort value, key) of the next cases after the pair ``after``; a case must contain each of the words.

        Words are looked for in tasks and in the beginnings of solutions, without regard to the case of ASCII letters. With a
        ``state``, "pinned" or "hidden", only such cases are returned.
        """
        if sort not in _ORDERS:
            raise InvalidInput(f"sort must be one of {', '.join(_ORDERS)}, not {sort!r}")
        by_age = sort in ("newest", "oldest")
        value = _ORDERS[sort]
        conditions, values = ["cases.namespace = ?"], list[Any]([namespace])
        if after is not None and by_age:
            conditions.append(f"cases.key {'<' if sort == 'newest' else '>'} ?")
            values.append(after[1])
        elif after is not None:
            conditions.append(f"({value} < ? OR ({value} = ? AND cases.key < ?))")
            values += [after[0], after[0], after[1]]
        if source is not None:
            conditions.append("cases.source = ?")
            values.append(source)
        if state is not None:
            conditions.append(_STATES[state])
        for word in words:
            conditions.append("(cases.query LIKE ? ESCAPE '!' OR cases.head LIKE ? ESCAPE '!')")
            values += 2 * [_pattern(word)]
        if where is not None:
            matching, some = compile_where(where, namespace)
            conditions.append(f"cases.key IN (SELECT key FROM ({matching}) AS matching)")
            values += some
        order = f"cases.key {'ASC' if sort == 'oldest' else 'DESC'}" if by_age else f"{value} DESC, cases.key DESC"
        query = f"SELECT {value}, cases.key FROM cases WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT ?"
        with self._connections.read() as connection:
            return [(float(found), int(key)) for found, key in connection.execute(query, (*values, limit)).fetchall()]

    def use(self, namespace: int) -> NDArray[np.float64]:
        """Return a row (key, novelty, shown, succeeded) for each case, hidden ones as well.

        Novelty is 0 if all neighbours of a case had its solution when it was made, and 1 if none had, or if this was not
        checked. ``shown`` and ``succeeded`` say how often the case was shown, and how often the task then succeeded.
        """
        with self._connections.read() as connection:
            rows = connection.execute(
                "SELECT key, novelty, shown, succeeded FROM cases WHERE namespace = ?", (namespace,)
            ).fetchall()
        return np.array(rows, np.float64).reshape(-1, 4)  # keys stay below 2^53, so floats hold them exactly

    def named(self, keys: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return (id, beginning of the task) of cases by key, hidden ones as well; deleted cases are missing."""
        query = f"SELECT key, id, substr(query, 1, {_BEGINNING}) FROM cases WHERE key IN ({KEYS})"
        with self._connections.read() as connection:
            rows = fetched_for(connection, query, keys)
        return {key: (str(case_id), str(text)) for key, case_id, text in rows}

    def vector(self, key: int) -> NDArray[np.float32] | None:
        """Return the vector of a case; None if there is none that can be read."""
        with self._connections.read() as connection:
            row = connection.execute("SELECT vector FROM case_vector WHERE key = ?", (key,)).fetchone()
        return None if row is None else next(iter(usable([row], lambda one: unpack_floats(one[0]))), None)

    def recalls(self, episode_id: str) -> list[StoredRecall]:
        """Return the recalls of an episode, oldest first."""
        with self._connections.read() as connection:
            rows = fetched(
                connection,
                """SELECT recall.at, coalesce(recall.query, episode.query), k, policy, policy_version, recall.shown, baseline,
                     forgot, candidates, chosen, numbers, features
                   FROM recall JOIN episode ON episode.key = recall.episode
                   WHERE episode.id = ? AND recall.kind = 'recall' ORDER BY recall.key""",
                (episode_id,),
            )
        return usable(rows, _recall)

    def outcomes(self, episode_id: str) -> list[PastOutcome]:
        """Return all outcomes of an episode, oldest first, also those that were replaced."""
        return self._outcomes("episode.id = ?", episode_id)

    def verifications(self, key: int) -> list[PastOutcome]:
        """Return the outcomes that ended in this case, oldest first, also those that were replaced."""
        return self._outcomes("outcome.cases_key = ?", key)

    def _outcomes(self, condition: str, value: str | int) -> list[PastOutcome]:
        with self._connections.read() as connection:
            rows = fetched(connection, f"{_OUTCOMES} WHERE {condition} ORDER BY outcome.key", (value,))
        return usable(rows, _outcome)

    def shown_in(self, namespace: int, key: int, limit: int, *, before: int | None = None) -> tuple[list[Episode], int | None]:
        """Search at most ``limit`` recalls, newest first, for those that showed a case.

        Return their episodes, and the ``before`` of the next call; None if all recalls were searched.
        """
        query = """SELECT recall.key, candidates, chosen, (SELECT id FROM episode WHERE episode.key = recall.episode)
                   FROM recall WHERE namespace = ? AND recall.key < ? AND recall.shown = 1 AND kind = 'recall'
                   ORDER BY recall.key DESC LIMIT ?"""
        with self._connections.read() as connection:
            rows = connection.execute(query, (namespace, 2**62 if before is None else before, limit)).fetchall()
            ids = dict.fromkeys(row[3] for row in rows if row[3] is not None and _shows(row[1:3], key))
            found = [one for episode in ids if (one := read_episode(connection, episode)) is not None]
        return found, rows[-1][0] if len(rows) == limit else None


def _shows(row: tuple[bytes, bytes], key: int) -> bool:
    return any(key in shown for shown in usable([row], picked))


def _pattern(word: str) -> str:
    """Return the pattern for LIKE that finds a word anywhere."""
    for special in "!%_":
        word = word.replace(special, f"!{special}")
    return f"%{word}%"


def _recall(row: Sequence[Any]) -> StoredRecall:
    at, query, k, policy, version, shown, baseline, forgot, candidates, chosen, numbers, features = row
    n = len(candidates) // 8
    return StoredRecall(
        at=at,
        query=query,
        k=k,
        policy=policy,
        version=version,
        shown=bool(shown),
        baseline=math.nan if baseline is None else baseline,
        forgot=bool(forgot),
        candidates=unpack_ints(candidates),
        chosen=unpack_ints(chosen),
        numbers=unpack_floats(numbers).reshape(n, NUMBERS) if numbers else np.full((n, NUMBERS), np.nan, np.float32),
        features=unpack_floats(features).reshape(n, -1) if n and features else np.zeros((n, 0), np.float32),
    )


def _outcome(row: Sequence[Any]) -> PastOutcome:
    from cascade_memory.domain.viewed import PastOutcome

    return PastOutcome(
        episode_id=row[0],
        value=row[1],
        source=row[2],
        at=row[3],
        solution=solution_if_readable(row[4], row[5]),
        learns=bool(row[6]),
        withdrawn_at=row[7],
        case_id=row[8],
        actor=row[9],
        channel=row[10],
    )

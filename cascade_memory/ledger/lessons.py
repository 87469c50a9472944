"""The part of the ledger from which policies learn, and the compaction of recalls that are no longer learned from."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import PURGED, TOOK_BACK, Column
from cascade_memory.domain.trust import weight_of
from cascade_memory.ledger.compaction import COMPACTED, NUMBERS, compacted_until, shrink
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.rows import (
    NORM_TOLERANCE,
    SET_FACT,
    float_arrays,
    int_arrays,
    pack_floats,
    unpack_floats,
    unpack_ints,
    usable,
)
from cascade_memory.ports.policy import Feedback, Slate

# The vector of a recall's query, if that is also its episode's query.
_VECTOR = "(SELECT vector FROM episode_vector WHERE episode_vector.key = recall.episode AND recall.query IS NULL)"
_ROW = """recall.key, recall.candidates, recall.groups, recall.chosen, recall.numbers, recall.{features}, recall.{context},
  recall.shown, recall.agreement, {vector}, {encoder}"""
FEEDBACK_COLUMNS = _ROW.format(features="features", context="context", vector=_VECTOR, encoder="recall.encoder")
_SHADOW_COLUMNS = _ROW.format(features="shadow_numbers", context="shadow_context", vector=_VECTOR, encoder="''")
# A solution and its task, as far as their words are compared; as bytes, since somebody may have edited them.
_TEXTS = "CAST(cases.head AS BLOB), CAST(substr(cases.query, 1, 2000) AS BLOB)"
_Vote: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]"
_OF_OUTCOME = 5  # columns of an outcome before those of its recall
_OPINION = 2  # columns of shadow_numbers before the features
_ADAPTED = 0.8  # likeness from which a solution counts as made from a shown one
_LEFT = 0.5  # share of the different words of a solution that must be left
_WORD = re.compile(r"\w+")


class SQLLessons:
    """Returns outcomes that are learned from, with the recalls that share their credit."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def feedback(self, outcome: int, shadow: str | None = None) -> list[Feedback]:
        """Return the lessons of one outcome: one per recall of its episode; empty if it was withdrawn or forgotten.

        With ``shadow``, return those for the shadow ranker of this name.
        """
        with self._connections.read() as connection:
            return _of_outcome(connection, outcome, shadow)

    def history(self, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None) -> list[Feedback]:
        """Return what the last ``limit`` outcomes teach, in a namespace or in all, oldest first: a lesson for each recall.

        ``until`` is the key of the last outcome to look at. With ``shadow``, return the lessons for the shadow ranker of this
        name.
        """
        with self._connections.read() as connection:
            keys = connection.execute(*_last(namespace, limit, until)).fetchall()
            return [entry for key, _ in reversed(keys) for entry in _of_outcome(connection, key, shadow)]

    def last_outcome(self) -> int:
        """Return the key of the newest outcome ever recorded, even if it was forgotten since; 0 if there was none."""
        ever = "SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'outcome'"
        query = f"SELECT coalesce(max(key), 0), ({ever}) FROM outcome"
        with self._connections.read() as connection:
            return max(int(key or 0) for key in connection.execute(query).fetchone())

    def asked(self, recall: int) -> tuple[str, NDArray[np.int64]] | None:
        """Return the query of a recall and the keys of its candidates; None if the recall was deleted."""
        with self._connections.read() as connection:
            row = connection.execute(
                """SELECT coalesce(recall.query, episode.query), candidates
                   FROM recall LEFT JOIN episode ON episode.key = recall.episode WHERE recall.key = ?""",
                (recall,),
            ).fetchone()
            return None if row is None else (row[0], unpack_ints(row[1]))

    def recalls_of(self, episode_key: int) -> list[int]:
        """Return the keys of an episode's recalls."""
        with self._connections.read() as connection:
            rows = connection.execute("SELECT key FROM recall WHERE episode = ?", (episode_key,)).fetchall()
        return [row[0] for row in rows]

    def took_back(self, namespace: int, since: int) -> bool:
        """Tell whether anything in a namespace was withdrawn, forgotten or purged after a log line."""
        kinds = (*TOOK_BACK, PURGED)
        query = "SELECT 1 FROM change WHERE seq > ? AND namespace = ? AND kind IN (?, ?, ?, ?) LIMIT 1"
        with self._connections.read() as connection:
            return connection.execute(query, (since, namespace, *kinds)).fetchone() is not None

    def votes(self, namespace: int, limit: int) -> list[_Vote]:
        """Return (case keys, similarity, agreement) for the recalls of the last ``limit`` outcomes, if labelled from hindsight.

        Only recalls whose episode had a verified solution are labelled. The agreement says how far each candidate's solution
        agrees with that one.
        """
        with self._connections.read() as connection:
            return votes_of(connection, namespace, limit)

    def compact(self, namespace: int, keep: int, limit: int) -> int:
        """Delete candidates, signals and vectors from the recalls of old settled episodes, which are no longer learned from.

        The episodes of the newest ``keep`` outcomes from which policies learn stay whole. Of the others, one call handles at
        most ``limit``.

        Return how many episodes were examined; fewer than ``limit`` means that no more are left for now.
        """
        with self._connections.write(durable=False) as connection:
            done = compacted_until(connection, namespace)
            boundary = _boundary(connection, namespace, keep)
            if boundary <= done:
                return 0
            outcomes = connection.execute(
                """SELECT key, episode, withdrawn_at FROM outcome
                   WHERE namespace = ? AND key > ? AND key <= ? ORDER BY key LIMIT ?""",
                (namespace, done, boundary, limit),
            ).fetchall()
            # An episode whose outcome was replaced has a later outcome, and is compacted with that one.
            shrink(connection, [episode for _, episode, withdrawn in outcomes if withdrawn is None])
            connection.execute(SET_FACT, (COMPACTED.format(namespace), str(outcomes[-1][0])))
            return len(outcomes)


def votes_of(connection: Connection, namespace: int, limit: int) -> list[_Vote]:
    """Return what ``SQLLessons.votes`` returns, inside a transaction; rows that cannot be read are left out."""
    last, values = _last(namespace, limit)
    rows = connection.execute(
        f"""SELECT candidates, numbers, agreement FROM recall
            WHERE episode IN (SELECT episode FROM ({last}) AS last) AND agreement IS NOT NULL AND length(numbers) > 0""",
        values,
    )
    return usable(rows, _vote)


def _of_outcome(connection: Connection, outcome: int, shadow: str | None) -> list[Feedback]:
    """Return the lessons of one outcome: one per recall of its episode; the recalls share the credit.

    With ``shadow``, return the recalls that this shadow policy saw, as it saw them.
    """
    columns, built = (FEEDBACK_COLUMNS, feedback) if shadow is None else (_SHADOW_COLUMNS, _shadow_feedback)
    seen, values = ("", ()) if shadow is None else ("AND recall.shadow = ?", (shadow,))
    rows = connection.execute(
        f"""SELECT value, outcome.source, cases.solution, {_TEXTS}, {columns}
           FROM outcome LEFT JOIN cases ON cases.key = outcome.cases_key AND cases.episode = outcome.episode
           JOIN recall ON recall.episode = outcome.episode AND recall.kind = 'recall' {seen}
           WHERE outcome.key = ? AND learns = 1 AND withdrawn_at IS NULL ORDER BY recall.key""",
        (*values, outcome),
    ).fetchall()
    if not rows:
        return []
    value, source, *retained = rows[0][:_OF_OUTCOME]
    recalls = [row[_OF_OUTCOME:] for row in rows]
    trust = weight_of(source)
    lessons = usable(recalls, lambda recall: built(recall, value, trust / len(recalls), trust))
    if retained[0] is None:
        return lessons
    candidates = {recall[0]: recall[1] for recall in recalls}

    def descent(lesson: Feedback) -> tuple[int, int] | None:
        found = usable([lesson], lambda one: _descent(connection, retained, one, candidates[one.key]))
        return next(iter(found), None)

    return [dataclasses.replace(lesson, descent=descent(lesson)) for lesson in lessons]


def _descent(connection: Connection, retained: Sequence[Any], lesson: Feedback, candidates: bytes) -> tuple[int, int] | None:
    """Return (id of the retained solution, id of the shown solution from which it was made); None if none is similar enough.

    It is taken as made from the most similar one that was shown. None, too, if the two are the same solution.
    """
    if not lesson.shown or not len(lesson.chosen):
        return None
    child, made = _words(retained)
    keys = unpack_ints(candidates)[lesson.chosen].tolist()
    shown = connection.execute(f"SELECT solution, {_TEXTS} FROM cases WHERE key IN ({','.join('?' * len(keys))})", keys)
    best, parent = max(((_likeness(made, used), solution) for solution, used in map(_words, shown)), default=(0.0, child))
    return (child, parent) if best >= _ADAPTED and parent != child else None


def _words(row: Sequence[Any]) -> tuple[int, _Words]:
    """Return the id of the solution in a row, and its words."""
    solution, head, query = row
    return int(solution), _Words.of(head.decode("utf-8", "replace"), query.decode("utf-8", "replace"))


class _Words(NamedTuple):
    """How often each word occurs in a solution, and the words of its task."""

    counts: Counter[str]
    named: frozenset[str]

    @classmethod
    def of(cls, solution: str, task: str) -> _Words:
        """Count the words of a solution, and list those of its task."""
        return cls(Counter(_WORD.findall(solution.casefold())), frozenset(_WORD.findall(task.casefold())))

    def beyond(self, other: _Words) -> Counter[str] | None:
        """Return the counts, without words of the own task that the other solution lacks; None if too few words are left."""
        names = self.named - other.counts.keys()
        rest = Counter({word: count for word, count in self.counts.items() if word not in names})
        return rest if len(rest) > _LEFT * len(self.counts) else None


def _likeness(one: _Words, other: _Words) -> float:
    """Return the cosine of the word counts of two solutions: 1 for the same words, 0 if they share none.

    To adapt a solution to a new task, one replaces the names of its own task by those of the new task. So these words do not
    count, unless they make up most of a solution: the rest of "open the door" would be like anything.

    >>> _likeness(_Words.of("restart printer-7, then clean it", "printer-7 jams"),
    ...          _Words.of("restart router-12, then clean it", "router-12 hums"))
    1.0
    >>> _likeness(_Words.of("open my door", "open my door, please"), _Words.of("close the window", "close the window, please"))
    0.0
    """
    a, b = one.beyond(other), other.beyond(one)
    if a is None or b is None:
        a, b = one.counts, other.counts
    shared = sum(count * b[word] for word, count in a.items())
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())) if shared else 0.0


def feedback(row: Sequence[Any], reward: float, weight: float, trust: float = 1.0) -> Feedback:
    """Build a policy's lesson from a row of ``FEEDBACK_COLUMNS``."""
    key, candidates, groups, chosen, numbers, features, context, shown, agreement, query, encoder = row
    n = len(candidates) // 8
    of_solutions, places = int_arrays(groups, chosen)
    labels = agreement if agreement is not None and len(agreement) == 4 * n else None
    of_pairs, table, of_choice, vector, agreed = float_arrays(features, numbers, context, query or b"", labels or b"")
    similarity = table.reshape(-1, NUMBERS)[:, Column.SIMILARITY] if n else np.zeros(0, np.float32)
    if not len(similarity) == len(of_solutions) == n or (len(places) and not 0 <= places.min() <= places.max() < n):
        raise ValueError(f"the arrays of recall {key} do not belong together")
    if type(reward) not in (int, float) or not 0.0 <= reward <= 1.0:
        raise ValueError(f"the reward of recall {key} is not a number between 0 and 1")
    return Feedback(
        key=key,
        slate=Slate(
            features=of_pairs.reshape(n, len(of_pairs) // n if n else 0),
            similarity=similarity,
            groups=of_solutions,
            query=vector if _is_unit(vector) else None,  # a damaged vector is like one that is gone
        ),
        chosen=places,
        context=of_choice,
        shown=bool(shown),
        reward=reward,
        agreement=None if labels is None else agreed,
        weight=weight,
        trust=trust,
        encoder=encoder if isinstance(encoder, str) else "",  # somebody may have edited this row
    )


def _is_unit(vector: NDArray[np.float32]) -> bool:
    """Tell whether a vector has the norm one, as every vector of an embedder has."""
    with np.errstate(all="ignore"):  # a bad number shows in the squared norm
        return bool(abs(float(vector @ vector) - 1.0) <= NORM_TOLERANCE)


def _shadow_feedback(row: Sequence[Any], reward: float, weight: float, trust: float = 1.0) -> Feedback:
    """Build the shadow's lesson from a row of ``_SHADOW_COLUMNS``: what was shown, with the features of its own encoder."""
    n = len(row[1]) // 8
    numbers = unpack_floats(row[5]).reshape(n, -1) if n else np.zeros((0, _OPINION), np.float32)
    return feedback((*row[:5], pack_floats(numbers[:, _OPINION:]), *row[6:]), reward, weight, trust)


def opinion(numbers: bytes, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return, for each of ``n`` candidates, the place at which a shadow would have shown it, and the propensity.

    The place is 1 for the case that the shadow would have shown first, and 0 for a case that it would not have shown.
    """
    table = unpack_floats(numbers).reshape(n, -1) if n else np.zeros((0, _OPINION), np.float32)
    return table[:, 0], table[:, 1]


def _last(namespace: int | None, limit: int, until: int = 2**62) -> tuple[str, tuple[int, ...]]:
    """Build a query for (key, episode) of the last outcomes that are learned from, newest first, with its parameters."""
    where, values = ("namespace = ? AND", (namespace,)) if namespace is not None else ("", ())
    learned = f"{where} learns = 1 AND withdrawn_at IS NULL AND key <= ?"
    return f"SELECT key, episode FROM outcome WHERE {learned} ORDER BY key DESC LIMIT ?", (*values, until, limit)


def _vote(row: tuple[bytes, bytes, bytes]) -> _Vote:
    keys, similarity, agreed = unpack_ints(row[0]), unpack_floats(row[1], NUMBERS)[:, Column.SIMILARITY], unpack_floats(row[2])
    if not len(keys) == len(similarity) == len(agreed):
        raise ValueError("the arrays of this recall do not belong together")
    return keys, similarity, agreed


def _boundary(connection: Connection, namespace: int, keep: int) -> int:
    """Return a key up to which no outcome is one of the last ``keep``, or one of the last ``keep`` to learn from.

    0 if there are not more than ``keep`` outcomes.
    """
    last = connection.execute(
        "SELECT key FROM outcome WHERE namespace = ? AND withdrawn_at IS NULL ORDER BY key DESC LIMIT 1 OFFSET ?",
        (namespace, keep),
    ).fetchone()
    if last is None:
        return 0
    learned = "SELECT key FROM outcome WHERE namespace = ? AND learns = 1 AND withdrawn_at IS NULL ORDER BY key DESC LIMIT ?"
    (first,) = connection.execute(f"SELECT min(key) FROM ({learned}) AS learned", (namespace, keep)).fetchone()
    return int(last[0]) if first is None else min(int(last[0]), int(first) - 1)

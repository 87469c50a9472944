"""How an episode stands beside its scores, and what has to be done next so that its outcome is what they ask for.

The reward that the scores of an episode come to depends on the set of its scores alone, not on their order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from cascade_memory.capabilities.scores.score import SOURCES, Reading
from cascade_memory.capabilities.scores.tables import SCORE
from cascade_memory.domain.digests import digest
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.trust import REVISED, level
from cascade_memory.ledger import Connection
from cascade_memory.ledger.rows import solution_if_readable, usable

_OUTCOME = "SELECT key, value, source, channel, actor, at, solution_kind, solution FROM outcome"
_CURRENT = f"{_OUTCOME} WHERE episode = ? AND withdrawn_at IS NULL"
_OLDER = f"{_OUTCOME} WHERE episode = ? AND withdrawn_at = ? ORDER BY key DESC LIMIT 1"
_ENTRY = "SELECT id, note FROM action WHERE outcome = ? AND kind = 'correct'"
# Corrections that a person took back. When they are taken back here, the entry has a note.
_VOID = """SELECT done.note FROM action AS done JOIN action AS taken ON taken.undoes = done.key
  WHERE done.subject = ? AND done.kind = 'correct' AND done.note IS NOT NULL AND taken.note IS NULL"""
_RUN = """SELECT solution_kind, solution FROM attempt WHERE episode = ?
  UNION ALL SELECT solution_kind, solution FROM judged_attempt WHERE episode = ?"""


class Row(NamedTuple):
    """A score as it is stored, in the order of the columns."""

    platform: str
    feedback: str
    name: str
    value: float | None
    judge: str
    correction: str | None  # a digest
    deleted: int
    actor: str | None
    at: float
    trace_id: str | None = None
    span_id: str | None = None

    @property
    def version(self) -> tuple[object, ...]:
        """Of two versions of a score, the one that counts has the greater of these; a deletion wins at the same moment."""
        said = (self.value is not None, self.value or 0.0, self.name, self.judge, self.correction or "", self.actor or "")
        return (self.at, self.deleted, *said)

    @property
    def note(self) -> str:
        """The note of the correction in the audit log, by which it is found again."""
        return f"{self.platform} score {self.feedback}, correction {(self.correction or '')[:16]}"

    @property
    def source(self) -> str:
        """The source of a reward that its kind of judge is."""
        return SOURCES[self.judge]


class Wish(NamedTuple):
    """The outcome that the scores of an episode ask for."""

    value: float
    source: str
    actor: str | None = None  # who gave all the scores that decide
    corrects: Row | None = None


def wish(rows: Iterable[Row], reading: Reading, answer: str | None = None, void: Collection[str] = ()) -> Wish | None:
    """Return what the scores of an episode ask for; None if they ask for nothing.

    A person's correction counts most, then the weighted mean of what the most trusted source said. ``answer`` is the digest of
    the agent's own answer, which is no correction. ``void`` are the notes of corrections that somebody took back.

    >>> one = Row("otlp", "1", "correct", 1.0, "judge", None, 0, None, 5.0)
    >>> wish([one, one._replace(feedback="2", value=0.5)], Reading())
    Wish(value=0.75, source='judge', actor=None, corrects=None)
    >>> wish([one, one._replace(feedback="2", value=0.0, judge="human", actor="ann")], Reading())
    Wish(value=0.0, source='human', actor='ann', corrects=None)
    """
    counted = [one for one in rows if not one.deleted and reading.weight(one.name) is not None]
    corrections = [
        one for one in counted if one.judge == "human" and one.correction not in (None, answer) and one.note not in void
    ]
    if corrections:
        newest = max(corrections, key=lambda one: (one.at, one.platform, one.feedback))
        return Wish(0.0, "human", newest.actor, newest)
    given = [(weight, one.value, one) for one in counted if one.value is not None and (weight := reading.weight(one.name))]
    if not given:
        return None
    most = max(level(one.source) for _, _, one in given)
    decide = sorted((weight, value, one.actor or "", one.source) for weight, value, one in given if level(one.source) == most)
    total = math.fsum(weight for weight, *_ in decide)
    mean = math.fsum(weight * value for weight, value, *_ in decide) / total
    actors = {actor for *_, actor, _ in decide}
    return Wish(min(1.0, max(0.0, mean)), decide[0][3], (actors.pop() or None) if len(actors) == 1 else None)


_FIELDS = Row._fields
ROWS = f"SELECT {', '.join(_FIELDS)} FROM score"


class Outcome(NamedTuple):
    """An outcome, in the order of the columns."""

    key: int
    value: float
    source: str
    channel: str | None
    actor: str | None
    at: float
    solution_kind: str | None
    solution: str | None

    @property
    def is_ours(self) -> bool:
        """Whether scores asked for it."""
        return self.channel in REVISED


class Standing(NamedTuple):
    """An episode as it is now."""

    key: int
    status: str
    wish: Wish | None
    current: Outcome | None
    direct: Outcome | None  # the latest that somebody reported directly, whether it counts or not
    entry: str | None = None  # of the audit log, if the current outcome is a correction that a score asked for
    note: str | None = None

    @property
    def stands(self) -> bool:
        """Whether a direct report is trusted at least as much as what the scores ask for, so that it counts."""
        return self.direct is not None and (self.wish is None or level(self.wish.source) <= level(self.direct.source))

    @property
    def gives_way(self) -> bool:
        """Whether the current outcome has to be withdrawn before another one can take its place, or since none does."""
        asked, current = self.wish, self.current
        if asked is None or current is None or self.stands:
            return True
        return (self.entry is not None and asked.corrects is None) or level(asked.source) < level("user") <= level(
            current.source
        )

    @property
    def is_done(self) -> bool:
        """Whether the current outcome is what it has to be."""
        if self.current is None:
            return self.wish is None
        if not self.current.is_ours:
            return self.stands
        if self.wish is None or self.stands:
            return False
        now = (self.current.value, self.current.source, self.current.actor, self.note)
        return now == (self.wish.value, self.wish.source, self.wish.actor, self.wish.corrects and self.wish.corrects.note)


def rows_of(found: Sequence[Sequence[Any]]) -> list[Row]:
    """Return stored scores; leave out those that somebody has edited so that they break a rule."""

    def read(row: Sequence[Any]) -> Row:
        SCORE.check_values(dict(zip(_FIELDS, row, strict=True)), _FIELDS)
        return Row(*row)

    return usable(found, read)


def standing(tx: Connection, namespace: int, episode_id: str, reading: Reading, nobody: str | None) -> Standing | None:
    """Return how an episode stands; None if it is gone. ``nobody`` is the actor where the scores name none."""
    found = tx.execute("SELECT key, status FROM episode WHERE id = ? AND namespace = ?", (episode_id, namespace)).fetchone()
    if found is None:
        return None
    key, status = found
    current = direct = _one(tx.execute(_CURRENT, (key,)).fetchone())
    while direct is not None and direct.is_ours:
        direct = _one(tx.execute(_OLDER, (key, direct.at)).fetchone())
    entry = None if current is None or not current.is_ours else tx.execute(_ENTRY, (current.key,)).fetchone()
    rows = rows_of(tx.execute(f"{ROWS} WHERE episode = ?", (key,)).fetchall())
    answer, void = None, set[str]()
    if any(one.correction for one in rows):
        answer = _answer(tx, key, direct)
        void = {str(note) for (note,) in tx.execute(_VOID, (episode_id,)).fetchall()}
    asked = wish(rows, reading, answer, void)
    if asked is not None and asked.actor is None:
        asked = asked._replace(actor=nobody)
    return Standing(int(key), str(status), asked, current, direct, *(entry or (None, None)))


def _one(row: Sequence[Any] | None) -> Outcome | None:
    return None if row is None else Outcome(*row)


def _answer(tx: Connection, episode: int, direct: Outcome | None) -> str | None:
    """Return a digest of the agent's own answer: of what its run recorded, or of what was reported with its outcome."""
    run = tx.execute(_RUN, (episode, episode)).fetchone()
    kind, text = run if run is not None else (None, None) if direct is None else (direct.solution_kind, direct.solution)
    solution = solution_if_readable(kind, text)
    return None if solution is None else digest(solution_text(solution).strip())

"""The reward that the scores of an episode come to. It depends on the set of its scores alone, not on their order."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from cascade_memory.capabilities.scores.mapping import SOURCES, Reading
from cascade_memory.domain.trust import level


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

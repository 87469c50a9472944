"""The standing of the actors of one namespace: whose cases may be shown in a recall, and whose outcomes teach.

It is computed from the ledger alone: from the last outcomes that are learned from, and the decisions about actors.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.sources.actor_standing import WHY, ActorStanding, Standing
from cascade_memory.capabilities.sources.reputation import TRUSTED, Heard
from cascade_memory.capabilities.sources.rows import ActorRows, Testimony
from cascade_memory.capabilities.sources.source_records import SourceRecords
from cascade_memory.cycle.learn import WINDOW
from cascade_memory.domain.trust import Vigilance
from cascade_memory.learning.screen import Screen

_RELEARN_EVERY = 16  # outcomes: so long what a liar taught may stay, so that many liars do not mean learning all the time


class Standings(Screen):
    """Follows the outcomes of one namespace. Until a case with an author is seen, it does nothing."""

    def __init__(self, namespace_id: int, rows: ActorRows, vigilance: Vigilance, *, learns: bool) -> None:
        self._namespace_id, self._rows, self._vigilance, self._learns = namespace_id, rows, vigilance, learns
        self._numbers: dict[str, int] = {}
        self._next = itertools.count()
        self._records = self._no_records(frozenset())
        self._decided: dict[str, bool] = {}
        self._changing = threading.Lock()  # held for microseconds
        self._barred: frozenset[int] = frozenset()  # whose outcomes taught nothing at the last rebuild
        self.rebuild_due = False
        self._since = 0  # outcomes since the last rebuild
        self._until = 0  # the last outcome in the last rebuild
        self._silent: set[int] = set()  # the recalls in it whose outcomes must not teach
        self.active = bool(vigilance) and rows.any(namespace_id)
        self.look_up()

    def _no_records(self, barred: frozenset[int], *, soon_many: bool = False) -> SourceRecords:
        measures = self._vigilance
        return SourceRecords(
            barred,
            convicts=measures.records,
            finds_liars=measures.reports,
            fair_lessons=measures.fair_lessons,
            soon_many=soon_many,
        )

    # -- showing -----------------------------------------------------------------------------------------------------

    def held(
        self, authors: Sequence[str | None], groups: NDArray[np.int64], asker: str | None, episode_id: str
    ) -> NDArray[np.bool_]:
        """Return, for each candidate, whether it must not be shown in an episode. Called by many threads at once."""
        if not self._vigilance and not self._decided:
            return np.zeros(len(authors), bool)
        if not self.active:
            self.active, self.rebuild_due = True, self._learns
        draw = _draw(episode_id)
        with self._changing:
            of = np.array([TRUSTED if author is None else self._number(author) for author in authors], np.int64)
            whose = TRUSTED - 1 if asker is None else self._number(asker)
            held = self._records.held(of, groups, whose, draw) if self._vigilance.probation else np.zeros(len(of), bool)
            return held | np.array([author is not None and self._quarantined(author) for author in authors], bool)

    def _number(self, actor: str) -> int:
        """Return the number of an actor; ``TRUSTED`` (it needs no record) if a person has released it."""
        if self._decided.get(actor) is False:
            return TRUSTED
        if actor not in self._numbers:
            self._numbers[actor] = next(self._next)
        return self._numbers[actor]

    @property
    def silenced(self) -> frozenset[str]:
        """The actors whose cases are in quarantine."""
        if not self._decided:
            return frozenset()
        with self._changing:
            return frozenset(actor for actor, is_so in self._decided.items() if is_so)

    def _quarantined(self, actor: str) -> bool:
        decided = self._decided.get(actor)
        if decided is not None:
            return decided
        return self._numbers.get(actor) in self._records.convicted

    # -- following ---------------------------------------------------------------------------------------------------

    def look_up(self) -> None:
        """Read what was decided about actors: by a person, or because a record was bad beyond doubt."""
        decided = dict(self._rows.decided(self._namespace_id))
        with self._changing:
            if decided != self._decided:
                self._decided, self.rebuild_due = decided, self._learns
                self.active = self.active or bool(decided)

    def teaches(self, outcome: int) -> tuple[bool, list[int]]:
        """Take a new outcome into account; return whether it may teach, and the keys of its recalls."""
        told = self._rows.testimony(outcome)
        recalls = [one.recall for one in told]
        if outcome <= self._until:  # another process wrote it down while this namespace was being opened
            return self._silent.isdisjoint(recalls), recalls
        heard = self._all_heard(told)
        with self._changing:
            teaches = all([self._observe(one) for one in heard])
            self._since += 1
            if self._since >= _RELEARN_EVERY and not self._untaught() <= self._barred:
                self.rebuild_due = True
            if self._records.judged_too_early:
                self.rebuild_due = True  # whoever came first has taught whatever it liked
        return teaches, recalls

    def _observe(self, heard: Heard) -> bool:
        return heard.reporter not in self._in_quarantine() and self._records.observe(heard)

    def _in_quarantine(self) -> frozenset[int]:
        return frozenset(self._numbers[actor] for actor, bad in self._decided.items() if bad and actor in self._numbers)

    def _untaught(self) -> frozenset[int]:
        """Return the actors whose outcomes must not teach."""
        return frozenset(self._in_quarantine() | self._records.convicted | self._records.liars)

    def rebuild(self, until: int) -> set[int]:
        """Evaluate the last outcomes again; return the keys of the recalls whose outcomes must not teach.

        The outcomes are read twice: the second time, the liars found in the first pass are known from the start. Actors that
        occur in none of these outcomes are dropped, since all that they wrote may have been forgotten.
        """
        heard = self._all_heard(self._rows.testimonies(self._namespace_id, WINDOW, until=until))
        with self._changing:
            barred: frozenset[int] = frozenset()
            silent: set[int] = set()
            many = False
            for _ in range(2):
                self._records = self._no_records(barred, soon_many=many)
                silent = {one.key for one in heard if not self._observe(one)}
                barred, many = barred | self._untaught(), self._records.many_came
            self._barred, self.rebuild_due, self._since, self._until = barred, False, 0, until
            self._silent = silent | {one.key for one in heard if one.reporter in barred}
            there = {number for one in heard for number in (one.reporter, *one.authors.tolist())}
            kept = [(actor, number) for actor, number in self._numbers.items() if number in there or actor in self._decided]
            self._numbers = dict(kept)
            return self._silent

    def _all_heard(self, told: Iterable[Testimony]) -> list[Heard]:
        told = list(told)
        keys = sorted({key for one in told for key in one.cases.tolist()})
        authors = self._rows.authors(keys)
        with self._changing:
            number = {key: self._number(author) for key, author in authors.items()}
            return [
                Heard(
                    key=one.recall,
                    reporter=TRUSTED if one.reporter is None else self._number(one.reporter),
                    reward=one.reward,
                    predicted=one.predicted,
                    authors=np.array([number.get(key, TRUSTED) for key in one.cases.tolist()], np.int64),
                    cases=one.cases,
                    chosen=one.chosen,
                    shown=one.shown,
                    agreement=one.agreement,
                )
                for one in told
            ]

    # -- looking -----------------------------------------------------------------------------------------------------

    def convicts(self) -> list[str]:
        """Return the actors whose record is bad beyond doubt, and about whom nothing was decided yet."""
        if not self._records.convicted:
            return []
        with self._changing:
            convicted = self._records.convicted
            return sorted(actor for actor, one in self._numbers.items() if one in convicted and actor not in self._decided)

    def why(self, actor: str) -> str:
        """Say why cases of an actor were held back."""
        with self._changing:
            found = self._standing(actor).standing
        return "it takes more than a fair share" if found in ("established", "released") else WHY[found]

    def all(self) -> list[ActorStanding]:
        """Return what is known of each actor, the worst first."""
        if not self.active:
            return []
        with self._changing:
            found = [self._standing(actor) for actor in {**self._numbers, **self._decided}]
        return sorted(found, key=lambda one: (one.share, -one.cases, one.actor))

    def _standing(self, actor: str) -> ActorStanding:
        number = self._numbers.get(actor, TRUSTED - 1)
        record = self._records.records.get(number)
        decided = self._decided.get(actor)
        if self._quarantined(actor):
            named, share = "quarantined", 0.0
        elif decided is False:
            named, share = "released", 1.0
        else:
            named, share = self._named(number), self._records.share(number)
        return ActorStanding(
            actor=actor,
            standing=named,
            cases=0.0 if record is None else record.cases,
            reports=0.0 if record is None else record.reports,
            share=share,
        )

    def _named(self, number: int) -> Standing:
        if number in self._records.liars:
            return "liar"
        if self._records.established(number):
            return "established"
        return "doubted" if self._records.doubted(number) else "new"


def _draw(episode_id: str) -> float:
    """Return a number between 0 and 1 that only depends on the episode, so that all processes agree.

    >>> 0.0 <= _draw("an episode") < 1.0
    True
    """
    return int.from_bytes(hashlib.blake2b(episode_id.encode(), digest_size=7, person=b"sources").digest(), "big") / 2.0**56

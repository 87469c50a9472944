"""Records how far each actor that makes cases or reports outcomes can be relied on, learned from the outcomes of others.

Actors are numbers here; ``TRUSTED`` stands for every actor that needs no record, such as a person.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.sources.reputation import TRUSTED, Counted, Heard, Praise, Turns
from cascade_memory.ports.policy import Floats


@dataclass(slots=True)
class SourceRecord:
    """What is known of one actor.

    ``cases`` and ``reports`` are the log odds that its cases, and its reports, are bad. ``did`` and ``should`` are how its
    cases did lately, and what was expected of them. ``of_it`` and ``against`` are the actors whose reports spoke for it and
    against it.
    """

    cases: float = 0.0
    reports: float = 0.0
    did: float = 0.0
    should: float = 0.0
    against: set[int] = field(default_factory=set[int])
    of_it: set[int] = field(default_factory=set[int])
    failed: set[int] = field(default_factory=set[int])  # cases, up to ``BAD_CASES``


class SourceRecords:
    """Keeps a record of each actor, and says how often its cases may be shown, and whether its outcomes teach.

    The model is that the cases of a bad actor do ``BAD`` times as well as expected. An outcome says something about an actor if
    one of its cases was shown or, where solutions recur, if one of its cases was a candidate and the verified solution shows
    whether it was right. Each such outcome, if *another* actor reports it, multiplies the odds that the actor is bad by a
    likelihood ratio. What is expected of a shown case is the policy's forecast; what is expected of another candidate is how
    often its neighbours were right. The log odds stay between ``FLOOR`` and ``CEILING``, so that an actor that becomes bad
    later loses its good name quickly. The n-th outcome about one case, if it is the m-th one of this reporter about this
    author, is weighted by 1 / sqrt(n m): one wrong case makes no bad actor, and one popular case makes no good one.
    """

    BAD = 0.35
    FLOOR, CEILING = -4.0, 8.0
    ESTABLISHED = -2.0  # log odds below which the cases of an actor are shown like any others
    SUSPECT = 2.5  # above this, they may be shown in a fair share of the recalls only
    CONVICTED = 5.0  # above this, they are not shown any more, if they also
    DOES = 0.6  # did worse than this share of what was expected, lately
    LATELY = 0.95  # discount, per outcome about an actor's cases
    WORST = 1.25  # by how much one outcome raises the log odds at most
    # So many others must have spoken, for a conviction and for a good name, unless one of them is trusted.
    WITNESSES, MOST_WITNESSES = 2, 32
    LIAR, PARDONED = 4.0, 1.0  # log odds from which the reports of an actor do not count, and from which they count again
    FAIR = 0.05  # the least fair share of recalls and of lessons; it is also left to actors whose cases have failed
    FEW = 4  # with fewer active actors, no majority can speak for or against anyone, and every share is fair
    BEGINNING = 64  # turns within which enough actors must come, so that the first outcomes are judged again
    BAD_CASES = 3  # so many different cases must have failed for a conviction: one wrong case makes no bad actor
    NEWCOMERS = 0.98  # discount, per outcome, of how the cases of actors without a record have done
    NEIGHBOURS = 8  # candidates of others with which one is compared
    TELLING = 0.3  # the share of them that must be right; where nearly all are wrong, nobody is to blame
    BREADTH = 0.15  # share of the active actors who must have spoken for one, or against it
    # A name costs nothing, but a turn does. So the word of a reporter without a good record counts in part, until it has
    # reported so many outcomes, or as many as is usual: as those had who reported the last ones, but for this share of them.
    TENURE, USUAL = 8, 0.3
    HEEDED = 4  # outcomes that it must have reported to be a witness who speaks for somebody
    STEEP = 2.0  # how fast the word of an actor counts less as its own log odds rise above 0
    CASES = 8_192  # whose outcomes are counted
    ACTORS = 4_096  # of whom a record is kept; of more, those are dropped that were not heard of for the longest time

    def __init__(
        self,
        barred: frozenset[int] = frozenset(),
        *,
        convicts: bool = True,
        finds_liars: bool = True,
        fair_lessons: bool = True,
        soon_many: bool = False,
    ) -> None:
        self.barred = barred  # whose outcomes do not count from the start
        self._soon_many = soon_many  # there will soon be enough actors for a majority; known when outcomes are followed again
        self.many_came = False  # whether that was found out: enough actors who are no guests came among the first outcomes
        self._noted = 0  # turns
        self._convicts, self._finds_liars, self._fair_lessons = convicts, finds_liars, fair_lessons
        self.records: OrderedDict[int, SourceRecord] = OrderedDict()
        self.convicted: set[int] = set()
        self.liars: set[int] = set()
        self.turns, self._shown = Turns(), Turns()  # outcomes by reporter, and shown cases by author
        self._reports = Counted(self.ACTORS)  # outcomes by reporter, ever
        self._whole_after = 1.0  # outcomes after which the word of a reporter counts whole
        self._crowd = 0.0  # active actors, new ones counted in part
        self._words = Counted(Praise.PAIRS)  # by author, reporter and how they went: which part has counted
        self._told = Counted(self.CASES)  # outcomes about each case
        self._praise = Praise()
        self._pairs = Counted(Praise.PAIRS)  # outcomes by author and reporter
        self._did, self._should = 0.0, 0.0  # how newcomers' cases did, and what was expected of them
        self._rewards, self._mean = 0.0, 0.5

    # -- standing ----------------------------------------------------------------------------------------------------

    def established(self, actor: int) -> bool:
        """Whether the cases of an actor are shown like any others."""
        record = self.records.get(actor)
        if actor == TRUSTED:
            return True
        spoken_for = record is not None and self._enough(record.of_it)
        return spoken_for and record is not None and record.cases <= self.ESTABLISHED and actor not in self.liars

    def _enough(self, witnesses: set[int]) -> bool:
        needed = max(self.WITNESSES, math.ceil(self.BREADTH * self._crowd))
        return TRUSTED in witnesses or len(witnesses) >= min(needed, self.MOST_WITNESSES)

    def _settled(self) -> bool:
        """Whether most of the active actors have a good record; if so, only their reports can give others a good record."""
        return self._known() > 0.5

    def _known(self) -> float:
        """Return the share of the active actors who have a good record."""
        return sum(self.established(actor) for actor in self.turns.actors) / max(1, self.turns.active)

    @property
    def few(self) -> bool:
        """Whether there are too few active actors for a majority."""
        return self.turns.active < self.FEW and not (self._soon_many and self._noted < self.BEGINNING)

    @property
    def judged_too_early(self) -> bool:
        """Whether the first outcomes were judged as if there were too few actors for a majority, although enough came soon."""
        return self.many_came and not self._soon_many and self._fair_lessons

    @property
    def fair(self) -> float:
        """The share of the recalls, and of the outcomes that teach, that an actor without a good record may have."""
        return 1.0 if self.few else min(1.0, max(self.FAIR, 2.0 / max(1, self.turns.active)))

    @property
    def newcomers(self) -> float:
        """How well the cases of actors without a good record have done lately: 1 if as well as was expected of them."""
        return (self._did + 8.0) / (self._should + 8.0)

    def share(self, actor: int) -> float:
        """Return the share of recalls in which the cases of an actor may be shown."""
        if actor in self.convicted:
            return 0.0
        if self.few or self.established(actor):
            return 1.0
        record = self.records.get(actor)
        if actor in self.liars or (record is not None and record.cases > self.SUSPECT):
            return self.FAIR
        well = min(1.0, max(0.0, (self.newcomers - 0.5) / 0.3))
        takes = min(self.turns.left_for(actor, self.fair), self._shown.left_for(actor, self.fair))
        return min(takes, max(self.FAIR, well))

    def held(self, authors: NDArray[np.int64], groups: NDArray[np.int64], asker: int, draw: float) -> NDArray[np.bool_]:
        """Return which candidates must not be shown in a recall, given a uniform draw that belongs to its episode.

        A candidate must not be shown if ``draw`` is at least its author's ``share``. There are two exceptions, but not for
        convicted authors, whose share is 0: an established actor, or the asker, has a candidate with the same solution; or the
        cases of ``newcomers`` do well, and at least three actors with a share above ``FAIR`` have candidates with this
        solution. An actor's own cases may always be shown to it.
        """
        share = {actor: self.share(actor) for actor in {*authors.tolist()} if actor not in (TRUSTED, asker)}
        held = np.array([draw >= share.get(actor, 1.0) for actor in authors.tolist()], bool)
        if not held.any():
            return held
        known = {int(group) for group, actor in zip(groups, authors, strict=True) if actor == asker or self.established(actor)}
        for place in np.flatnonzero(held).tolist():
            if share[int(authors[place])] == 0.0:
                continue
            group = int(groups[place])
            held[place] = group not in known and not self._agreed(authors[groups == group])
        return held

    def _agreed(self, authors: NDArray[np.int64]) -> bool:
        honest = {actor for actor in authors.tolist() if self.share(actor) > self.FAIR}
        return self.newcomers > 0.8 and len(honest) > self.WITNESSES

    def teaches(self, heard: Heard) -> bool:
        """Say whether an outcome may teach.

        The outcomes of a liar or a suspect may not. Of those of an actor without a good record, only a fair share may, and only
        if they say something new (see ``Praise.is_news``), unless there are ``few`` actors.
        """
        reporter = heard.reporter
        if reporter == TRUSTED:
            return True
        if reporter in self.liars or reporter in self.convicted or reporter in self.barred:
            return False
        record = self.records.get(reporter)
        if record is not None and record.cases > self.SUSPECT and self._convicts:
            return False
        if self._fair_lessons and not self.few and not self._praise.is_news(heard, self.established, self._tenure):
            return False
        if not self._fair_lessons or self.established(reporter):
            return True
        return heard.draw < self.turns.left_for(reporter, self.fair) ** 3  # the more one floods, the less it teaches

    # -- learning ----------------------------------------------------------------------------------------------------

    def observe(self, heard: Heard) -> bool:
        """Take an outcome into account; return whether it may teach."""
        if heard.reporter != TRUSTED:
            self._note_turn(heard.reporter)
        self._judge_report(heard)
        self._praise.note_verified(heard)
        if not self.teaches(heard):
            return False
        self._praise.note(heard)
        weight = self._weight(heard.reporter)
        if heard.shown:
            self._rewards += 1.0
            self._mean += (heard.reward - self._mean) / min(self._rewards + 1.0, Turns.WINDOW)
            self._judge_shown(heard, weight)
            for author in heard.authors[heard.chosen].tolist():
                self._shown.note(author, 1.0 if author == heard.reporter else 1.0 / max(self.share(author), 0.02))
        if heard.agreement is not None and bool(np.nansum(heard.agreement) > 0):
            self._judge_candidates(heard, heard.agreement, weight)
        return True

    def _note_turn(self, reporter: int) -> None:
        """Count an outcome for its reporter, and find out after how many outcomes the reports of an actor count fully."""
        self.turns.note(reporter)
        self._reports.note(reporter)
        reports = {actor: self._reports.of(actor) for actor in self.turns.actors}
        self._whole_after = min(self.TENURE, max(1.0, self.turns.quantile(reports, self.USUAL)))
        self._crowd = sum(map(self._tenure, reports))
        self._noted += 1
        self.many_came = self.many_came or (self._noted <= self.BEGINNING and self._crowd >= self.FEW)

    def _tenure(self, reporter: int) -> float:
        """Return how far the reports of an actor without a good record count, from 0 to 1: fully after enough outcomes."""
        return 1.0 if reporter == TRUSTED else min(1.0, self._reports.of(reporter) / self._whole_after)

    def _weight(self, reporter: int) -> float:
        """Return how much the reports of an actor count: fully if it has a good record.

        Otherwise they count less, the more other actors have a good record and the worse its own record is.
        """
        if self.established(reporter):
            return 1.0
        record = self.records.get(reporter)
        odds = 0.0 if record is None else max(0.0, record.cases)
        return max(0.25, 1.0 - self._known()) * 2.0 / (1.0 + math.exp(self.STEEP * odds))

    def _expected(self, predicted: float) -> float:
        blend = self._mean if math.isnan(predicted) else 0.5 * (predicted + self._mean)
        return min(max(blend, 0.1), 0.9)

    def _judge_report(self, heard: Heard) -> None:
        """Raise the log odds that a reporter lies if its report contradicts the policy's forecast; lower them if it agrees."""
        actor = heard.reporter
        if actor == TRUSTED or not heard.shown or any(self.doubted(int(heard.authors[place])) for place in heard.chosen):
            return
        expected = self._expected(heard.predicted)
        ratio = max(-1.5, min(1.5, math.log(expected / (1.0 - expected))))
        record = self._record(actor)
        record.reports = self._bounded(record.reports + 0.5 * (1.0 - 2.0 * heard.reward) * ratio)
        if record.reports >= self.LIAR and self._finds_liars:
            self.liars.add(actor)
        elif record.reports <= self.PARDONED:
            self.liars.discard(actor)

    def doubted(self, actor: int) -> bool:
        """Whether more speaks against an actor than for it."""
        record = self.records.get(actor)
        return record is not None and (record.cases > 0.0 or actor in self.liars)

    def _judge_shown(self, heard: Heard, weight: float) -> None:
        expected = self._expected(heard.predicted)
        for place in heard.chosen.tolist():
            self._count(heard, place, heard.reward, expected, weight / len(heard.chosen))

    def _judge_candidates(self, heard: Heard, agreement: Floats, weight: float) -> None:
        """Compare the best candidate of each actor with candidates of other actors that were about as similar to the task."""
        compared = [
            place
            for place, actor in enumerate(heard.authors.tolist())
            if actor != heard.reporter and not self.doubted(actor) and not math.isnan(agreement[place])
        ]
        shown = set(heard.chosen.tolist()) if heard.shown else set[int]()
        for actor in dict.fromkeys(heard.authors.tolist()):
            place = int(np.flatnonzero(heard.authors == actor)[0])
            if actor in (TRUSTED, heard.reporter) or place in shown or math.isnan(agreement[place]):
                continue
            others = [one for one in compared if heard.authors[one] != actor]
            near = sorted(others, key=lambda one: (abs(one - place), one))[: self.NEIGHBOURS]
            # Two neighbours that were wrong are added: it must not be expected of a candidate what only chance has shown.
            expected = float(sum(agreement[one] for one in near)) / (len(near) + 2.0)
            if expected >= self.TELLING:
                self._count(heard, place, float(agreement[place]), expected, weight)

    def _count(self, heard: Heard, place: int, did: float, expected: float, weight: float) -> None:
        """Add one outcome about a case to the record of the case's author, unless the author itself reported the outcome."""
        author, case = int(heard.authors[place]), int(heard.cases[place])
        if author in (TRUSTED, heard.reporter):
            return
        known = self.established(heard.reporter)
        if not known:
            # The word of one without a good record counts once in all, and under a new name only in part yet: so neither a few
            # nor many new names can praise each other, or slander, for long.
            weight *= self._words.raise_to((author, heard.reporter, did >= expected), self._tenure(heard.reporter))
        record = self._record(author)
        worse = min(self.WORST, math.log((1.0 - self.BAD * expected) / (1.0 - expected)))
        speaks = did * math.log(self.BAD) + (1.0 - did) * worse
        # Without a good record they convict nobody, and praise only where few have one yet.
        heeded = known or (speaks <= 0 and self._reports.of(heard.reporter) >= self.HEEDED and not self._settled())
        witnesses = record.against if speaks > 0 else record.of_it
        if heeded and len(witnesses) < self.MOST_WITNESSES:
            witnesses.add(heard.reporter)
        if not weight:
            return
        weight /= math.sqrt(self._told.note(case) * self._pairs.note((author, heard.reporter)))
        if not self.established(author):
            self._did = self.NEWCOMERS * self._did + weight * did
            self._should = self.NEWCOMERS * self._should + weight * expected
        record.did = self.LATELY * record.did + weight * did
        record.should = self.LATELY * record.should + weight * expected
        record.cases = self._bounded(record.cases + weight * speaks)
        if speaks > 0 and len(record.failed) < self.BAD_CASES:
            record.failed.add(case)
        fails = record.cases >= self.CONVICTED and record.did + 0.5 < self.DOES * (record.should + 0.5)
        broad = len(record.failed) >= self.BAD_CASES and self._enough(record.against)
        if fails and broad and self._convicts:
            self.convicted.add(author)

    def _record(self, actor: int) -> SourceRecord:
        record = self.records[actor] = self.records.pop(actor, None) or SourceRecord()
        if len(self.records) > self.ACTORS:
            self.records.popitem(last=False)
        return record

    def _bounded(self, odds: float) -> float:
        return min(max(odds, self.FLOOR), self.CEILING)

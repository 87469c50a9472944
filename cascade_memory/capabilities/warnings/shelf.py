"""Keeps the failures of one namespace in RAM, with the decisions about their warnings and the results of checks."""

from __future__ import annotations

import bisect
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.warnings.action_words import said_by, words_in
from cascade_memory.capabilities.warnings.consequences import DoneBefore, before
from cascade_memory.capabilities.warnings.places import Mistake
from cascade_memory.capabilities.warnings.records import Blame, Failure, WarningDecision
from cascade_memory.capabilities.warnings.rows import WarningRows
from cascade_memory.capabilities.warnings.value import MOST, WarningValue
from cascade_memory.domain.failure_warning import Tally
from cascade_memory.domain.records import Change
from cascade_memory.domain.trajectory import Step

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

T = TypeVar("T")
_PAGE = 1_000
_COMPARED = 128  # failures whose tasks are compared with the present one, the newest ones
_KEPT = 4_096  # failures whose parsed ``Mistake``, and what was done before them, are kept
_CHECKING = 0x77_61_72_8A  # sets the draws of checks apart from those of recalls; the first ones warn, as the pages show
LONG, SPARING = 0.005, 20.0  # if reading what came of checks takes so many seconds, it rests so many times as long


@dataclass(slots=True)
class Group:
    """A warning: all failures at the same step, the oldest first."""

    id: str
    tool: str | None
    words: frozenset[str]
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def blame(self) -> Blame:
        """What the newest failure is blamed for: its step, and what happened there."""
        return self.failures[-1].blame


class WarningShelf:
    """Holds the data that checks need. If the log reports a change, the next caller reads them again."""

    def __init__(self, name: str, namespace_id: int, ledger: Ledger, rows: WarningRows) -> None:
        self.name, self.namespace_id, self._ledger, self._rows = name, namespace_id, ledger, rows
        self.used = time.monotonic()
        self._lock = threading.Lock()
        self._outdated, self._news, self._settled = True, False, True  # what the log said since the last look
        self._counted, self._next_tallies = False, 0.0
        self._clear()
        self.decisions: Mapping[str, WarningDecision] = {}
        self.tallies: Mapping[str, Tally] = {}
        self._value = WarningValue({})

    def _clear(self) -> None:
        self._groups: dict[str, Group] = {}
        self._by_word: dict[tuple[str | None, str], list[Group]] = {}
        self._frequency: Counter[str] = Counter()
        self._mistakes: dict[int, Mistake] = {}
        self._before: dict[int, DoneBefore] = {}
        self._last = 0
        self.count = 0

    # -- following ---------------------------------------------------------------------------------------------------

    def note(self, change: Change) -> None:
        """Note which data must be read again because of a line of the log."""
        if change.settles:
            self._news = self._settled = True
        elif change.takes_outcomes_back or change.decides or change.purges or change.hides_case or change.shows_case_again:
            self.outdate()

    def outdate(self) -> None:
        """Mark all data as outdated, so that the next ``refresh`` reads them again."""
        self._outdated = self._settled = True

    @property
    def silent(self) -> bool:
        """Whether there is nothing to warn of, according to the log as far as it was read."""
        return not (self._groups or self._outdated or self._news)

    def refresh(self) -> None:
        """Read failures that the log has reported; the results of checks only once, since ``count_up`` reads them later."""
        if not (self._outdated or self._news):
            return
        with self._lock:
            anew, more = self._outdated, self._outdated or self._news
            self._outdated = self._news = False  # before reading: what is written meanwhile is news
            try:
                if anew:
                    self._clear()
                if more:
                    self._read()
                if anew:
                    self.decisions = self._rows.decisions(self.namespace_id) if self._groups else {}
                if self._groups and not self._counted:
                    self._count()
            except BaseException:
                self._outdated = True
                raise

    def count_up(self, *, at_once: bool = False) -> None:
        """Read the results of checks if they may have changed; less often if reading is slow, unless ``at_once``."""
        if self._is_outcome_new(at_once):
            with self._lock:
                if self._is_outcome_new(at_once):  # nobody was quicker
                    self._count()

    def _is_outcome_new(self, at_once: bool) -> bool:
        return bool(self._groups) and self._settled and (at_once or time.monotonic() >= self._next_tallies)

    def _read(self) -> None:
        while found := self._rows.failures(self.namespace_id, self._last, _PAGE):
            for failure in found:
                self._add(failure)
            self._last = found[-1].key
            if len(found) < _PAGE:
                return

    def _add(self, failure: Failure) -> None:
        blame = failure.blame
        group = self._groups.get(blame.group)
        if group is None:
            group = self._groups[blame.group] = Group(blame.group, blame.tool, frozenset(blame.words))
            self._frequency.update(group.words)
            rarest = min(sorted(group.words), key=lambda word: self._frequency[word], default="")
            self._by_word.setdefault((blame.tool, rarest), []).append(group)
        group.failures.append(failure)
        self.count += 1

    def _count(self) -> None:
        began = time.monotonic()
        self._settled, self._counted = False, True
        try:
            self.tallies = self._rows.tallies(self.namespace_id)
        except BaseException:
            self._settled = True
            raise
        self._value = WarningValue(self.tallies, {name: group.blame.why for name, group in self._groups.items()})
        took = time.monotonic() - began
        self._next_tallies = began + SPARING * took if took > LONG else 0.0

    # -- asking ------------------------------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        """Return all warnings."""
        with self._lock:
            return list(self._groups.values())

    def group(self, warning: str) -> Group | None:
        """Return one warning."""
        return self._groups.get(warning)

    def matching(self, step: Step) -> list[Group]:
        """Return the warnings whose tool and words all occur in an action."""
        if not self._groups:
            return []
        words = {"", *words_in(said_by(step))}
        with self._lock:
            return [group for word in words for group in self._by_word.get((step.tool, word), ()) if group.words <= words]

    def nearest(self, groups: Collection[Group], vector: NDArray[np.float32]) -> list[Failure]:
        """Return the failures of warnings, those of the most similar tasks first."""
        with self._lock:
            found = sorted((one for group in groups for one in group.failures), key=lambda one: -one.key)[:_COMPARED]
        return nearest_first([one for one in found if one.vector.shape == vector.shape], vector)

    def mistake(self, failure: Failure) -> Mistake:
        """Return the ``places.Mistake`` of a failure. It is kept, since later checks need what it has found out."""
        found = self._mistakes.get(failure.key)
        if found is None or found.blame is not failure.blame:  # the failures were read anew meanwhile
            found = Mistake(failure.blame)
            self._keep(self._mistakes, failure, found)
        return found

    def before(self, failure: Failure) -> DoneBefore:
        """Return what was done in the run of a failure before the blamed step, as far as that run is stored."""
        found = self._before.get(failure.key)
        if found is None:
            episode = self._ledger.episodes.one(failure.episode_id)
            found = DoneBefore() if episode is None else before(episode.solution, failure.blame)
            self._keep(self._before, failure, found)
        return found

    def _keep(self, kept: dict[int, T], failure: Failure, found: T) -> None:
        """Keep what was found out about a failure, unless it may have been forgotten meanwhile."""
        with self._lock:
            failures = self._groups[failure.blame.group].failures if failure.blame.group in self._groups else []
            place = bisect.bisect_left(failures, failure.key, key=lambda one: one.key)
            if place < len(failures) and failures[place] is failure:
                if len(kept) >= _KEPT:
                    kept.clear()
                kept[failure.key] = found

    def chance(self, warning: str) -> float:
        """Return the probability with which a warning is to be given; 0 if a person has retired it."""
        decided, group = self.decisions.get(warning), self._groups.get(warning)
        if decided is None or decided.retired is None:
            return self._value.chance(warning, "failed" if group is None else group.blame.why)
        return 0.0 if decided.retired else MOST

    def retired_by_hand(self, warning: str) -> bool:
        """Whether a person has decided that a warning is never given."""
        decided = self.decisions.get(warning)
        return decided is not None and decided.retired is True

    def draw(self, episode: int, earlier: int) -> float:
        """Return the random number of a check: the same in every process, but another one for each episode and check."""
        return float(np.random.default_rng([self.namespace_id, _CHECKING, episode, earlier]).random())


def nearest_first(failures: Sequence[Failure], vector: NDArray[np.float32]) -> list[Failure]:
    """Order failures by how similar their tasks are."""
    if len(failures) < 2:
        return list(failures)
    cosines = np.stack([one.vector for one in failures]) @ vector
    return [failures[place] for place in np.argsort(-cosines, kind="stable").tolist()]

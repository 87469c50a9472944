"""What one outcome says about actors, and how much of it is new. Actors are numbers here.

``Praise`` notices actors who praise only each other, and ``Turns`` those who take more than their share.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

TRUSTED = -1  # whoever needs no record, such as a person


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """The parts of an outcome that say something about actors. The n candidates are in descending order of similarity.

    ``predicted`` is the success that the policy expected of the shown cases; it is nan if the policy made no prediction.
    ``agreement`` (n,) has the labels in hindsight; it is None if there are none.
    """

    key: int
    reporter: int
    reward: float
    predicted: float
    authors: NDArray[np.int64]
    cases: NDArray[np.int64]
    chosen: NDArray[np.int64]
    shown: bool
    agreement: Floats | None

    @property
    def agreeing(self) -> set[int]:
        """The authors of the candidates with the verified solution."""
        return set() if self.agreement is None else set(self.authors[self.agreement > 0].tolist())

    @property
    def praised(self) -> set[int]:
        """The authors of the candidates with the verified solution or, if there are none, the authors of the shown cases."""
        return self.agreeing or (set(self.authors[self.chosen].tolist()) if self.shown else set())

    @property
    def draw(self) -> float:
        """A pseudo-random number between 0 and 1 that depends on the key only."""
        return ((self.key * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF) / 2.0**64


class Counted:
    """Counts things; if there are more than ``most``, forgets the one that was not counted for the longest time.

    >>> counted = Counted(most=2)
    >>> counted.note("a"), counted.note("b"), counted.note("a"), counted.note("c"), counted.of("b")
    (1, 1, 2, 1, 0)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: OrderedDict[object, float] = OrderedDict()

    def note(self, what: object) -> int:
        """Count something; return how often it was counted."""
        found = self.of(what) + 1
        self._keep(what, found)
        return found

    def of(self, what: object) -> int:
        """Return how often something was counted."""
        return int(self._counts.get(what, 0))

    def raise_to(self, what: object, part: float) -> float:
        """Raise the count of something to ``part`` if it is lower; return by how much the count rose.

        >>> words = Counted(most=2)
        >>> words.raise_to("a", 0.25), words.raise_to("a", 1.0), words.raise_to("a", 0.5)
        (0.25, 0.75, 0.0)
        """
        before = self._counts.get(what, 0.0)
        self._keep(what, max(before, part))
        return max(before, part) - before

    def _keep(self, what: object, count: float) -> None:
        self._counts[what] = count
        self._counts.move_to_end(what)
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)


class Praise:
    """Counts which reporters' outcomes praised which authors (``Heard.praised``), and knows whether solutions recur.

    If a liar makes up the same solution again and again, the solution recurs for this liar alone. If the liar's outcomes
    taught, the ranker would believe that all solutions recur, and that only those of the liar are right.
    """

    RECUR = 0.2  # share of the outcomes, and of their reporters, from which on solutions are said to recur
    # So many reporters are counted as if nothing recurred for them, unless somebody trusted says that it does: two who come
    # first are no majority.
    UNHEARD = 10
    PAIRS = 65_536  # of an author and a reporter

    def __init__(self) -> None:
        self._verified: deque[tuple[int, bool]] = deque(maxlen=Turns.WINDOW)  # reporters of solutions; whether another had them
        self._pairs = Counted(self.PAIRS)

    def note_verified(self, heard: Heard) -> None:
        """Note whether a candidate by another actor than the reporter has the verified solution."""
        if heard.agreement is not None and len(heard.agreement):
            self._verified.append((heard.reporter, bool(heard.agreeing - {heard.reporter})))

    def note(self, heard: Heard) -> None:
        """Count each pair of a praised author and the reporter, for an outcome that teaches."""
        for author in heard.praised:
            self._pairs.note((author, heard.reporter))

    def is_news(self, heard: Heard, established: Callable[[int], bool], tenure: Callable[[int], float]) -> bool:
        """Say whether an outcome may teach: no actor may praise only itself, unless it is established.

        An outcome of an established reporter, or one that praises nobody, may always teach. Any other outcome in which a
        candidate has the verified solution may teach only where solutions recur for many reporters. If no praised author is
        established either, the second outcome by which this reporter praises this author teaches with probability 1/2, the
        third with 1/3, and so on. ``tenure`` says how far a reporter counts, from 0 to 1: new ones count less.
        """
        praised = heard.praised
        if not praised or established(heard.reporter):
            return True
        if heard.agreeing and not self._recurring(tenure):
            return False
        if any(established(author) for author in praised):
            return True
        others = [self._pairs.of((author, heard.reporter)) for author in praised if author != heard.reporter]
        return bool(others) and heard.draw * (min(others) + 1) < 1.0

    def _recurring(self, tenure: Callable[[int], float]) -> bool:
        """Say whether solutions recur: in many of the last outcomes, and for many of the actors who reported these outcomes."""
        recurred = [reporter for reporter, agreed in self._verified if agreed]
        known, whom = (math.fsum(map(tenure, some)) for some in ({one for one, _ in self._verified}, set(recurred)))
        unheard = 0 if TRUSTED in recurred else self.UNHEARD
        shares = len(recurred) / max(1, len(self._verified)), whom / max(1.0, known + unheard)
        return min(shares) >= self.RECUR


class Turns:
    """Counts the turns of actors over a window. A turn is an outcome that the actor reported, or a case of it that was shown.

    >>> turns = Turns()
    >>> for number in range(100):
    ...     turns.note(0 if number % 2 else number % 20)
    >>> turns.active, round(turns.left_for(0, fair=0.1), 2), turns.left_for(2, fair=0.1)
    (10, 0.18, 1.0)
    """

    WINDOW = 256

    def __init__(self) -> None:
        self._last: deque[tuple[int, float]] = deque(maxlen=self.WINDOW)
        self._counts: Counter[int] = Counter()
        self._weights: defaultdict[int, float] = defaultdict(float)

    def note(self, actor: int, weight: float = 1.0) -> None:
        """Count a turn; ``weight`` is the number of turns it stands for: above 1 if the cases of the actor are seldom shown."""
        if len(self._last) == self.WINDOW:
            oldest, its = self._last[0]
            self._counts[oldest] -= 1
            self._weights[oldest] -= its
            if not self._counts[oldest]:
                del self._counts[oldest], self._weights[oldest]
        self._last.append((actor, weight))
        self._counts[actor] += 1
        self._weights[actor] += weight

    @property
    def actors(self) -> Collection[int]:
        """The actors who had one of the last turns."""
        return self._counts.keys()

    @property
    def active(self) -> int:
        """The number of actors who had one of the last turns."""
        return len(self._counts)

    def quantile(self, values: Mapping[int, float], share: float) -> float:
        """Return a quantile of the actors' values, in which each actor is weighted by how many of the last turns it had.

        >>> turns = Turns()
        >>> for actor in (1, 1, 1, 2, 3):
        ...     turns.note(actor)
        >>> turns.quantile({1: 30.0, 2: 20.0, 3: 10.0}, 0.3), turns.quantile({1: 30.0, 2: 20.0, 3: 10.0}, 0.5)
        (20.0, 30.0)
        """
        passed, wanted = 0, share * len(self._last)
        for actor in sorted(self._counts, key=values.__getitem__):
            passed += self._counts[actor]
            if passed >= wanted:
                return values[actor]
        return 0.0

    def left_for(self, actor: int, fair: float) -> float:
        """Return which share of an actor's turns counts: below 1 if it had more than is fair, and more than chance explains."""
        n = max(1, len(self._last))
        takes = self._weights.get(actor, 0.0) / n
        return fair / takes if takes > fair + 2.0 * math.sqrt(fair * (1.0 - fair) / n) else 1.0

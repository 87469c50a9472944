"""Whether an outcome says something new, or a few actors praise each other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from cascade_memory.bandit.heard import TRUSTED, Counted, Heard
from cascade_memory.bandit.turns import Turns


class Praise:
    """Knows who has spoken for whom, and whether solutions recur here.

    A solution that a liar makes up again and again recurs for this liar alone. If such outcomes taught, the ranker would
    believe that all solutions recur, and that only those of the liar are right.
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
        """Note whether the verified solution of an outcome is also that of another actor's candidate."""
        if heard.agreement is not None and len(heard.agreement):
            self._verified.append((heard.reporter, bool(heard.agreeing - {heard.reporter})))

    def note(self, heard: Heard) -> None:
        """Note whom an outcome that teaches has spoken for."""
        for author in heard.praised:
            self._pairs.note((author, heard.reporter))

    def is_news(self, heard: Heard, established: Callable[[int], bool], tenure: Callable[[int], float]) -> bool:
        """Say whether an outcome may teach: nobody is a witness in its own cause.

        If its reporter has no good record, solutions that recur for a few only do not count. If none of those for whom it
        speaks has one either, the second word of a reporter for an author counts half, the third a third.
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
        """Say whether solutions recur: in many of the last outcomes, and for many of those who reported them."""
        recurred = [reporter for reporter, agreed in self._verified if agreed]
        known, whom = (math.fsum(map(tenure, some)) for some in ({one for one, _ in self._verified}, set(recurred)))
        unheard = 0 if TRUSTED in recurred else self.UNHEARD
        shares = len(recurred) / max(1, len(self._verified)), whom / max(1.0, known + unheard)
        return min(shares) >= self.RECUR

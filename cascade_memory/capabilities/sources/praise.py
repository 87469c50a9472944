"""Decides whether an outcome says something new, or whether a few actors only praise each other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from cascade_memory.capabilities.sources.heard import TRUSTED, Counted, Heard
from cascade_memory.capabilities.sources.turns import Turns


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

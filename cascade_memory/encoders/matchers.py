"""Matchers: they judge whether two solutions agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cascade_memory.domain.trajectory import Solution, Trajectory, solution_text
from cascade_memory.ports.encoders import Embedder, SolutionMatcher


def normalised(solution: Solution) -> str:
    r"""Return a solution as it is compared: a text in lower case without extra space, a trajectory as its actions.

    >>> normalised("  Visa or\nMastercard ")
    'visa or mastercard'
    """
    if isinstance(solution, Trajectory):
        return "\n".join(_plain(step.action) for step in solution.steps if step.action)
    return _plain(solution)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()  # splits where "\\s" matches, several times as fast


class ExactMatcher:
    """Solutions agree if they are equal after normalisation. If they differ and one is a trajectory, the answer is unknown.

    >>> ExactMatcher().agreement("Paris", ["paris ", "Lyon"])
    [1.0, 0.0]
    """

    def key(self, solution: Solution) -> str:
        """Return the normalised text."""
        return normalised(solution)

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> list[float]:
        """Return 1 for equal solutions, 0 for different texts, and nan (unknown) if they differ and one is a trajectory."""
        wanted = self.key(verified)
        return [
            self.by_key(verified, "trajectory" if isinstance(one, Trajectory) else "text", equal=self.key(one) == wanted)
            for one in stored
        ]

    def by_key(self, verified: Solution, kind: str, *, equal: bool) -> float:
        """Return the agreement with a stored solution of which only the kind, and whether its key is equal, are known."""
        if equal:
            return 1.0
        return float("nan") if kind == "trajectory" or isinstance(verified, Trajectory) else 0.0


class EmbeddingMatcher:
    """Solutions agree if their meanings are close: the agreement rises from 0 at the cosine ``low`` to 1 at ``high``."""

    def __init__(self, embedder: Embedder, *, low: float = 0.6, high: float = 0.9) -> None:
        self._embedder, self._low, self._high = embedder, low, high

    def key(self, solution: Solution) -> str:
        """Return the normalised text: equal solutions certainly agree."""
        return normalised(solution)

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> list[float]:
        """Return the scaled cosine of each stored solution."""
        if not stored:
            return []
        vectors = self._embedder.embed([solution_text(verified), *map(solution_text, stored)])
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        scaled = (vectors[1:] @ vectors[0] - self._low) / (self._high - self._low)
        return [float(min(1.0, max(0.0, value))) for value in scaled]


class FunctionMatcher:
    """The user's own function: ``function(verified, stored)`` returns a bool or a number in [0, 1]; None means unknown.

    >>> FunctionMatcher(lambda a, b: str(a)[0] == str(b)[0]).agreement("yes", ["yeah", "no"])
    [1.0, 0.0]
    """

    def __init__(self, function: Callable[[Solution, Solution], float | bool | None]) -> None:
        self._function = function

    def key(self, solution: Solution) -> str:
        """Return the normalised text: equal solutions certainly agree."""
        return normalised(solution)

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> list[float]:
        """Ask the function about each stored solution."""
        answers = (self._function(verified, one) for one in stored)
        return [float("nan") if answer is None else min(1.0, max(0.0, float(answer))) for answer in answers]


class CarefulMatcher:
    """Wraps a user's matcher: if it fails, the answer is unknown (nan), and the failure is reported.

    >>> failures = []
    >>> careful = CarefulMatcher(FunctionMatcher(lambda a, b: float(a) == float(b)), lambda step, error: failures.append(step))
    >>> careful.agreement("3.5", ["n/a", "3.50"]), failures
    ([nan, nan], ['matcher'])
    """

    def __init__(self, matcher: SolutionMatcher, report: Callable[[str, Exception], None]) -> None:
        self._matcher, self._report = matcher, report
        exact, kind = ExactMatcher, type(matcher)
        self.by_key: Callable[..., float] | None = None  # judges by keys alone; None if the matcher cannot
        if isinstance(matcher, exact) and (kind.key, kind.agreement) == (exact.key, exact.agreement):
            self.by_key = matcher.by_key

    def key(self, solution: Solution) -> str:
        """Return the matcher's key, or the normalised text."""
        try:
            return str(self._matcher.key(solution))
        except Exception as error:  # noqa: BLE001 - the outcome must be stored also if the matcher fails
            self._report("matcher", error)
            return normalised(solution)

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> list[float]:
        """Return the matcher's judgements within [0, 1], or nan for all if it fails."""
        try:
            judged = zip(stored, self._matcher.agreement(verified, stored), strict=True)
            found = [float(value) for _, value in judged]
        except Exception as error:  # noqa: BLE001
            self._report("matcher", error)
            return [float("nan")] * len(stored)
        return [min(1.0, max(0.0, value)) if value == value else value for value in found]

"""What every ``SolutionMatcher`` must do."""

from __future__ import annotations

import math

from cascade_memory import Step, Trajectory
from cascade_memory.ports import SolutionMatcher


class SolutionMatcherContract:
    """Subclass it, return a matcher from ``make``, and let pytest collect it."""

    def make(self) -> SolutionMatcher:
        """Return the matcher under test."""
        raise NotImplementedError

    def test_one_answer_per_stored_solution_in_the_unit_interval_or_unknown(self) -> None:
        """This holds for texts and trajectories, equal or different."""
        walk = Trajectory([Step(action="look")])
        answers = self.make().agreement("Paris", ["Paris", "paris ", "Lyon", walk])
        assert len(answers) == 4
        assert all(math.isnan(one) or 0.0 <= one <= 1.0 for one in answers)
        assert list(self.make().agreement("Paris", [])) == []

    def test_equal_keys_agree(self) -> None:
        """Clusters are built by key, so solutions with equal keys must agree."""
        matcher = self.make()
        assert matcher.key("Paris") == matcher.key("Paris")
        assert matcher.agreement("Paris", ["Paris"])[0] == 1.0

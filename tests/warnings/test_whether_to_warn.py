"""Whether to warn is learned: useless warnings stop, useful ones go on, and the shares of both are logged.

The agents are SIMULATED: a share of the episodes comes to one of the known mistakes; after a warning an agent avoids it or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from inside import engine_of
from warned import mistaken
from warning_rows import rows_in

from cascade_memory import CascadeMemory, Step
from cascade_memory.capabilities.warnings.value import FIRST, FLOOR, MOST, SURE, WarningValue
from cascade_memory.domain.failure_warning import Tally

MISTAKES = 12


@dataclass
class Lived:
    """What came of a stream: for each episode whether the agent came to a mistake, and whether it was warned."""

    matched: list[bool] = field(default_factory=list)
    warned: list[bool] = field(default_factory=list)

    def share(self, since: int, *, of_matches: bool = False) -> float:
        """Return the share of warned episodes, among all since then, or among those that came to a mistake."""
        matched, warned = np.array(self.matched[since:]), np.array(self.warned[since:])
        return float(warned.sum() / (matched.sum() if of_matches else len(warned)))


def live(
    seed: int, *, heeds: float, episodes: int = 620, comes: float = 0.6, fresh: float = 0.0
) -> tuple[Lived, CascadeMemory]:
    """Let agents work who heed a warning with a probability; ``fresh`` is the share of mistakes that nobody has made before."""
    rng = np.random.default_rng(seed)
    memory = CascadeMemory(embedder="hashing", learn="inline")
    lived = Lived()
    for number in range(episodes):
        recall = memory.recall(f"task {number} about customers", episode_id=f"{seed} {number}")
        comes_to_it, heeds_it = rng.random() < comes, rng.random() < heeds
        new = rng.random() < fresh
        column = f"fresh_{_letters(number)}" if new else f"column_{_letters(int(rng.integers(MISTAKES)))}"
        fine = rng.random() < 0.7
        step = mistaken(column)
        advice = memory.warnings.check(recall.episode_id, tool="sql", arguments=dict(step.arguments)) if comes_to_it else None
        avoids = advice is not None and heeds_it
        done = step if comes_to_it and not avoids else Step(action="look", observation="ok")
        ends_well = fine and (not comes_to_it or avoids)
        memory.reward(recall.episode_id, ends_well, solution=[done], source="env")
        lived.matched.append(comes_to_it and (number >= 100 or advice is not None or bool(memory.warnings.all(k=1))))
        lived.warned.append(advice is not None)
    return lived, memory


def _letters(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(number))


_SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.long
def test_useless_warnings_stop(seed: int):
    lived, memory = live(seed, heeds=0.0)
    assert lived.share(500) <= 0.02
    assert any(lived.warned[:200])
    assert {one.state for one in memory.warnings.all()} == {"retired"}
    memory.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.long
def test_useful_warnings_go_on(seed: int):
    lived, memory = live(seed, heeds=0.8)
    assert lived.share(300, of_matches=True) >= 0.8
    assert "retired" not in {one.state for one in memory.warnings.all() if one.tally.warned >= 5}
    memory.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 13))
def test_so_it_is_with_other_seeds_and_rarer_mistakes(seed: int):
    lived, memory = live(seed, heeds=0.0, comes=0.3, fresh=0.3)
    assert lived.share(500) <= 0.02
    memory.close()
    lived, memory = live(seed, heeds=0.6, comes=0.3, fresh=0.3)
    assert lived.share(500) >= 0.01  # most fresh ones are made once, and nobody comes to them again
    memory.close()


@pytest.mark.long
def test_new_warnings_where_warnings_do_not_help_begin_at_the_floor():
    _, memory = live(5, heeds=0.0)
    recall = memory.recall("another task")
    memory.reward(recall.episode_id, 0.0, solution=[mistaken("brand_new")], source="env")
    (new,) = [one for one in memory.warnings.all() if "brand_new" in one.action]
    assert new.state == "retired"
    memory.close()


def test_every_decision_is_logged_with_its_probability():
    lived, memory = live(1, heeds=0.8, episodes=60)
    ledger = engine_of(memory).parts.ledger
    checks = [one for number in range(60) for one in rows_in(ledger).checks(f"1 {number}")]
    assert {one.warned for one in checks} == {True, False}
    assert all(FLOOR <= one.propensity <= SURE for one in checks)
    assert all(one.repeated is not None and one.reward is not None for one in checks)
    assert sum(one.warned for one in checks) == sum(lived.warned)
    memory.close()


# -- the value alone ---------------------------------------------------------------------------------------------------


def simulated(seed: int, n: int, *, without: float, after: float, ends: tuple[float, float] = (0.3, 0.3)) -> float:
    """Return the probability with which a warning is given after n decisions."""
    rng = np.random.default_rng(seed)
    counts: dict[str, float] = dict.fromkeys(Tally.__dataclass_fields__, 0)
    chance = WarningValue({}).chance("w")
    for number in range(n):
        if number % (1 + number // 50) == 0:
            whole = {name: value if "reward" in name else int(value) for name, value in counts.items()}
            chance = WarningValue({"w": Tally(**whole)}).chance("new")  # type: ignore[arg-type]
        warned = rng.random() < chance
        arm = "warned" if warned else "silent"
        counts[arm] += 1
        counts[f"{arm}_repeated"] += rng.random() < (after if warned else without)
        counts[f"{arm}_reward"] += float(rng.random() < ends[0 if warned else 1])
    return chance


def test_before_anything_is_known_nearly_all_are_warned():
    assert WarningValue({}).chance("w") == MOST


def test_the_first_ones_are_warned_and_then_more_stay_silent_until_it_is_known_whether_that_helps():
    def after(episodes: int) -> float:
        tally = Tally(warned=episodes - 2, warned_repeated=episodes // 4, silent=2, silent_repeated=1)
        return WarningValue({"w": tally}).chance("another one")

    assert after(FIRST - 1) == MOST
    assert 0.3 < after(FIRST) < MOST


def test_the_first_ones_are_not_warned_either_once_it_is_known_that_it_does_harm():
    tally = Tally(warned=6, warned_repeated=6, silent=5, silent_repeated=0)
    assert WarningValue({"w": tally}).chance("w") == FLOOR


@pytest.mark.parametrize("without", [0.3, 0.6, 0.95])
def test_useless_ones_fall_to_the_floor(without: float):
    chances = [simulated(seed, 500, without=without, after=without) for seed in range(12)]
    assert np.mean(chances) <= 0.02
    assert max(chances) <= 0.1


@pytest.mark.parametrize(("without", "after"), [(0.6, 0.15), (0.95, 0.2), (0.95, 0.6), (0.5, 0.05)])
def test_useful_ones_rise(without: float, after: float):
    chances = [simulated(seed, 300, without=without, after=after) for seed in range(12)]
    assert np.mean([chance >= 0.8 for chance in chances]) >= 0.9
    assert max(chances) <= SURE


def test_fewer_repeats_that_cost_success_are_not_worth_it():
    chances = [simulated(seed, 300, without=0.6, after=0.3, ends=(0.2, 0.8)) for seed in range(8)]
    assert np.mean(chances) <= 0.05


def test_better_endings_count_as_well():
    chances = [simulated(seed, 300, without=0.9, after=0.9, ends=(0.8, 0.2)) for seed in range(8)]
    assert np.mean(chances) >= 0.7


def test_one_warning_may_be_useless_among_useful_ones():
    useful = Tally(warned=90, warned_repeated=9, warned_reward=60.0, silent=30, silent_repeated=27, silent_reward=10.0)
    useless = Tally(warned=40, warned_repeated=37, warned_reward=8.0, silent=30, silent_repeated=28, silent_reward=6.0)
    value = WarningValue({"good": useful, "bad": useless})
    assert value.chance("good") >= 0.85
    assert value.chance("bad") == FLOOR
    assert value.chance("new") > 0.5


def test_useless_warnings_of_one_kind_say_nothing_about_another_kind():
    useless = Tally(warned=90, warned_repeated=81, warned_reward=20.0, silent=90, silent_repeated=81, silent_reward=20.0)
    value = WarningValue({"bad": useless}, {"bad": "refused"})
    assert value.chance("new", "refused") == FLOOR
    assert value.chance("new", "failed") == WarningValue({}).chance("new")


def counted(warned: int, repeated: int, silent: int, silent_repeated: int) -> Tally:
    """Return what came of a warning that changes nothing in how episodes end."""
    return Tally(
        warned=warned,
        warned_repeated=repeated,
        warned_reward=warned / 2,
        silent=silent,
        silent_repeated=silent_repeated,
        silent_reward=silent / 2,
    )


def test_like_is_compared_with_like():
    useful = {f"useful {one}": counted(90, 47, 10, 9) for one in range(5)}  # these are given often: it helps
    useless = {
        f"useless {one}": counted(10, 1, 90, 9) for one in range(5)
    }  # these seldom, of mistakes that are seldom repeated
    value = WarningValue({**useful, **useless})
    assert min(value.chance(name) for name in useful) > 0.5
    assert max(value.chance(name) for name in useless) <= 0.1
    assert value.chance("new") > 0.3


def test_what_differs_between_mistakes_is_no_effect_of_warning():
    often = {f"often {one}": counted(10, 9, 90, 81) for one in range(5)}
    seldom = {f"seldom {one}": counted(90, 9, 10, 1) for one in range(5)}
    assert WarningValue({**often, **seldom}).chance("new") == FLOOR


def test_warnings_that_were_checked_once_count_together():
    once = {f"{one}": counted(1, 0, 0, 0) if one % 2 else counted(0, 0, 1, 1) for one in range(60)}
    assert WarningValue(once).chance("new") > 0.85
    never = {f"{one}": counted(1, 1, 0, 0) if one % 2 else counted(0, 0, 1, 1) for one in range(200)}
    assert WarningValue(never).chance("new") <= 0.02


@pytest.mark.parametrize(("episodes", "chance"), [(40, MOST), (60, SURE)])
def test_the_share_of_silent_episodes_shrinks_only_after_many(episodes: int, chance: float):
    helps = Tally(warned=episodes, warned_reward=episodes, silent=episodes, silent_repeated=episodes)
    assert WarningValue({"w": helps}).chance("w") == chance

"""``memory.report()``: intervals that hold, arms compared as chance made them, plain words where nothing is known."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Ranking, Retention
from cascade_memory.bandit import intervals
from cascade_memory.bandit.intervals import Interval, difference, mean, student
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.cli import main
from cascade_memory.encoders.one_feature import CosineEncoder
from cascade_memory.insight.report import Report
from cascade_memory.learning.ranker import Ranker

_HELPS = {"right": 0.85, "wrong": 0.25}
_ALONE = 0.45


def _stream(seed: int, n: int, ranking: Ranking = Ranking(), **options: object) -> tuple[Report, float]:
    """A stream whose true lift is known: what would have been shown decides how likely success is. Return it as well.

    The memory begins with cases, and gets one with every success, so that the lift changes on the way.
    """
    rng = np.random.default_rng(seed)
    memory = CascadeMemory(embedder="hashing", learn="inline", ranking=dataclasses.replace(ranking, matcher=None), **options)  # type: ignore[arg-type]
    memory.add([(f"thing {i}", "right" if i % 3 else "wrong") for i in range(9)], progress=False)
    lifts = []
    for _ in range(n):
        recall = memory.recall(f"thing {rng.integers(9)} and {rng.integers(3)}", episode_id=rng.bytes(8).hex())
        would = next((one for one in recall.explain().candidates if one.chosen), None)
        assert would is not None
        with_case = _HELPS[str(memory.cases.get(would.id).solution)]
        abstains = recall.arm == "live" and recall.abstained
        lifts.append((_ALONE if abstains else with_case) - _ALONE)
        assert not (recall.cases and recall.arm == "holdout")
        reward = float(rng.random() < (with_case if recall.cases else _ALONE))
        memory.reward(recall.episode_id, reward, solution="right" if rng.random() < 0.7 else "wrong")
    report = memory.report()
    memory.close()
    return report, float(np.mean(lifts))


@pytest.mark.long
def test_the_interval_of_the_lift_covers_the_truth_in_nine_runs_of_ten():
    covered, widths = 0, []
    for seed in range(40):
        report, truth = _stream(seed, 60, ranking=Ranking(holdout=0.3), ranker="similarity")
        assert report.lift is not None
        covered += report.lift.low <= truth <= report.lift.high
        widths.append(report.lift.high - report.lift.low)
    assert covered >= 36
    assert np.mean(widths) < 0.6  # an interval that says nothing covers as well


# -- intervals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two", "n", "m"), [(0.6, 0.4, 20, 20), (0.9, 0.95, 200, 10), (1.0, 0.7, 50, 5), (0.3, 0.3, 400, 20)]
)
def test_newcombe_s_interval_covers_also_of_few(one, two, n, m):
    rng = np.random.default_rng(0)
    found = [difference((rng.random(n) < one).astype(float), (rng.random(m) < two).astype(float)) for _ in range(2_000)]
    assert np.mean([each.low <= one - two <= each.high for each in found]) >= 0.93
    assert all(-1 <= each.low <= each.estimate <= each.high <= 1 for each in found)


def test_newcombe_s_interval_is_the_one_he_published():
    found = difference(np.repeat([1.0, 0.0], [56, 14]), np.repeat([1.0, 0.0], [48, 32]))
    assert (round(found.low, 4), round(found.high, 4)) == (0.0524, 0.3339)  # method 10 of his table II


@pytest.mark.long
def test_welch_s_interval_covers_where_the_spreads_differ():
    rng = np.random.default_rng(1)
    found = [difference(rng.beta(2, 2, 40), rng.beta(8, 4, 6)) for _ in range(2_000)]
    assert np.mean([each.low <= 0.5 - 2 / 3 <= each.high for each in found]) >= 0.94  # of six it is wider than it must be
    found = [difference(rng.beta(2, 2, 300), rng.beta(8, 4, 150)) for _ in range(2_000)]
    assert np.mean([each.low <= 0.5 - 2 / 3 <= each.high for each in found]) == pytest.approx(0.95, abs=0.02)
    many = difference(np.tile([0.2, 0.5, 0.8], 400), np.tile([0.4, 0.6], 600))
    assert many.high - many.low == pytest.approx(2 * 1.96 * np.sqrt((0.06 + 0.01) / 1200), rel=0.05)  # as usual, of many


@pytest.mark.parametrize("m", [5, 8, 15, 30, 60])
@pytest.mark.parametrize("often", [(0.1, 0.3, 0.6), (0.05, 0.35, 0.6), (0.7, 0.2, 0.1)])
def test_few_graded_rewards_of_which_a_few_fail_cover_the_truth(m, often):
    rng = np.random.default_rng(3)
    grades = np.array([0.0, 0.9, 1.0])
    found = [difference(rng.choice(grades, 150, p=often), rng.choice(grades, m, p=often)) for _ in range(1_000)]
    assert np.mean([each.low <= 0.0 <= each.high for each in found]) >= 0.935  # Welch's alone: 0.58 of five


def test_student_s_quantiles_are_those_of_the_tables():
    for freedom, quantile in ((1, 12.706), (2, 4.303), (4.5, 2.659), (30, 2.042), (1_000, 1.962), (10_000, 1.960)):
        assert student(freedom) == pytest.approx(quantile, abs=0.002)


def test_one_number_says_nothing():
    assert mean(np.array([0.4])) == Interval(0.4, 0.0, 1.0)
    assert difference(np.array([0.4]), np.array([0.2, 0.3])).low < -0.6


def test_a_few_graded_numbers_that_are_alike_are_no_certainty():
    alike = difference(np.array([0.4, 0.4]), np.array([0.3, 0.3]))
    assert alike.low < -0.4
    assert alike.high > 0.5
    assert mean(np.full(40, 0.7)).low < 0.67
    assert mean(np.full(40, 0.7)).high < 0.75
    one_sided = difference(np.linspace(0.2, 0.8, 30), np.array([0.5, 0.5]))
    assert one_sided.high - one_sided.low > 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(2, 2), (40, 2), (3, 30), (12, 4)])
def test_the_intervals_of_few_graded_rewards_that_are_often_alike_cover_the_truth(n, m):
    rng = np.random.default_rng(2)
    grades, often = np.array([0.0, 0.5, 0.6, 1.0]), np.array([0.2, 0.6, 0.1, 0.1])
    truth = float(grades @ often)
    found = [difference(rng.choice(grades, n, p=often), rng.choice(grades, m, p=often)) for _ in range(2_000)]
    assert np.mean([each.low <= 0.0 <= each.high for each in found]) >= 0.94
    levels = [mean(rng.choice(grades, m, p=often)) for _ in range(2_000)]
    assert np.mean([each.low <= truth <= each.high for each in levels]) >= 0.92


# -- who is compared with whom -----------------------------------------------------------------------------------------


def _reward(memory: CascadeMemory, arm: str, value: float, **options: object) -> None:
    """Open episodes until one is in this arm, and leave the others open."""
    while (recall := memory.recall("some task")).arm != arm:
        pass
    memory.reward(recall.episode_id, value, **options)  # type: ignore[arg-type]


def test_episodes_of_another_time_are_no_control_group(on_disk):
    with on_disk(retention=Retention(retain_at=0.9)) as memory:
        for _ in range(50):  # hard times, all of them with memory
            memory.reward(memory.recall("some task").episode_id, 0.0)
    with on_disk(ranking=Ranking(holdout=0.5)) as memory:
        for _ in range(8):
            _reward(memory, "live", 1.0)
            _reward(memory, "holdout", 1.0)
        report = memory.report()
    assert report.episodes == 66
    assert (report.live.judged, report.holdout.judged) == (8, 8)
    assert report.lift is not None
    assert report.lift.estimate == 0.0


def test_shares_that_changed_are_compared_each_for_itself(on_disk):
    for share, reward in ((0.5, 0.0), (0.2, 1.0)):  # the second time, tasks are easy and few are held out
        with on_disk(ranking=Ranking(holdout=share)) as memory:
            for i in range(12):
                _reward(memory, "live" if (share == 0.2 and i) or i % 2 else "holdout", reward)
    with on_disk() as memory:
        report = memory.report()
    assert report.lift is not None
    assert report.lift.estimate == 0.0
    assert report.live.success is not None
    assert report.holdout.success is not None
    assert report.live.success.estimate > report.holdout.success.estimate + 0.4  # what a plain comparison would have said


def test_an_episode_in_which_nothing_was_worth_showing_counts_as_one_with_memory():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.5), ranker="zero-shot") as memory:
        memory.add("some task", "s")
        for _ in range(4):
            _reward(memory, "live", 1.0)
            _reward(memory, "holdout", 0.0)
        report = memory.report()
    assert (report.live.judged, report.holdout.judged) == (4, 4)
    assert report.shown == 0


def test_an_agent_s_own_word_is_no_measurement():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.5)) as memory:
        _reward(memory, "live", 1.0, source="agent")
        memory.review.propose("q", "s")
        assert memory.report().episodes == 0


# -- what it says ------------------------------------------------------------------------------------------------------


def test_it_says_in_words_what_cannot_be_said():
    with CascadeMemory(embedder="hashing", ranker="similarity", learn="inline") as memory:
        assert str(memory.report()).endswith("no episode has been judged yet; reward() judges one")
        memory.reward(memory.recall("q").episode_id, 1.0)
        said = str(memory.report())
        assert "no episode ran without memory; set holdout=0.05" in said
        assert "calibration is not known" in said
        assert "coverage is not known" in said
        assert memory.acting(namespace="other").report().episodes == 0
        assert memory.report(everywhere=True).episodes == 1
    with CascadeMemory(embedder="hashing", ranking=Ranking(holdout=0.5), learn="inline") as memory:
        _reward(memory, "live", 1.0)
        assert "no held-out episode has been judged yet" in str(memory.report())


@pytest.mark.slow
def test_calibration_compares_what_was_predicted_of_what_was_shown():
    report, _ = _stream(0, 300, ranking=Ranking(holdout=0.2))
    found = report.calibration
    assert found is not None
    assert found.predictions == 300
    assert abs(found.predicted - found.came) < 0.1
    assert 0.1 < found.brier < 0.3
    assert sum(one.episodes for one in found.bins) == 300
    assert found.error == pytest.approx(sum(one.episodes * abs(one.predicted - one.came) for one in found.bins) / 300)


def test_coverage_counts_the_solved_episodes_where_a_candidate_had_the_solution(ram: CascadeMemory):
    ram.add([("thing 1", "a"), ("thing 2", "b")], progress=False)
    for solution in ("a", "b", "c"):
        ram.reward(ram.recall("thing 1").episode_id, 1.0, solution=solution)
    ram.reward(ram.recall("thing 1").episode_id, 0.0)
    coverage = ram.report().coverage
    assert (coverage.solved, coverage.stored) == (3, 2)
    assert coverage.chosen >= 1


def test_the_shadow_is_compared_and_judged_where_chance_allows():
    options = {"ranker": "similarity", "ranking": Ranking(shadow="zero-shot", holdout=0.3)}
    report, _ = _stream(1, 200, **options)
    assert report.shadow is not None
    assert (report.shadow.policy, report.shadow.same) == ("zero-shot-1", 0)
    assert report.shadow.recalls == 200 - report.holdout.judged
    assert report.shadow.value is not None
    assert report.shadow.value.normalised is not None
    assert report.holdout.success is not None
    assert report.shadow.value.normalised.estimate == pytest.approx(report.holdout.success.estimate, abs=1e-6)
    assert "its mean reward would have been" in str(report)
    twin, _ = _stream(1, 40, ranker="similarity", ranking=Ranking(shadow="similarity"))
    assert twin.shadow is not None
    assert twin.shadow.same == twin.shadow.recalls == 40


def test_the_shadow_s_value_says_how_many_episodes_it_comes_from():
    with CascadeMemory(
        embedder="hashing", learn="inline", ranker="similarity", ranking=Ranking(shadow="similarity", holdout=0.4)
    ) as memory:
        memory.add([(f"thing {i}", f"s{i % 2}") for i in range(6)], progress=False)
        for n in range(40):
            recall = memory.recall(f"thing {n % 6}")
            if n % 2:
                memory.recall(f"thing {n % 5}", episode_id=recall.episode_id)  # two recalls: which one earned the reward?
            memory.reward(recall.episode_id, 1.0, solution="s0")
        memory.sync()
        shadow = memory.report().shadow
    assert shadow is not None
    assert shadow.value is not None
    assert (shadow.value.episodes, shadow.watched) == (20, 40)
    assert shadow.recalls < 40
    said = "\n".join(shadow.lines())
    assert "(from 20 of 40 episodes, including held-out ones: those with one recall of at most one case" in said


def test_a_report_outlives_the_compaction_of_what_it_speaks_of(on_disk):
    with on_disk(ranking=Ranking(holdout=0.3, shadow="similarity"), learn="inline") as memory:
        memory.add([(f"thing {i}", f"s{i % 2}") for i in range(6)], progress=False)
        for i in range(60):
            memory.reward(memory.recall(f"thing {i % 6} again").episode_id, float(i % 3 > 0), solution=f"s{i % 2}")
        before = memory.report()
        assert engine_of(memory).parts.ledger.lessons.compact(1, 20, 100) == 40
        after = memory.report()
    assert (after.lift, after.calibration, after.shown) == (before.lift, before.calibration, before.shown)
    assert after.coverage.solved < before.coverage.solved
    assert after.shadow is not None
    assert before.shadow is not None
    assert after.shadow.recalls < before.shadow.recalls


def test_the_command_and_plain_values(tmp_path, capsys):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline", ranking=Ranking(holdout=0.5)) as memory:
        for arm in ("live", "holdout", "live", "holdout"):
            _reward(memory, arm, 1.0)
    folder = str(tmp_path / "memory")
    assert main(["show", "report", folder]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "lift" in out
    assert "+0.000 (" in out
    assert main(["show", "report", folder, "--namespace", "default", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["lift"]["estimate"] == 0.0
    assert plain["namespace"] == "default"
    assert all(math.isfinite(value) for value in plain["lift"].values())


def test_pooled_parts_count_by_their_weight():
    found = intervals.pooled([(3.0, Interval(0.1, 0.0, 0.2)), (1.0, Interval(0.5, 0.1, 0.9))])
    assert found.estimate == pytest.approx(0.2)
    assert found.high - found.estimate == pytest.approx(math.hypot(0.3, 0.4) / 4)


def test_a_ranker_that_does_not_name_its_features_is_reported_with_numbers():
    ranker = Ranker(name="mine", encoder=lambda dimension, lookup: CosineEncoder(), policy=lambda: LightPolicy(1))
    with CascadeMemory(embedder="hashing", learn="inline", ranker=ranker) as memory:
        memory.add("a task", "done")
        memory.reward(memory.recall("a task").episode_id, 1.0, solution="done")
        learned = memory.report().learned
    assert learned is not None
    assert set(learned.weights) == {"feature 0"}


@pytest.mark.parametrize(
    ("low", "high", "says"), [(0.01, 0.2, "helps"), (-0.1, 0.1, "is not known to help"), (-0.2, -0.01, "harms")]
)
def test_a_memory_is_said_to_harm_only_where_the_whole_interval_is_below_zero(low, high, says, ram: CascadeMemory):
    lifted = dataclasses.replace(ram.report(), lift=Interval((low + high) / 2, low, high))
    assert f"the memory {says}: " in lifted._repr_html_()

"""Where only rewards teach: what is blamed for a failure, how far rewards are trusted, and how it is saved."""

from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.success_process import TRUSTS, Fitted, SuccessProcess
from cascade_memory.ports.policy import Floats, Slate

START = np.array([2.0, 0.0, 0.0])


def _task(kind: int, rng: np.random.Generator) -> np.ndarray:
    """A task's vector; tasks of one kind are alike."""
    query = np.zeros(16)
    query[kind] = 1.0
    query += 0.1 * rng.normal(size=16)
    return (query / np.linalg.norm(query)).astype(np.float32)


def _slate(query: np.ndarray, groups: list[int], features: Floats | None = None) -> Slate:
    n = len(groups)
    return Slate(
        features=np.zeros((n, 3)) if features is None else features,
        similarity=np.linspace(0.9, 0.5, n),
        groups=np.array(groups),
        query=query,
    )


def _note(process: SuccessProcess, slate: Slate, place: int, reward: float) -> None:
    process.note(slate, np.asarray(slate.features, np.float64), place, reward, weight=1.0, start=START)


def _fitted(process: SuccessProcess) -> Fitted:
    process.fit()
    assert process.fitted is not None
    return process.fitted


def test_a_case_that_fails_where_others_succeed_is_blamed_for_tasks_like_these_only():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for _ in range(12):
        for kind in (0, 1):
            _note(process, _slate(_task(kind, rng), [1, 2]), 0, 0.0 if kind == 0 else 1.0)
            _note(process, _slate(_task(kind, rng), [1, 2]), 1, 1.0 if kind == 0 else 0.0)
    fitted = _fitted(process)
    here, there = (fitted.predict(_slate(_task(kind, rng), [1, 2, 3])) for kind in (0, 1))
    assert here.record[0] < -2.0 < 2.0 < here.record[1]
    assert there.record[1] < -2.0 < 2.0 < there.record[0]
    assert here.record[2] == 0.0  # never shown
    assert 5.0 < here.shown[0] < 12.5  # twelve times, and a little for the tasks of the other kind
    assert here.succeeded[0] < 0.3 * here.shown[0]


def test_where_everything_fails_the_tasks_are_hard_and_no_case_is_bad():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(40):
        _note(process, _slate(_task(0, rng), [10 + i]), 0, 0.0)
        _note(process, _slate(_task(1, rng), [100 + i]), 0, 1.0)
    fitted = _fitted(process)
    hard, easy = (fitted.predict(_slate(_task(kind, rng), [10, 100])) for kind in (0, 1))
    assert hard.ease < -0.15
    assert easy.ease > 0.15
    assert abs(hard.record[0]) < 1.5  # one failure among tasks on which all fail


def test_what_descends_from_a_case_shares_its_record():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    process.descends(5, 1)
    process.descends(6, 5)  # a grandchild
    for _ in range(10):
        _note(process, _slate(_task(0, rng), [1, 2]), 0, 1.0)
        _note(process, _slate(_task(0, rng), [1, 2]), 1, 0.0)
    record = _fitted(process).predict(_slate(_task(0, rng), [6, 5, 1, 7])).record
    assert record[0] == record[1] == record[2] > 2.0
    assert record[3] == 0.0


def test_it_learns_which_signal_tells_and_then_trusts_rewards():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(200):
        features = rng.normal(size=(8, 3))
        slate = _slate(_task(i % 5, rng), list(range(8 * i, 8 * i + 8)), features)
        place = int(features[:, 0].argmax())
        _note(process, slate, place, float(rng.random() < 0.5 + 0.3 * np.tanh(features[place, 1])))
    fitted = _fitted(process)
    assert fitted.weights[1] > 2.0
    assert abs(fitted.weights[2]) < 0.5 * fitted.weights[1]
    assert fitted.trust[-1] > 0.3  # it begins at 0.1
    assert fitted.trust.sum() == pytest.approx(1.0)


def test_where_rewards_say_nothing_about_the_signals_they_are_not_trusted():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(200):
        features = rng.normal(size=(8, 3))
        slate = _slate(_task(i % 5, rng), list(range(8 * i, 8 * i + 8)), features)
        _note(process, slate, int(features[:, 0].argmax()), float(rng.random() < i % 5 / 4))
    fitted = _fitted(process)
    assert float(fitted.trust @ TRUSTS) < 0.15
    assert np.abs(fitted.weights).max() < 1.0


def test_what_the_start_predicted_is_no_surprise():
    process, rng = SuccessProcess(), np.random.default_rng(1)
    for i in range(100):  # a candidate far behind the first one is shown, and fails as often as that predicts
        features = np.array([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
        _note(process, _slate(_task(0, rng), [2 * i, 2 * i + 1], features), 1, float(i % 2))
    assert np.abs(_fitted(process).weights).max() < 1.5


def test_old_rewards_fade_and_leave_the_window():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for reward in (1.0, 0.0):
        for _ in range(process.WINDOW // 2):
            _note(process, _slate(_task(0, rng), [1, 2]), 0, reward)
            _note(process, _slate(_task(0, rng), [1, 2]), 1, 1.0 - reward)
        record = _fitted(process).predict(_slate(_task(0, rng), [1, 2])).record
        assert (record[0] > record[1]) == (reward == 1.0)
    assert len(process) == process.WINDOW


def test_a_task_without_a_vector_teaches_the_signals_but_no_record():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(120):
        features = rng.normal(size=(4, 3))
        slate = Slate(features=features, similarity=np.linspace(1, 0, 4), groups=np.arange(4))
        _note(process, slate, i % 4, float(features[i % 4, 2] > 0))
    fitted = _fitted(process)
    assert fitted.weights[2] > 2.0
    unknown = fitted.predict(Slate(features=np.zeros((4, 3)), similarity=np.linspace(1, 0, 4), groups=np.arange(4)))
    assert not unknown.record.any()
    assert unknown.ease == 0.0


def test_the_slope_counts_in_standard_deviations_of_the_starting_values():
    slopes = []
    for scale in (1.0, 10.0):  # a task of several paragraphs spreads the values as much
        process, rng = SuccessProcess(), np.random.default_rng(0)
        for i in range(60):
            slate = _slate(_task(0, rng), [2 * i, 2 * i + 1], np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
            process.note(slate, slate.features, i % 2, float(i % 2 == 0), weight=1.0, start=scale * START)
        slopes.append(_fitted(process).slope * scale)
    assert slopes[0] == pytest.approx(slopes[1])


def test_one_slate_of_monstrous_values_changes_little():
    slopes = []
    for factor in (1.0, 1e6):
        process, rng = SuccessProcess(), np.random.default_rng(0)
        for i in range(60):
            features = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]) * (factor if i == 30 else 1.0)
            _note(process, _slate(_task(0, rng), [1, 2], features), i % 2, float(i % 2 == 0))
        slopes.append(_fitted(process).slope)
    assert slopes[1] == pytest.approx(slopes[0], rel=0.5)


def test_cases_that_were_shown_together_share_one_reward():
    alone, together = SuccessProcess(), SuccessProcess()
    for i in range(40):
        query = _task(0, np.random.default_rng(i))
        slate = _slate(query, [1, 1, 1])
        _note(alone, slate, 0, float(i % 2))
        for place in range(3):
            together.note(slate, np.asarray(slate.features, np.float64), place, float(i % 2), weight=1 / 3, start=START)
    question = _slate(_task(0, np.random.default_rng(99)), [1, 2])
    one, other = (_fitted(process).predict(question) for process in (alone, together))
    np.testing.assert_allclose(other.record, one.record, atol=0.05)
    assert other.ease == pytest.approx(one.ease, abs=0.01)


def test_a_fit_can_be_repeated_however_many_cases_came_after_it():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(process.WINDOW + 7):
        _note(process, _slate(_task(0, rng), [1, 2]), i % 2, float(i % 2))
    slate = _slate(_task(0, rng), [1, 2])
    before = _fitted(process).predict(slate).record
    for _ in range(8 * 64):
        _note(process, slate, 0, 1.0)
    again = SuccessProcess()
    again.load(process.state(), dimension=3)
    again.fit_again()
    assert again.fitted is not None
    np.testing.assert_allclose(again.fitted.predict(slate).record, before, atol=1e-6)


def test_it_can_be_loaded_at_any_time_and_goes_on_as_if_it_had_not_been():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    for i in range(process.WINDOW + 50):
        _note(process, _slate(_task(i % 3, rng), [i % 5, 5]), i % 2, float(i % 2))
        if i % 8 == 7:
            process.fit()
        if i > process.WINDOW - 10 and i % 8 in (0, 6, 7):
            again = SuccessProcess()
            again.load(process.state(), dimension=3)
            for kept in (process, again):
                _note(kept, slate := _slate(_task(i % 3, np.random.default_rng(i)), [1, 2]), 0, 1.0)
                kept.fit()
            assert process.fitted is not None
            assert again.fitted is not None
            for one, other in zip(process.fitted.predict(slate), again.fitted.predict(slate), strict=True):
                np.testing.assert_array_equal(one, other)


def test_what_was_noted_without_a_fit_is_saved_and_loaded_however_much_it_was():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    slate = _slate(_task(0, rng), [1, 2])
    for i in range(1_500):
        _note(process, slate, i % 2, float(i % 2))
    again = SuccessProcess()
    again.load(process.state(), dimension=3)
    np.testing.assert_allclose(_fitted(again).predict(slate).record, _fitted(process).predict(slate).record, atol=1e-9)


def test_a_vector_of_another_length_is_like_one_that_is_gone():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    _note(process, Slate(features=np.zeros((1, 3)), similarity=np.ones(1), groups=np.arange(1)), 0, 1.0)
    for _ in range(5):
        _note(process, _slate(_task(0, rng), [1, 2]), 0, 1.0)
    _note(process, _slate(np.ones(3, np.float32), [1, 2]), 0, 1.0)
    assert len(process) == 7
    assert _fitted(process).predict(_slate(_task(0, rng), [1, 2])).shown[0] > 3
    assert len(_fitted(process).predict(_slate(_task(0, rng), [])).record) == 0


def test_it_is_saved_and_loaded():
    process, rng = SuccessProcess(), np.random.default_rng(0)
    process.descends(7, 3)
    for i in range(30):
        _note(process, _slate(_task(i % 3, rng), [3, 4], rng.normal(size=(2, 3))), i % 2, float(i % 2))
    again = SuccessProcess()
    again.load(process.state(), dimension=3)
    slate = _slate(_task(0, rng), [3, 4, 7], rng.normal(size=(3, 3)))
    one, other = _fitted(process).predict(slate), _fitted(again).predict(slate)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    for _ in range(5):  # rewards after the fit do not change what is loaded
        _note(process, slate, 0, 1.0)
    later = SuccessProcess()
    later.load(process.state(), dimension=3)
    later.fit_again()
    assert later.fitted is not None
    np.testing.assert_allclose(later.fitted.predict(slate).record, one.record, atol=1e-9)
    empty = SuccessProcess()
    empty.load(SuccessProcess().state(), dimension=3)
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("numbers", lambda a: a[:, :3]),
        ("numbers", lambda a: a * np.nan),
        ("numbers", lambda a: a + np.eye(7)[4] * 2.0),
        ("numbers", lambda a: a[:-1]),
        ("features", lambda a: a * 1e300),
        ("queries", lambda a: a * 5.0),
        ("families", lambda a: a + 0.5),
        ("families", lambda a: -a),
        ("unfitted", lambda a: a + 100.0),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(name, change):
    process, rng = SuccessProcess(), np.random.default_rng(0)
    process.descends(7, 3)
    for i in range(9):
        _note(process, _slate(_task(0, rng), [3, 4], rng.normal(size=(2, 3))), 0, float(i % 2))
    state = process.state()
    before = {key: array.copy() for key, array in state.items()}
    with pytest.raises(ValueError, match=r"\w"):
        process.load({**state, name: change(state[name])}, dimension=3)
    for key, array in process.state().items():
        np.testing.assert_array_equal(array, before[key])

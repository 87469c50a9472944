"""One wrong case that is nearest to many tasks must neither be shown for ever nor silence the memory."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascade_memory import CascadeMemory, Ranking

ASKED = "My card was declined in Lisbon while I paid for the hotel"
WHEN = ("today", "yesterday", "on Monday", "last night", "this morning")
CITIES = ("Porto", "Madrid", "Rome", "Vienna", "Oslo", "Berne", "Prague", "Athens", "Dublin", "Warsaw")
WRONG = "turn the router off and on again"
RIGHT = "enable foreign transactions"
STEPS = ("open the app", "tap settings", "choose abroad", "set limits", "confirm with the code")


def store(memory: CascadeMemory, *, wrong: int = 1, each_wrong_its_own: bool = False, each_right_its_own: bool = False) -> None:
    """Store wrong cases, whose tasks are nearly the ones that will be asked, and ten right ones that are further away."""
    rng = random.Random(0)
    for i in range(wrong):
        solution = f"{WRONG}, then wait for {i + 2} minutes" if each_wrong_its_own else WRONG
        memory.add(f"{ASKED} {'again ' * i}".strip(), solution)
    for city in CITIES:
        own = f" for {city}: {', '.join(rng.sample(STEPS, 4))}" if each_right_its_own else ""
        memory.add(f"Card refused at a hotel in {city}, what now?", RIGHT + own)


def ask(
    memory: CascadeMemory, times: int, *, told: bool = True, noise: float = 0.0, alone: float = 0.0, seed: int = 0
) -> list[str]:
    """Recall and reward like tasks; return for each whether a right case was shown, or a wrong one, or none."""
    rng = random.Random(seed)
    shown: list[str] = []
    for i in range(times):
        recall = memory.recall(f"{ASKED} {WHEN[i % len(WHEN)]}")
        right = [case for case in recall.cases if str(case.solution).startswith(RIGHT)]
        shown.append("right" if right else "wrong" if recall.cases else "nothing")
        won = bool(right) or (not recall.cases and rng.random() < alone)
        if rng.random() < noise:
            won = not won
        used = (right or list(recall.cases))[:1]
        memory.reward(recall.episode_id, float(won), solution=used[0].solution if told and won and used else None)
    return shown


def share(shown: Sequence[str], what: str = "right") -> float:
    return shown.count(what) / len(shown)


SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "one wrong of eleven": ({}, {}, {}),
    "rewards without solutions": ({}, {"told": False}, {}),
    "free text that never agrees": ({"each_right_its_own": True}, {}, {}),
    "free text, rewards without solutions": ({"each_right_its_own": True}, {"told": False}, {}),
    "three wrong with one solution": ({"wrong": 3}, {"told": False}, {}),
    "three wrong, each with its own": ({"wrong": 3, "each_wrong_its_own": True}, {"told": False}, {}),
    "all of them free text": (
        {"wrong": 3, "each_wrong_its_own": True, "each_right_its_own": True},
        {"told": False},
        {},
    ),
    "six wrong with one solution": ({"wrong": 6}, {"told": False}, {}),
    "two cases at once": ({"wrong": 3}, {"told": False}, {"k": 2}),
    "two cases at once, each with its own": ({"wrong": 3, "each_wrong_its_own": True}, {"told": False}, {"k": 2}),
    "one reward in ten is false": ({}, {"noise": 0.1}, {}),
    "one reward in ten is false, without solutions": ({"each_right_its_own": True}, {"noise": 0.1, "told": False}, {}),
    "half of the tasks succeed without a case": ({}, {"told": False, "alone": 0.5}, {}),
    "weights shared by all namespaces": ({}, {"told": False}, {"ranking": Ranking(policy_scope="shared")}),
}


@pytest.mark.parametrize("abstain", [True, False], ids=["may show none", "always a case"])
@pytest.mark.parametrize(("stored", "asked", "options"), SHAPES.values(), ids=SHAPES)
def test_the_right_cases_are_shown_after_a_wrong_one_has_failed(stored, asked, options, abstain):
    ranking = replace(options.get("ranking", Ranking()), abstain=abstain)
    with CascadeMemory(embedder="hashing", learn="inline", **{**options, "ranking": ranking}) as memory:
        store(memory, **stored)
        shown = ask(memory, 100, **asked)
    assert share(shown[-50:]) >= 0.8


@pytest.mark.parametrize("seed", range(5))
def test_false_rewards_do_not_bring_the_wrong_case_back(seed):
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
        store(memory, each_right_its_own=True)
        shown = ask(memory, 100, told=False, noise=0.1, seed=seed)
    assert share(shown[-50:]) >= 0.8


def test_the_wrong_case_costs_tasks_of_other_kinds_nothing():
    rng = random.Random(1)
    others = {
        "I lost my password": "send a reset link",
        "The app crashes": "install it again",
        "I want to leave": "send the form",
    }
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        store(memory)
        memory.add([(f"{task} {when}", solution) for task, solution in others.items() for when in WHEN[:3]])
        right: list[bool] = []
        for _ in range(60):
            ask(memory, 1, told=False)
            task, solution = rng.choice(list(others.items()))
            recall = memory.recall(f"{task} {rng.choice(WHEN)}, please help")
            right.append(bool(recall.cases) and recall.cases[0].solution == solution)
            memory.reward(recall.episode_id, float(right[-1]))
    assert np.mean(right) >= 0.9


def test_a_solution_that_fails_for_some_tasks_is_still_shown_for_those_it_fits():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
        store(memory)
        for when in WHEN[:3]:
            memory.add(f"The wireless network is gone {when}", WRONG)  # which is right here
        ask(memory, 30, told=False)
        for when in WHEN:
            assert memory.recall(f"The wireless network is gone {when}, what now?").cases[0].solution == WRONG


# -- it stays known -------------------------------------------------------------------------------------------------------


def _learned(on_disk: Callable[..., CascadeMemory], **options: Any) -> CascadeMemory:
    memory = on_disk(ranking=Ranking(abstain=False), **options)
    store(memory)
    assert share(ask(memory, 40, told=False)[-10:]) == 1.0
    return memory


def test_it_is_still_known_when_the_folder_is_opened_again(on_disk):
    _learned(on_disk).close()
    memory = on_disk(ranking=Ranking(abstain=False))
    assert share(ask(memory, 20, told=False)) == 1.0


def test_it_is_learned_again_from_the_ledger_alone(on_disk, tmp_path: Path):
    _learned(on_disk).close()
    for snapshot in (tmp_path / "memory" / "snapshots").iterdir():
        snapshot.unlink()
    memory = on_disk(ranking=Ranking(abstain=False))
    assert share(ask(memory, 20, told=False)) == 1.0
    memory.data.refit()
    assert share(ask(memory, 20, told=False)) == 1.0


def test_a_snapshot_of_an_older_version_without_records_is_replaced_by_what_the_ledger_knows(on_disk, tmp_path: Path):
    _learned(on_disk).close()
    for file in (tmp_path / "memory" / "snapshots").glob("policy-*.npz"):
        with np.load(io.BytesIO(file.read_bytes())) as arrays:
            older = {name: arrays[name] for name in arrays.files if not name.startswith("records.")}
        with file.open("wb") as target:
            np.savez(target, **older)
    memory = on_disk(ranking=Ranking(abstain=False))
    assert share(ask(memory, 20, told=False)) == 1.0


def test_another_process_that_follows_the_folder_knows_it_too(on_disk):
    writer = _learned(on_disk)
    follower = on_disk(ranking=Ranking(abstain=False))
    assert share(ask(follower, 10, told=False)) == 1.0
    assert share(ask(writer, 10, told=False)) == 1.0


def test_it_survives_an_export(on_disk, tmp_path: Path):
    _learned(on_disk).data.export(tmp_path / "all.jsonl")
    with CascadeMemory(tmp_path / "copy", embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as copy:
        copy.data.import_(tmp_path / "all.jsonl")
        assert share(ask(copy, 20, told=False)) == 1.0


# -- and can be taken back ------------------------------------------------------------------------------------------------


def test_rewards_that_are_taken_back_leave_no_record(on_disk):
    memory = on_disk(ranking=Ranking(abstain=False))
    store(memory)
    episodes = []
    for i in range(20):
        recall = memory.recall(f"{ASKED} {WHEN[i % len(WHEN)]}")
        if recall.cases[0].solution == WRONG:
            episodes.append(recall.episode_id)
        memory.reward(recall.episode_id, float(recall.cases[0].solution != WRONG))
    assert memory.recall(f"{ASKED} today").cases[0].solution == RIGHT
    for episode in episodes:
        memory.reward(episode, 1.0, overwrite=True)
    assert memory.recall(f"{ASKED} today").cases[0].solution == WRONG


def test_forgotten_episodes_leave_no_record(on_disk):
    memory = on_disk(ranking=Ranking(abstain=False))
    store(memory)
    failed = []
    while (recall := memory.recall(f"{ASKED} today")).cases[0].solution == WRONG:
        memory.reward(recall.episode_id, 0.0)
        failed.append(recall.episode_id)
    for episode in failed:
        memory.forget(episode_id=episode)
    assert memory.recall(f"{ASKED} today").cases[0].solution == WRONG


# -- and is told ----------------------------------------------------------------------------------------------------------


def test_explain_tells_of_the_record_that_set_a_case_back(on_disk):
    memory = on_disk(ranking=Ranking(abstain=False))
    store(memory)
    for _ in range(5):
        recall = memory.recall(f"{ASKED} today")
        memory.reward(recall.episode_id, 0.0)
    why = memory.recall(f"{ASKED} today").explain()
    wrong = next(one for one in why.candidates if one.query == ASKED)
    assert wrong.record < -1.0
    assert wrong.tried == pytest.approx(5.0, abs=0.5)
    assert wrong.succeeded == 0.0
    assert wrong.value == pytest.approx(sum(wrong.contributions), abs=1e-6)
    assert why.feature_names[-1] == "record"
    assert "its record: 'My card was declined in Lisbon while I …': shown 5 times for tasks like this one, 0.000" in str(why)
    assert "shown 5 times for tasks like this one" in why._repr_html_()

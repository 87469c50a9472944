"""Rewards that come late, never or false, and wrong cases: what the memory is told differs, and the truth stays in the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rival_names import is_installed

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.conditions import Rewards, rewards_named, wrong_cases, wrong_cases_named
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import SUITES, Run
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.report.section import sections
from cascade_memory.evaluation.stream import Attempt, play
from cascade_memory.evaluation.synthetic import tickets

N = 120


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(N, 0)]
    for file in ("banking77.jsonl", "rca_huawei_module.jsonl"):
        (folder / file).write_text("\n".join(lines))
    return folder


def played(streams: Path, tmp_path: Path, **conditions: Any) -> dict[str, Any]:
    method = conditions.pop("method", "similarity")
    (row,) = run([Run("rca", method, 0, **conditions)], streams, tmp_path / "rows.jsonl", progress=False)
    return row


class Notes:
    """Stands where a memory stands, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    def reward(self, episode_id: str, success: bool, **_: Any) -> None:
        self.told.append((episode_id, success))


def told(said: str, n: int, seed: int = 0) -> tuple[list[tuple[str, bool]], Rewards]:
    notes, rewards = Notes(), Rewards(said, n, seed)
    for place in range(n):
        rewards(notes, str(place), place, Attempt(success=place % 2 == 0, answer="a"))  # type: ignore[arg-type]
    return notes.told, rewards


def test_clean_rewards_come_at_once_and_are_true():
    found, rewards = told("", 6)
    assert found == [(str(place), place % 2 == 0) for place in range(6)]
    assert rewards.learned == [[(place, place % 2 == 0)] for place in range(6)]


def test_late_rewards_come_in_order_and_those_due_after_the_end_never():
    found, rewards = told("late=4", 10)
    assert found == [(str(place), place % 2 == 0) for place in range(6)]
    assert rewards.learned[:4] == [[]] * 4
    assert rewards.learned[4:] == [[(place, place % 2 == 0)] for place in range(6)]


def test_missing_rewards_are_as_many_as_asked_and_the_others_are_true():
    found, _ = told("missing=0.5", 2_000)
    assert 900 < len(found) < 1_100
    assert all(success is (int(place) % 2 == 0) for place, success in found)
    assert told("missing=0.5", 2_000)[0] == found  # the seed draws which
    assert told("missing=0.5", 2_000, seed=1)[0] != found
    assert told("missing=1", 50)[0] == []


def test_flipped_rewards_say_the_opposite():
    found, _ = told("flipped=0.2", 2_000)
    false = sum(success is not (int(place) % 2 == 0) for place, success in found)
    assert len(found) == 2_000
    assert 330 < false < 470
    assert all(success is not (int(place) % 2 == 0) for place, success in told("flipped=1", 50)[0])


@pytest.mark.slow
def test_a_row_has_the_truth_and_the_memory_what_it_was_told(streams, tmp_path):
    clean, missing, late, flipped = (
        played(streams, tmp_path, rewards=said) for said in ("", "missing=0.5", "late=30", "flipped=0.3")
    )
    assert [row["rewards"] for row in (clean, missing, late, flipped)] == ["", "missing=0.5", "late=30", "flipped=0.3"]
    assert {row["alone"] for row in (clean, missing, late, flipped)} == {clean["alone"]}  # the same tasks, the same solver
    assert missing["cases"] < clean["cases"]
    assert "1" not in late["shown"][:31]  # nothing was learned before
    assert "1" in late["shown"][31:]
    assert "1" not in late["covered"][:31]
    assert flipped["cases"] != clean["cases"]  # the memory was told otherwise
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(rows) == 4  # one file keeps them apart
    assert len({json.loads(line)["rewards"] for line in rows}) == 4


def test_what_a_false_reward_made_a_case_counts_as_stored(streams, tmp_path):
    """A wrong answer that was called right is a case; whether it covers a later task depends on what it says."""
    row = played(streams, tmp_path, rewards="flipped=1", method="zero-shot")
    assert "1" not in row["covered"]  # no memory, no case
    row = played(streams, tmp_path, rewards="flipped=1")
    fitting = [place for place, one in enumerate(row["fitting"]) if one == "1"]
    assert fitting
    assert all(row["covered"][place] == "1" for place in fitting)


def test_wrong_cases_name_real_tasks_and_another_solution():
    queries, solutions = [f"task {i}" for i in range(40)], [f"solution {i % 4}" for i in range(40)]
    right = dict(zip(queries, solutions, strict=True))
    start, along = (wrong_cases(f"{where}=0.25", queries, solutions, seed=3) for where in ("start", "along"))
    assert list(start) == [0]
    assert sorted(along) == list(range(0, 40, 4))
    assert [one for its in along.values() for one in its] == list(start[0])
    assert len({query for query, _ in start[0]}) == 10
    assert all(right[query] != solution and solution in solutions for query, solution in start[0])
    assert len(wrong_cases("start=7", queries, solutions, seed=3)[0]) == 7
    with pytest.raises(InvalidInput, match="no 41 wrong cases can be made of 40 tasks"):
        wrong_cases("start=41", queries, solutions, seed=0)
    with pytest.raises(InvalidInput, match="with 1 solutions"):
        wrong_cases("start=1", queries, ["the same"] * 40, seed=0)


@pytest.mark.slow
def test_wrong_cases_are_there_before_the_first_task_and_do_harm(streams, tmp_path):
    clean, start, along = (played(streams, tmp_path, wrong_cases=said) for said in ("", "start=60", "along=60"))
    assert clean["shown"][0] == "0"
    assert start["shown"][0] == along["shown"][0] == "1"
    assert start["cases"] >= 60
    assert start["rate"] < clean["rate"]
    assert start["covered"][0] == "1"  # sixty of them say every solution
    nothing = played(streams, tmp_path, wrong_cases="start=60", method="zero-shot")
    assert nothing["success"] == nothing["alone"]


@pytest.mark.slow
def test_how_much_a_wrong_case_spoils(streams, tmp_path):
    rates = [played(streams, tmp_path, method="random", misled=misled)["rate"] for misled in (0.0, None, 1.0)]
    assert rates[0] > rates[1] > rates[2]
    declared = [played(streams, tmp_path, method="random", misled=misled)["declared"]["misled"] for misled in (0.0, None)]
    assert declared == [0.0, 0.5]


def test_a_human_helps_under_clean_conditions_only(streams, tmp_path):
    with pytest.raises(InvalidInput, match="true rewards that come at once"):
        played(streams, tmp_path, method="CASCADE + revision", rewards="late=3")


@pytest.mark.parametrize("wrong", ["late=0", "late=1.5", "missing=0", "flipped=1.1", "never", "late=x", "late=inf", "=3"])
def test_rewards_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"rewards must be|is none of"):
        rewards_named(wrong)


@pytest.mark.parametrize("wrong", ["start=0", "start=-1", "start=1.5", "somewhere", "along=nan"])
def test_wrong_cases_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"wrong cases must be|is none of"):
        wrong_cases_named(wrong)


@pytest.mark.long
def test_the_command_plays_conditions_side_by_side_and_goes_on_where_it_was_stopped(streams, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    where = ["--data", str(streams), "--out", str(rows), "--jobs", "1", "--seeds", "1", "--limit", "30"]
    few = ["bench", "run", "--suite", "rewards", "--tasks", "rca", "--methods", "zero-shot", "similarity"]
    assert main([*few, "--rewards", "clean", "late=5", *where]) == 0
    printed = capsys.readouterr().out
    assert "rewards 5 tasks late" in " ".join(printed.split())
    assert len(rows.read_text().splitlines()) == 4
    first = rows.read_bytes()
    assert main([*few, "--rewards", "late=5", "missing", *where]) == 0
    assert rows.read_bytes().startswith(first)
    assert len(rows.read_text().splitlines()) == 6  # what was there was not played again
    pages = (tmp_path / "rows-report" / "index.html").read_text()
    assert "50 % of the rewards missing" in pages
    assert main(["bench", "report", str(rows), "--against", "similarity", "zero-shot"]) == 0
    assert main(["bench", "report", str(rows), "--against", "magic"]) == 2
    assert "no row has the method 'magic'" in capsys.readouterr().err
    assert main([*few, "--rewards", "sometimes", *where]) == 2
    assert "'sometimes' is none of clean, late=100" in capsys.readouterr().err


def test_the_command_says_what_does_not_go_together(streams, tmp_path, capsys):
    where = ["--data", str(streams), "--out", str(tmp_path / "rows.jsonl"), "--jobs", "1"]
    assert main(["bench", "run", "--suite", "local", "--tasks", "spider", "--misled", "0.2", *where]) == 2
    assert (
        main(["bench", "run", "--stream", str(streams / "banking77.jsonl"), "--alone", "0.5", "--misled", "0.2", *where]) == 2
    )
    said = capsys.readouterr().err
    assert "--misled cannot be used with --model or --stream" in said
    with pytest.raises(SystemExit):
        main(["bench", "run", "--misled", "2", *where])
    assert "must be a number from 0 to 1" in capsys.readouterr().err


@pytest.mark.long
def test_a_stream_of_ones_own_takes_hard_rewards(streams, tmp_path, capsys):
    stream = streams / "banking77.jsonl"
    rows = tmp_path / "own.jsonl"
    own = ["--stream", str(streams / "own.jsonl"), "--alone", "0.4", "--seeds", "1", "--methods", "similarity", "--jobs", "1"]
    (streams / "own.jsonl").write_text(stream.read_text())
    assert main(["bench", "run", *own, "--rewards", "clean", "missing=0.9", "--out", str(rows)]) == 0
    found = {row["rewards"]: row["cases"] for row in map(json.loads, rows.read_text().splitlines())}
    assert found["missing=0.9"] < found[""] / 3
    assert "90 % of the rewards missing" in " ".join(capsys.readouterr().out.split())


def test_the_report_keeps_conditions_apart_and_refuses_what_is_none(streams, tmp_path):
    rows = [played(streams, tmp_path, rewards=said) for said in ("", "late=30")]
    old = {name: value for name, value in rows[0].items() if name not in ("rewards", "wrong_cases", "misled")}
    assert [section.under for section in sections([*rows, old])] == ["", "rewards 30 tasks late"]
    for name, wrong in (("rewards", "soon"), ("rewards", 3), ("wrong_cases", "start=0.050"), ("misled", 2), ("misled", "much")):
        with pytest.raises(InvalidInput, match=f"no usable '{name}'"):
            sections([{**rows[0], name: wrong}])


def test_every_method_of_every_suite_opens(streams):
    from cascade_memory.encoders.hashing import HashingEmbedder

    for suite in SUITES.values():
        for method in filter(is_installed, suite.methods):
            memory = open_memory(method, HashingEmbedder())
            assert (memory is None) is (method == "zero-shot")
            if memory is not None:
                memory.close()


def test_play_rewards_as_it_is_told():
    given: list[tuple[int, bool]] = []

    class Always:
        def attempt(self, place: int, cases: Any) -> Attempt:
            return Attempt(success=True, answer="yes")

    def never(memory: Any, episode_id: str, place: int, attempt: Attempt) -> None:
        given.append((place, attempt.success))

    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        play(memory, "a task", Always(), 7, never)
        assert (given, memory.stats().cases) == ([(7, True)], 0)
        play(memory, "a task", Always(), 8)
        assert memory.stats().cases == 1

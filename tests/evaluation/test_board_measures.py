"""The board's other measures: memories that do one thing show what each means, and a run is the same when played again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rival_names import parameters

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, Stage
from cascade_memory.evaluation.rivals import measures
from cascade_memory.evaluation.rivals.known import OTHER_MEMORIES
from cascade_memory.evaluation.rivals.measures import HEAD, STREAMS, measured, play, table
from cascade_memory.evaluation.rivals.playing import Played
from cascade_memory.evaluation.stream import Attempt

CUP, LAMP = ("wash the red cup", "sink"), ("switch on the lamp", "switch")


class _Copies:
    """Solves a task if the first case has its solution, and answers with what it was shown."""

    def __init__(self, solutions: Sequence[str]) -> None:
        self._solutions = solutions

    def attempt(self, place: int, cases: Sequence) -> Attempt:
        known = place < 2  # the first two tasks of a stream are solved alone
        answer = self._solutions[place] if known else str(cases[0].solution) if cases else "no idea"
        return Attempt(answer == self._solutions[place], answer)


@pytest.fixture
def two_streams(monkeypatch: pytest.MonkeyPatch) -> Folders:
    def stage_for(run: Run, folders: Folders) -> Stage:
        del folders
        word = "cup" if run.task == "llb-db" else "lamp"
        n = 12
        return Stage(
            queries=[f"{word} number {number} please" for number in range(n)],
            solver=_Copies([f"{word} solution"] * n),
            embedder=HashingEmbedder(),
            declared={"alone": 0.0},
        )

    monkeypatch.setattr(measures, "stage_for", stage_for)
    return Folders(Path("nowhere"), Path("nowhere"))


@pytest.mark.parametrize("method", ["similarity", "BM25", "MemRL's rule", "CASCADE, always a case"])
def test_a_run_has_every_column_and_is_the_same_again(two_streams: Folders, method: str):
    run = Run(STREAMS[0], method, 0, solver="reuse")
    rows = [{**play(run, two_streams), "seconds": 0.0} for _ in range(2)]
    assert rows[0] == rows[1]
    row = rows[0]
    assert (row["n"], len(row["success"]), len(row["asked"])) == (9, 9, 3)
    assert row["asked_alone"] == "000"  # nothing is known without a memory
    assert row["asked"] == "111"
    assert measured(row)["gain"] == 100.0
    assert row["asked_repaired"] == "111"


class Last:
    """A memory that knows its newest success only."""

    def __init__(self, embedder: object) -> None:
        del embedder
        self.cases: list[tuple[str, str]] = []

    def recall(self, task: str) -> list[tuple[str, str]]:
        return self.cases[-1:]

    def reward(self, task: str, shown: object, solution: str, reward: float) -> None:
        if reward == 1.0:
            self.cases.append((task, solution))


def test_what_is_learned_on_the_second_stream_can_be_forgetting_on_the_first(two_streams: Folders):
    row = play(Run(STREAMS[0], f"{__name__}:Last", 0, solver="reuse"), two_streams)
    assert measured(row)["gain"] == 100.0
    assert measured(row)["forgetting"] == 100.0
    assert measured(row)["transfer"] == 0.0


def test_only_two_streams_of_agents_that_reuse_can_be_measured(two_streams: Folders):
    with pytest.raises(InvalidInput, match="two streams of reuse agents"):
        play(Run("llb-db", "BM25", 0), two_streams)
    with pytest.raises(InvalidInput, match="has no memory to measure"):
        play(Run(STREAMS[0], "zero-shot", 0, solver="reuse"), two_streams)


def test_the_table_has_a_line_for_each_memory_and_the_interval_of_its_orders():
    row = {"success": "0011", "asked_alone": "00", "asked": "11", "asked_later": "10", "asked_wrong": "00"}
    row |= {"asked_repaired": "11", "other_alone": "01", "other": "11", "method": "BM25"}
    other = row | {"success": "0111"}
    assert table([row]) == [["BM25", "50.0", "+100.0", "+50.0", "+50.0", "+100.0", "+0.0"]]
    line = table([row, other])[0]
    assert line[1] == "62.5 ± 158.8"
    assert len(line) == len(HEAD)


@pytest.mark.parametrize("name", parameters(OTHER_MEMORIES))
def test_a_correction_drops_what_was_no_success_and_keeps_what_was_one(name: str):
    memory = open_memory(name, HashingEmbedder())
    assert isinstance(memory, Played)
    wrong, missed = memory.recall(CUP[0]).episode_id, memory.recall(LAMP[0]).episode_id
    memory.reward(wrong, 1.0, solution="oven")
    memory.reward(missed, 0.0, solution=LAMP[1])
    assert memory.recall(CUP[0]).cases[0].solution == "oven"
    memory.reward(wrong, 0.0, solution="oven", overwrite=True)
    memory.reward(wrong, 0.0, solution="oven", overwrite=True)  # says nothing new
    assert [case.solution for case in memory.recall(CUP[0]).cases] == []
    memory.reward(missed, 1.0, solution=LAMP[1], overwrite=True)
    assert memory.recall(LAMP[0]).cases[0].solution == LAMP[1]
    assert memory.stats().cases == 1


def test_the_command_refuses_what_the_suite_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from cascade_memory.cli.main import main

    out = ["--suite", "board-measures", "--data", str(tmp_path), "--out", str(tmp_path / "rows.jsonl")]
    assert main(["bench", "run", *out, "--tasks", "rca"]) == 2
    assert "has no 'rca'" in capsys.readouterr().err
    assert main(["bench", "run", *out]) == 2
    assert "no data for llb-db" in capsys.readouterr().err
    assert not (tmp_path / "rows.jsonl").exists()

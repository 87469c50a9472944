"""The benchmark of warnings: the agents heed what they are told in the declared way, and the rows say what came of it."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.environments.household.engine import is_installed
from cascade_memory.evaluation.environments.household.games import make_games, read_games
from cascade_memory.evaluation.environments.scienceworld import Place, ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_tasks import solved_task
from cascade_memory.evaluation.reuse.sql_agent import SQLAgent
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.warned.household import Household
from cascade_memory.evaluation.warned.known_world import KnownWorld
from cascade_memory.evaluation.warned.listening import LAST_RESORT, Act, Listener, Told
from cascade_memory.evaluation.warned.plan import ARMS, HEEDS, STREAMS, runs
from cascade_memory.evaluation.warned.play import play
from cascade_memory.evaluation.warned.science import Science
from cascade_memory.evaluation.warned.sql import SQL, sql_in
from cascade_memory.evaluation.warned.table import draw, measured, table

with_engine = pytest.mark.skipif(not is_installed(), reason="needs alfworld")
with_science = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None or shutil.which("java") is None, reason="needs scienceworld and Java"
)
SINGERS = """CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT, country TEXT);
INSERT INTO singer VALUES (1, 'Ann', 31, 'France'), (2, 'Bo', 29, 'Spain'), (3, 'Cy', 45, 'France');"""
PARTS = ("name", "age", "country")


def told(action: str, instead: str = "", query: str = "") -> Told:
    return Told(query, action, instead, is_meant=lambda act: act.action == action)


class Counter:
    """A real world: it counts, and says how often it was begun."""

    def __init__(self) -> None:
        self.begun, self.done = 0, list[str]()

    def begin(self, place: str) -> None:
        self.begun += 1
        self.done = [place]

    def act(self, action: str) -> str | None:
        self.done.append(action)
        return None if action == "fly" else " ".join(self.done)

    def look(self) -> str:
        return f"{len(self.done)} done"

    def possible(self) -> list[str]:
        return ["go", "stop"]

    @property
    def over(self) -> bool:
        return self.solved

    @property
    def solved(self) -> bool:
        return self.done[-1] == "stop"

    def close(self) -> None:
        pass


def test_a_known_world_answers_like_the_real_one_and_does_nonsense_twice(tmp_path: Path):
    def walk(world: KnownWorld, actions: Sequence[str]) -> list[Any]:
        world.begin("hall")
        return [(world.act(one), world.look(), world.possible(), world.over, world.solved) for one in actions]

    real = Counter()
    world = KnownWorld(tmp_path / "answers.sqlite", "1", lambda: real)
    first = walk(world, ["go", "fly", "stop"])
    assert [one[0] for one in first] == ["hall go", None, "hall go fly stop"]
    assert first[-1][3:] == (True, True)
    assert real.begun == 1
    assert walk(world, ["go", "fly", "stop"]) == first
    assert real.begun == 1
    assert walk(world, ["go", "go"])[-1][:2] == ("hall go go", "3 done")
    assert real.begun == 2  # it had gone another way
    world.close()
    again = KnownWorld(tmp_path / "answers.sqlite", "1", Counter)
    assert walk(again, ["go", "fly", "stop"]) == first
    again.close()


def test_what_an_agent_is_told_stays_with_it_until_the_task_ends():
    asked: list[str] = []

    def ask(act: Act) -> Told | None:
        asked.append(act.action)
        return told("jump") if act.action == "jump" else None

    listener = Listener([told("run")], ask)
    assert [listener.before(Act(one)) is not None for one in ("walk", "run", "jump", "jump")] == [False, True, True, True]
    assert asked == ["walk", "jump"]
    assert listener.heeded == 3


def test_what_is_remembered_by_chance_is_the_same_again():
    def heeded() -> list[bool]:
        listener = Listener([told("run")], remembered=0.5, seed=3)
        return [listener.before(Act("run")) is not None for _ in range(40)]

    assert heeded() == heeded()
    assert 8 < sum(heeded()) < 32


@pytest.fixture(scope="module")
def singers(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    folder = tmp_path_factory.mktemp("singers")
    connection = sqlite3.connect(folder / "singers.sqlite")
    connection.executescript(SINGERS)
    connection.close()
    with tarfile.open(folder / "spider_dev_dbs.tar.gz", "w:gz") as packed:
        packed.add(folder / "singers.sqlite", "singers/singers.sqlite")
    asked = [
        {"task": f"What is the {part} of singer {who} {more}?", "label": f"SELECT {part} FROM singer WHERE id = {who}"}
        for part in PARTS
        for who in (1, 2, 3)
        for more in ("now", "today")
    ]
    (folder / "spider_dev.jsonl").write_text("\n".join(json.dumps({**one, "db_id": "singers"}) for one in asked))
    return Folders(folder, folder / "work")


def case(query: str, solution: str | Trajectory) -> RecalledCase:
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 1.0)
    return RecalledCase(id="1", query=query, solution=solution, metadata={}, **numbers)


def test_a_query_of_which_the_agent_was_told_is_not_run(singers: Folders):
    task = SQLTask(name="spider", file="spider_dev.jsonl", databases="spider_dev_dbs.tar.gz", instruction="")
    items = task.items(singers.data)
    agent = SQL(SQLAgent(task, items, alone=[False] * len(items), strength="full"), alone=[False] * len(items))
    broken = case("Database elsewhere: What?", "SELECT nonsense FROM singer")
    failed = agent.attempt(0, [broken], Listener())
    assert not failed.success
    assert isinstance(failed.answer, Trajectory)
    (step,) = failed.answer.steps
    assert step.failed
    assert "no such column: nonsense" in step.observation
    assert step.arguments["database"] == "singers"
    skipped = agent.attempt(0, [broken], Listener([told(step.action)]))
    assert (skipped.success, skipped.answer) == (False, None)
    better = told(step.action, 'sql({"query": "SELECT name FROM singer WHERE id = 1"})', "Database elsewhere: What?")
    repaired = agent.attempt(0, [broken], Listener([better]))
    assert repaired.success
    assert repaired.steps == 1
    last = Listener([told(step.action)], heeds=LAST_RESORT)
    insisting = agent.attempt(0, [broken], last)
    assert isinstance(insisting.answer, Trajectory)
    assert [one.action for one in insisting.answer.steps] == [step.action]  # nothing else was left
    assert last.last_resort() is None
    assert agent.attempt(0, [broken], Listener([better], heeds=LAST_RESORT)) == repaired
    agent.close()
    task.close()


def test_a_query_is_read_from_a_call():
    assert sql_in('sql({"query": "SELECT 1"})') == sql_in("SELECT 1") == "SELECT 1"
    assert sql_in("sql(nonsense)") == ""


@with_engine
def test_the_household_agent_pays_for_what_is_refused_and_heeds_what_it_is_told(tmp_path: Path):
    make_games(tmp_path / "games", count=2, seed=5, progress=False)
    games = read_games(tmp_path / "games")
    alone = Household(games, alone=[True, True], limit=30, answers=tmp_path / "answers.sqlite")
    solved = alone.attempt(0, (), Listener())
    assert solved.success
    assert isinstance(solved.answer, Trajectory)
    last = games[0].solution[-1]
    spoiled = alone.attempt(0, (), Listener([told(last)]))
    assert not spoiled.success
    assert spoiled.steps == solved.steps - 1
    first = games[0].solution[0]
    repaired = alone.attempt(0, (), Listener([told(last, first)]))
    assert isinstance(repaired.answer, Trajectory)
    assert repaired.answer.steps[-1].action.startswith("go to ")
    insisting = alone.attempt(0, (), Listener([told(last)], heeds=LAST_RESORT))
    assert insisting.success
    assert isinstance(insisting.answer, Trajectory)
    assert insisting.answer.steps[-1].action == last
    alone.close()
    reusing = Household(games, alone=[False, False], limit=30, answers=tmp_path / "answers.sqlite")
    own = case(games[0].query, Trajectory([Step(action) for action in games[0].solution]))
    assert reusing.attempt(0, [own], Listener()).success
    assert reusing.attempt(0, (), Listener()).answer is None
    reusing.close()


@with_science
@pytest.mark.long
def test_the_science_agent_pays_for_what_is_refused_and_heeds_what_it_is_told(tmp_path: Path):
    world = ScienceWorld()
    task = solved_task(world, Place("find-animal", 0))
    world.close()
    assert task is not None
    agent = Science([task], alone=[False], embedder=HashingEmbedder(), answers=tmp_path / "answers.sqlite")
    solved = agent.attempt(0, [case(task.text, task.solution)], Listener())
    assert solved.success
    flown = Trajectory([Step("fly to the moon"), *task.solution.steps])
    refused = agent.attempt(0, [case(task.text, flown)], Listener())
    assert refused.success
    assert isinstance(refused.answer, Trajectory)
    assert [step.action for step in refused.answer.steps if step.failed] == ["fly to the moon"]
    heeded = agent.attempt(0, [case(task.text, flown)], Listener([told("fly to the moon")]))
    assert heeded.steps == refused.steps - 1
    last = task.solution.steps[-1].action
    agent.close()
    agent = Science([task], alone=[True], embedder=HashingEmbedder(), answers=tmp_path / "answers.sqlite")
    given_up, insisting = (agent.attempt(0, (), Listener([told(last)], heeds=how)) for how in HEEDS)
    assert not given_up.success
    assert insisting.success
    agent.close()


@pytest.mark.slow
def test_a_stream_is_played_in_every_arm_and_its_row_is_the_same_again(singers: Folders):
    rows = {}
    for arm in ARMS:
        first, again = (play(Run("spider", arm, 0, None, ASIDE), singers) for _ in range(2))
        assert {**first, "seconds": 0} == {**again, "seconds": 0}
        rows[arm] = first
    assert {row["stream"] for row in rows.values()} == {rows["none"]["stream"]}
    assert all(len(row[name]) == row["n"] for row in rows.values() for name in ("success", "repeated", "steps", "heeded"))
    assert sum(rows["none"]["heeded"]) == sum(rows["failures as examples"]["heeded"]) == 0


def test_how_agents_heed_is_part_of_a_run_and_nothing_else_is_a_way(singers: Folders):
    (run,) = runs(["spider-aside"], seeds=1, arms=["none"], heeds=[LAST_RESORT])
    row = play(run, singers)
    assert (row["heeds"], row["options"], set(row["insisted"])) == (LAST_RESORT, '{"heeds": "last resort"}', {"0"})
    assert len({*runs(heeds=HEEDS)}) == 2 * len({*runs()})
    with pytest.raises(InvalidInput, match="there is no way of heeding 'always'"):
        play(Run("spider", "none", 0, None, ASIDE, '{"heeds": "always"}'), singers)
    options = ["--data", str(singers.data), "--out", str(singers.work / "rows.jsonl")]
    assert main(["bench", "run", "--suite", "warnings", "--heeds", "always", *options]) == 2


def test_what_is_no_arm_or_no_stream_is_refused_by_name(singers: Folders, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(InvalidInput, match="there is no arm 'nonsense'"):
        play(Run("spider", "nonsense", 0, None, ASIDE), singers)
    with pytest.raises(InvalidInput, match="no agent that listens for 'rca'"):
        play(Run("rca", "none", 0), singers)
    options = ["--data", str(singers.data), "--out", str(singers.work / "rows.jsonl")]
    assert main(["bench", "run", "--suite", "warnings", "--tasks", "nonsense", *options]) == 2
    assert "has no 'nonsense'" in capsys.readouterr().err


def row(arm: str, seed: int, success: str, repeated: str) -> dict[str, Any]:
    same = {"task": "spider", "alone": "1010", "steps": [1, 2, 3, 4]}
    return {**same, "method": arm, "seed": seed, "success": success, "repeated": repeated, "again": repeated}


ROWS = [
    *(row("none", seed, "1000", "0011") for seed in range(2)),
    *(row("at the action", seed, "1100", "0001") for seed in range(2)),
]


def test_the_table_compares_with_the_arm_without_warnings_in_the_same_order():
    none, action = table(ROWS)
    assert none == ["none", "66.7", "–", "50.0", "–", "25.0", "–", "2.5", "–"]
    assert action[:7] == ["at the action", "50.0", "-16.7 ± 0.0", "25.0", "-25.0 ± 0.0", "50.0", "+25.0 ± 0.0"]
    assert measured(ROWS[0])["spoiled"] == 50.0


def test_the_plan_has_every_arm_on_every_stream_in_the_same_orders():
    planned = list(runs(seeds=2))
    assert len(planned) == len(set(planned)) == 2 * len(STREAMS) * len(ARMS)


@pytest.mark.slow
def test_the_picture_is_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib")
    draw(ROWS, tmp_path / "warnings.png")
    assert (tmp_path / "warnings.png").stat().st_size > 1000

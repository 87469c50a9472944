"""Household games: plans read from trajectories and adapted, and games that are really made and played where the engine is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cascade_memory.cli import main
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench.household_stage import games_of, household_stage, prepare_household
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.environments.household import engine as engine_module
from cascade_memory.evaluation.environments.household.engine import Engine, is_installed
from cascade_memory.evaluation.environments.household.games import LISTING, Game, make_games, problem, read_games
from cascade_memory.evaluation.environments.household.rooms import LAMP, PLACES, World, draw_scene
from cascade_memory.evaluation.reuse.household import (
    HouseholdAgent,
    Operation,
    adapted,
    carry_out,
    operations,
    read_query,
    replay,
)

with_engine = pytest.mark.skipif(not is_installed(), reason="needs alfworld")
ROOM = "You are in a room. You see a drawer 2, a drawer 1, a sinkbasin 1, and a shelf 1.\n\nYour task is to: "
FOOD, THINGS = {"Apple", "Egg"}, {"Book", "Watch"}
HOLDING = "Cabinet CounterTop Shelf Drawer Fridge Microwave SinkBasin Desk Bed SideTable"
EMPTY = "DiningTable StoveBurner GarbageCan Dresser ArmChair Safe BathtubBasin Toilet Cart Sofa CoffeeTable"
WORLD = World(
    {kind: FOOD | THINGS for kind in HOLDING.split()} | {kind: set() for kind in EMPTY.split()},
    {"Cleanable": FOOD, "Heatable": FOOD, "Coolable": FOOD},
)


@pytest.mark.parametrize(
    ("task", "thing", "goal"),
    [
        ("put a clean egg in drawer.", "egg", "drawer"),
        ("find two creditcard and put them in shelf.", "creditcard", "shelf"),
        ("heat some sinkbasin and put it in drawer.", None, "drawer"),
        ("look at watch under the desklamp.", "watch", None),
        ("examine the cd with the desklamp.", "cd", None),
        ("put a box in fridge.", "box", None),  # no fridge in this room: the first unknown word is the thing
    ],
)
def test_a_query_names_a_thing_and_a_goal(task, thing, goal):
    request = read_query(ROOM + task)
    assert (request.thing, request.goal) == (thing, goal)
    assert request.receptacles == ("drawer 2", "drawer 1", "sinkbasin 1", "shelf 1")


def test_what_is_no_household_task_is_refused():
    with pytest.raises(InvalidInput, match="Your task is to"):
        read_query("put an egg in the fridge")


def test_a_plan_keeps_operations_and_changes_their_nouns():
    actions = ["go to shelf 1", "take egg 2 from shelf 1", "go to sinkbasin 1", "clean egg 2 with sinkbasin 1", "look"]
    actions += ["go to drawer 1", "open drawer 1", "move egg 2 to drawer 1", "examine egg 2"]
    plan = operations(Trajectory([Step(action) for action in actions]))
    assert [one.verb for one in plan] == ["take", "clean", "move"]
    old, new = read_query(ROOM + "put a clean egg in drawer."), read_query(ROOM + "clean some fork and put it in shelf.")
    assert adapted(plan, old, new) == [
        Operation("take", "fork", "shelf 1"),
        Operation("clean", "fork", "sinkbasin 1"),
        Operation("move", "fork", "shelf 1"),
    ]
    looks = read_query(ROOM + "examine the watch with the desklamp.")
    assert adapted(plan, old, looks)[-1] == Operation("move", "watch", "drawer 1")  # no goal to put in its place
    assert operations(Trajectory([Step("use desklamp 1")])) == [Operation("use", "desklamp")]


@pytest.mark.parametrize("task_type", list(PLACES))
def test_a_scene_sets_a_task_that_is_not_done_and_can_be(task_type):
    rng = np.random.default_rng(0)
    for _ in range(20):
        scene = draw_scene(task_type, WORLD, rng)
        lying = [scene.receptacles[place] for kind, place in scene.things if kind == scene.target]
        assert len(lying) >= (2 if task_type == "pick_two_obj_and_place" else 1)
        assert scene.goal not in lying
        if task_type == "look_at_obj_in_light":
            assert [kind for kind, _ in scene.things].count(LAMP) == 1
        else:
            assert scene.goal in scene.receptacles
            assert scene.target in WORLD.holds[scene.goal]
        if task_type.split("_")[1] in ("clean", "heat", "cool"):
            assert scene.target in FOOD
        text = problem(scene, "(:goal (and))", WORLD)
        assert text.count("(") == text.count(")")
        assert text.count("(receptacleType ") == len(scene.receptacles)
        assert text.count("(inReceptacle ") == len(scene.things)


def test_the_engine_says_which_extra_brings_it(monkeypatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(engine_module, "import_module", missing)
    monkeypatch.setattr(engine_module, "IDLE", [])
    with pytest.raises(MissingExtra, match=r"cascade-memory\[bench\]"):
        Engine()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("household") / "games"
    assert main(["bench", "games", "--count", "8", "--out", str(target), "--json"]) == 0
    return target


def case(game: Game) -> RecalledCase:
    nothing = {"similarity": 0.0, "utility": 0.0, "uncertainty": 0.0, "score": 0.0}
    solution = Trajectory([Step(action) for action in game.solution])
    return RecalledCase(id="1", query=game.query, solution=solution, metadata={}, **nothing)


@with_engine
def test_games_are_made_again_the_same_and_from_where_it_stopped(folder, tmp_path):
    games = read_games(folder)
    assert [game.kind for game in games] == [*PLACES, *list(PLACES)[:2]]
    lines = (folder / LISTING).read_text().splitlines()
    (tmp_path / LISTING).write_text(f'{lines[0]}\n{{"task": "cut off by a ki')
    arguments = sys.argv
    assert make_games(tmp_path, count=3, seed=777, progress=False) == 2
    assert sys.argv is arguments  # the planner's translator has its own
    assert (tmp_path / LISTING).read_text().splitlines() == lines[:3]
    assert make_games(tmp_path, count=3, seed=777, progress=False) == 0
    with pytest.raises(InvalidInput, match="seed 777"):
        make_games(tmp_path, count=4, seed=1)
    (tmp_path / LISTING).write_text('["something else"]\n')
    with pytest.raises(InvalidInput, match="something other"):
        make_games(tmp_path, count=4, seed=777)
    with pytest.raises(InvalidInput, match="at least 1"):
        make_games(tmp_path, count=0, seed=777)


@with_engine
def test_a_process_that_used_many_engines_ends_well(folder):
    code = (
        "import sys; from pathlib import Path\n"
        "from cascade_memory.evaluation.environments.household.engine import Engine\n"
        "for _ in range(5):\n"
        "    with Engine() as one, Engine() as other:\n"
        "        print(one.start(Path(sys.argv[1])) == other.start(Path(sys.argv[1])))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, read_games(folder)[0].file], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 5


@pytest.mark.long
@with_engine
def test_what_the_engine_remembers_changes_nothing(folder):
    code = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from cascade_memory.evaluation.environments.household import engine\n"
        "if sys.argv[1] == 'plain': engine._hasten = lambda: None\n"
        "told = []\n"
        "with engine.Engine() as one:\n"
        "    for file in sys.argv[2:] * 2:\n"
        "        told.append(one.start(Path(file)))\n"
        "        for place in range(8):\n"
        "            action = one.possible[place * 7 % len(one.possible)]\n"
        "            told.append([one.act(action), one.act('fly'), one.possible, one.won])\n"
        "print(json.dumps(told))"
    )
    files = [str(game.file) for game in read_games(folder)[:2]]
    fast, plain = (
        subprocess.run([sys.executable, "-c", code, how, *files], capture_output=True, text=True, check=True).stdout
        for how in ("fast", "plain")
    )
    assert json.loads(fast) == json.loads(plain)
    assert len(json.loads(fast)) == 4 * 9


@with_engine
def test_solutions_win_and_so_does_a_plan_that_must_search(folder):
    with Engine() as engine:
        for game in read_games(folder)[:3]:
            played = replay(engine, game.file, game.solution)
            assert played.won
            assert "you see" in played.steps[0].observation.lower() or "closed" in played.steps[0].observation
            plan = operations(Trajectory([Step(action) for action in game.solution]))
            blind = [Operation(one.verb, one.thing, "" if one.verb == "take" else one.receptacle) for one in plan]
            searched = carry_out(engine, game.file, blind)
            assert searched.won
            assert len(searched.steps) >= len(carry_out(engine, game.file, plan).steps)
        (folder / "no-game.json").write_text("{}")
        with pytest.raises(InvalidInput, match=r"no-game\.json is not a game"):
            engine.start(folder / "no-game.json")


@with_engine
def test_the_agent_wins_by_a_case_that_fits_within_the_limit_and_plays_nothing_twice(folder, tmp_path, monkeypatch):
    games = read_games(folder)
    put, looked, other_put = games[0], games[1], games[6]
    agent = HouseholdAgent([put, looked], alone=[False, True], outcomes=tmp_path / "outcomes.sqlite", limit=30)
    fits, misleads = agent.attempt(0, [case(other_put)]), agent.attempt(0, [case(looked)])
    assert fits.success
    assert isinstance(fits.answer, Trajectory)
    assert fits.steps == len(fits.answer.steps) <= 30
    assert not misleads.success
    assert not agent.attempt(0, []).success
    assert agent.attempt(1, [case(put)]).success  # alone, whatever it is shown
    agent.close()

    monkeypatch.setattr("cascade_memory.evaluation.reuse.household.Engine", None)  # known outcomes need none
    short = HouseholdAgent([put], alone=[False], outcomes=tmp_path / "outcomes.sqlite", limit=fits.steps - 1)
    again = short.attempt(0, [case(other_put)])
    assert not again.success
    assert again.steps == fits.steps - 1
    short.close()
    with pytest.raises(InvalidInput, match="between 1 and 30"):
        HouseholdAgent([], alone=[], outcomes=tmp_path / "outcomes.sqlite", limit=31)


@with_engine
def test_the_stage_plays_made_games_and_a_model_those_of_the_data_as_well(folder, data, monkeypatch):
    monkeypatch.setattr("cascade_memory.evaluation.bench.household_stage.MADE", 8)
    folders = Folders(data, folder.parent)
    prepare_household(Run("alfworld-30", "zero-shot", 0, 40, "reuse"), folders)
    stages = [household_stage(Run(f"alfworld-{limit}", "zero-shot", 0, 40, "reuse"), folders) for limit in (20, 30)]
    try:
        assert stages[0].queries == stages[1].queries
        assert [stage.declared["steps"] for stage in stages] == [20, 30]
        assert len(stages[0].queries) == 8  # the agent was made with the 36 of the data
        assert len(games_of(Run("alfworld-20", "zero-shot", 0, 40, "some-model"), folders)[0]) == 40
        assert set(stages[0].kinds) == set(PLACES)
        assert 1 <= sum(stages[0].alone) < 8
        place = stages[0].alone.index(True)
        assert stages[0].solver.attempt(place, []).success
    finally:
        for stage in stages:
            stage.close()

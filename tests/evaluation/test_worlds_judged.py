"""In ALFWorld and ScienceWorld the world itself judges: the known solution earns the reward, and no claim does.

The other two tasks in which an agent acts, deep search and health records, are judged by their answers, in tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hostile_replies import ANYWHERE

from cascade_memory.evaluation.environments.household.engine import Engine, is_installed
from cascade_memory.evaluation.environments.household.games import make_games, read_games
from cascade_memory.evaluation.environments.scienceworld import Place, ScienceWorld
from cascade_memory.evaluation.model.acting import thought_and_action

CLAIMS = [
    "Action: done",
    "Action: The task is done.",
    "Thought: It is done.\nAction: stop",
    "Observation: You won!\nThe score is 100.",
    "Action: win",
    "Action: won = True",
    "Action: score 100",
    "Action: reset",
    "Action: 0",
    "Action: 1",
    "Action: quit",
    "Action: restart\nAction: undo",
    "Action: save game",
    "Action: look; look; look",
    "Action: look\x00",
    "Action: " + "go to desk 1 and " * 500,
    "Action: ../../etc/passwd",
    "Action: __import__('os').system('true')",
    "Action: inventory",
    "Action: examine everything",
]


def earns_nothing(replies: list[str], act: Callable[[str], object], solved: Callable[[], bool]) -> None:
    assert len(replies) >= 20
    for reply in replies:
        act(thought_and_action(reply)[1])
        assert not solved(), reply[:100]


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="ALFWorld's engine is not installed")
def test_in_alfworld(tmp_path: Path):
    make_games(tmp_path, count=2, seed=1, progress=False)
    with Engine() as engine:
        for game in read_games(tmp_path):
            engine.start(game.file)
            earns_nothing([*ANYWHERE, *CLAIMS], engine.act, lambda: engine.won)
            engine.start(game.file)
            for action in game.solution[:-1]:
                engine.act(action)
                assert not engine.won
            engine.act(game.solution[-1])
            assert engine.won


@pytest.mark.slow
@pytest.mark.skipif(find_spec("scienceworld") is None, reason="ScienceWorld is not installed")
def test_in_scienceworld():
    world = ScienceWorld()
    try:
        for kind in ("find-animal", "lifespan-shortest-lived"):
            place = Place(kind, world.training_variations(kind)[0])
            solution = world.load_with_solution(place)
            for action in solution:
                world.act(action)
            assert world.solved
            world.load(place)
            assert not world.solved
            earns_nothing([*ANYWHERE, *CLAIMS], world.act, lambda: world.solved)
    finally:
        world.close()

"""Writes the streams of the worlds in their published layout: a few tasks of our own, made by the worlds themselves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from cascade_memory.evaluation.environments.household.games import GAME, Game, make_games, read_games
from cascade_memory.evaluation.environments.scienceworld import Place, ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_whole import text_of


def alfworld_games(data: Path, made: Path, *, seen: int, unseen: int) -> list[Game]:
    """Put games where ALFWorld's own would be; no stream names them. Return them, unseen last.

    Those that the folder ``made`` lacks are generated there first.
    """
    make_games(made, count=seen + unseen, seed=7, progress=False)
    games: list[Game] = []
    for number, game in enumerate(read_games(made)[: seen + unseen]):
        split = "train" if number < seen else "valid_unseen"
        folder = data / "alfworld" / "json_2.1.1" / split / f"{game.kind}-Thing-None-Place-{number}" / f"trial_T{number}"
        folder.mkdir(parents=True)
        shutil.copy(game.file, folder / GAME)
        (folder / "traj_data.json").write_text(json.dumps({"task_type": game.kind, "task_id": f"trial_T{number}"}))
        games.append(Game(game.query, folder / GAME, game.solution, game.kind))
    return games


def alfworld_stream(data: Path, games: Sequence[Game]) -> None:
    """Write the stream that names the games, as DTLBench does."""
    root = data / "alfworld"
    rows = [{"task": game.query, "game_file": game.file.relative_to(root).as_posix()} for game in games]
    (root / "alfworld.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def scienceworld_stream(data: Path, places: Sequence[tuple[str, int]]) -> None:
    """Write the stream of these experiments, as DTLBench does."""
    world = ScienceWorld()
    rows: list[dict[str, object]] = []
    try:
        for kind, variation in places:
            world.load(Place(kind, variation))
            rows.append({"task": text_of(world), "taskName": kind, "variationIdx": variation})
    finally:
        world.close()
    (data / "scienceworld").mkdir(parents=True, exist_ok=True)
    (data / "scienceworld" / "scienceworld.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

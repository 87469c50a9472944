"""Generates games. Each depends only on the seed and its number, and has a solution that was played and wins."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

import numpy as np

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.rooms import LAMP, PLACES, Scene, World, draw_scene
from cascade_memory.evaluation.tasks.task import Item, read_items
from cascade_memory.memory import progress_bar

OPENABLE = ("Fridge", "Cabinet", "Microwave", "Drawer", "Safe")


def problem(scene: Scene, goal: str, world: World) -> str:
    """Write a room and its task in PDDL, the language of the engine's planner; ``goal`` is the part ``(:goal ...)``."""
    receptacles, things = _names(list(scene.receptacles)), _names([kind for kind, _ in scene.things])
    places = [f"loc_bar_{place}" for place in range(len(receptacles))]
    receptacle_kinds, thing_kinds = sorted(set(scene.receptacles)), sorted({kind for kind, _ in scene.things})
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_init)"]
    for name, kind, place in zip(receptacles, scene.receptacles, places, strict=True):
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {place})"]
        facts += [f"(openable {name})"] if kind in OPENABLE else []
    for kind in receptacle_kinds:
        facts += [f"(canContain {kind}Type {thing}Type)" for thing in thing_kinds if thing in world.holds[kind]]
    for name, (kind, place) in zip(things, scene.things, strict=True):
        facts += [f"(objectType {name} {kind}Type)", f"(objectAtLocation {name} {places[place]})"]
        facts += [f"({fact} {name} {receptacles[place]})" for fact in ("inReceptacle", "wasInReceptacle")]
        facts.append(f"({'toggleable' if kind == LAMP else 'pickupable'} {name})")
        facts += [f"({able.lower()} {name})" for able in ("Cleanable", "Heatable", "Coolable") if kind in world.able[able]]
    objects = [
        f"{' '.join(things)} - object",
        f"{' '.join(receptacles)} - receptacle",
        f"{' '.join([*places, 'loc_init'])} - location",
        f"{' '.join(f'{kind}Type' for kind in receptacle_kinds)} - rtype",
        f"{' '.join(f'{kind}Type' for kind in thing_kinds)} - otype",
        "agent1 - agent",
    ]
    body = [_block("objects", objects), _block("init", facts), goal, "(:metric minimize (total-cost))"]
    return "\n".join(["(define (problem household)", "(:domain alfred)", *body, ")"])


def _block(name: str, lines: list[str]) -> str:
    return "\n ".join([f"(:{name}", *lines]) + "\n)"


def _names(kinds: list[str]) -> list[str]:
    """Make a name for each item, with its number among the items of its kind.

    The engine reads ``Sink_bar_01_bar_SinkBasin`` as the sinkbasin of a sink.

    >>> _names(["Drawer", "SinkBasin", "Drawer"])
    ['Drawer_bar_01', 'Sink_bar_01_bar_SinkBasin', 'Drawer_bar_02']
    """
    names: list[str] = []
    for place, kind in enumerate(kinds):
        number = kinds[: place + 1].count(kind)
        whole = kind.removesuffix("Basin")
        names.append(f"{whole}_bar_{number:02}" + (f"_bar_{kind}" if whole != kind else ""))
    return names


LISTING, GAME = "games.jsonl", "game.tw-pddl"
_DEVICES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}


@dataclass(frozen=True, slots=True)
class Game:
    """A game: its file, its type of task, the first text that a player sees, and actions that win the game."""

    query: str
    file: Path
    solution: tuple[str, ...]
    kind: str
    split: str = ""  # of ALFWorld's own games: "seen" or "unseen", whether the training games have its rooms


def splits_of(games: Sequence[Game]) -> list[str] | None:
    """Return whether the rooms of each game are seen or unseen; None if these are not ALFWorld's own games."""
    return [game.split for game in games] if all(game.split for game in games) else None


def read_games(folder: Path) -> list[Game]:
    """Read the games that a folder lists."""
    return [_listed_game(folder, item) for item in read_items(folder / LISTING)]


def _listed_game(folder: Path, item: Item) -> Game:
    name, actions = str(item.fields.get("game_file", "")), item.label
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or path.name != GAME:
        raise InvalidInput(f"{folder / LISTING} names {name!r}, which is not the path of a game in this folder")
    if not isinstance(actions, list):
        raise InvalidInput(f"{folder / LISTING}: the label of {name!r} must be a list of actions")
    solution = tuple(map(str, cast("list[object]", actions)))
    return Game(item.query, folder / name, solution, str(item.fields.get("task_type", "other")))


def make_games(folder: Path, *, count: int, seed: int, progress: bool | None = None) -> int:
    """Generate games until the folder holds ``count`` of them; return how many were generated.

    The types of task alternate. ``games.jsonl`` lists the games in the format of the tasks of a benchmark.
    """
    if count < 1:
        raise InvalidInput(f"count must be at least 1, not {count}")
    listing = folder / LISTING
    known = _listed(listing, seed)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = range(len(known), count)
    with Engine() as engine:
        queries = {str(row["task"]) for row in known}
        for number in progress_bar(numbers, "games", show=progress):
            row = _make(engine, folder, number, seed, queries)
            queries.add(row["task"])
            with open_own(listing, "a") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
    return len(numbers)


def _listed(listing: Path, seed: int) -> list[dict[str, Any]]:
    """Read the games generated before. A last line that was cut off is dropped, and its game is generated again."""
    if not listing.exists():
        return []
    raw = listing.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    try:
        rows = [json.loads(line) for line in whole.splitlines()]
        seeds = {row["seed"] for row in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{listing} holds something other than generated games: {error!r}") from error
    if seeds - {seed}:
        raise InvalidInput(f"{listing} holds games of the seed {min(seeds - {seed})}; use that seed, or name another folder")
    if len(whole) < len(raw):
        with open_own(listing, "r+b") as file:
            file.truncate(len(whole))
    return rows


def _make(engine: Engine, folder: Path, number: int, seed: int, queries: set[str]) -> dict[str, Any]:
    task_type = list(PLACES)[number % len(PLACES)]
    rng = np.random.default_rng([seed, number])
    while True:
        scene = draw_scene(task_type, engine.world(), rng)
        name = f"{number:04}-{task_type}-{scene.target}-{scene.goal}"
        file = folder / name / GAME
        _write(engine, file, scene, rng)
        query = engine.start(file)
        if query in queries:  # two games with the same text would be one query with two answers
            continue
        actions = solution(engine, scene)
        for action in actions:
            engine.act(action)
        if not engine.won:
            raise RuntimeError(f"the solution of {file} does not win: {actions}")
        about = {"game_file": f"{name}/{GAME}", "task_type": task_type, "orig_index": number, "seed": seed}
        return {"task": query, "label": actions, **about}


def _write(engine: Engine, file: Path, scene: Scene, rng: np.random.Generator) -> None:
    goal, sentences = engine.wording(scene.task_type)
    gaps = {"obj": scene.target, "recep": scene.goal, "toggle": LAMP, "mrecep": ""}
    domain, grammar = engine.rules()
    sentence = str(rng.choice(sentences)).format(**{gap: word.lower() for gap, word in gaps.items()})
    game = {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", sentence),
        "pddl_problem": problem(scene, goal.format(**gaps), engine.world()),
        "solvable": True,
    }
    file.parent.mkdir(exist_ok=True, parents=True)
    with open_own(file, "w") as game_file:
        game_file.write(json.dumps(game))


def solution(engine: Engine, scene: Scene) -> list[str]:
    """Find actions that solve a game from its beginning, with knowledge of where every object is."""
    where, openable = engine.whereabouts(), engine.openable()
    receptacles = sorted({action.removeprefix("go to ") for action in engine.possible if action.startswith("go to ")})
    actions: list[str] = []
    opened: set[str] = set()
    here = ""

    def go(receptacle: str, *, open_it: bool = True) -> None:
        nonlocal here
        if here != receptacle:
            actions.append(f"go to {receptacle}")
            here = receptacle
        if open_it and receptacle in openable - opened:
            actions.append(f"open {receptacle}")
            opened.add(receptacle)

    def first(kind: str) -> str:
        return next(name for name in receptacles if name.rsplit(" ", 1)[0] == kind.lower())

    targets = [thing for thing in where if thing.rsplit(" ", 1)[0] == scene.target.lower()]
    for thing in targets[: 2 if scene.task_type == "pick_two_obj_and_place" else 1]:
        go(where[thing])
        actions.append(f"take {thing} from {where[thing]}")
        for verb, device in _DEVICES.items():
            if f"_{verb}_" in scene.task_type:
                go(first(device), open_it=False)
                actions.append(f"{verb} {thing} with {here}")
        if scene.goal == LAMP:
            go(where[f"{LAMP.lower()} 1"])
            actions.append(f"use {LAMP.lower()} 1")
        else:
            go(first(scene.goal))
            actions.append(f"move {thing} to {here}")
    return actions

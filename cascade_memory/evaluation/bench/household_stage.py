"""Household games like ALFWorld's as a stage, with an agent that reuses trajectories."""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.household.games import GAME, LISTING, Game, make_games, read_games
from cascade_memory.evaluation.reuse.household_agent import HouseholdAgent
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

# The number of generated games, and the number of steps that each stream allows.
MADE, SEED, SEED_ASIDE = 264, 777, 4242
LIMITS = {"alfworld-20": 20, "alfworld-30": 30}


def prepare_household(solver: str, folders: Folders) -> None:
    """Generate the games and unpack those of the data, unless this is already done."""
    if solver == ASIDE:
        make_games(folders.work / "games-aside", count=MADE, seed=SEED_ASIDE)
        return
    make_games(folders.work / "games", count=MADE, seed=SEED)
    if CATALOGUE["alfworld"].is_there(folders.data):
        _unpack(folders.data, folders.work / "games-of-the-data")


def _unpack(data: Path, target: Path) -> None:
    listing, archive = (data / file for file in CATALOGUE["alfworld"].files)
    if (target / LISTING).exists():
        return
    try:
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                path = Path(member.name)
                source = packed.extractfile(member) if member.isfile() and path.name == GAME else None
                if source is not None and path.parent.name not in ("", ".", ".."):  # an archive must not write elsewhere
                    file = target / path.parent.name / GAME
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(source.read())
    except (OSError, tarfile.TarError) as error:
        raise InvalidInput(f"cannot read {archive}: {error}") from error
    (target / LISTING).write_bytes(listing.read_bytes())  # written last: it marks that all games are there


@lru_cache(maxsize=2)
def embedded(work: Path, limit: int | None, solver: str, model: str) -> tuple[list[Game], PrecomputedEmbedder]:
    """Load the stream of games and the vectors of their tasks; both are cached for later runs."""
    games = read_games(work / ("games-aside" if solver == ASIDE else "games"))[:MADE]
    given = work / "games-of-the-data"
    if not solver.startswith("reuse") and (given / LISTING).exists():
        games += read_games(given)
    games = [games[i] for i in np.random.default_rng(3).permutation(len(games))[:limit]]
    return games, PrecomputedEmbedder(best_embedder(model), [game.query for game in games])


def games_of(run: Run, folders: Folders) -> tuple[list[Game], PrecomputedEmbedder]:
    """Return the games in the order of the seed, and the vectors of their queries.

    The reuse agent was developed with the games of the data folder, so it does not play those.
    """
    stream, embedder = embedded(folders.work, run.limit, run.solver, folders.model(run, "embedder"))
    return [stream[i] for i in order_of(len(stream), run.seed)], embedder


def household_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the games in the order of the seed, and the agent with the task's limit of steps."""
    games, embedder = games_of(run, folders)
    alone = solved_alone(run, len(games))
    limit = LIMITS[run.task]
    agent = HouseholdAgent(games, alone=alone, outcomes=folders.work / "household.sqlite", limit=limit)
    return Stage(
        queries=[game.query for game in games],
        solver=agent,
        embedder=embedder,
        declared={"alone": ALONE_REUSE, "steps": limit},
        alone=alone,
        kinds=[game.kind for game in games],
        close=agent.close,
    )

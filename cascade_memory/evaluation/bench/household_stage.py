"""The stage (``stage.Stage``) of household games like ALFWorld's, with an agent that reuses trajectories."""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.household.engine import MOST_BYTES
from cascade_memory.evaluation.environments.household.games import GAME, LISTING, Game, make_games, read_games, splits_of
from cascade_memory.evaluation.environments.household.official import OfficialStream, official_games
from cascade_memory.evaluation.reuse.household import HouseholdAgent
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

# The number of generated games, and the number of steps that each stream allows.
MADE, SEED, SEED_ASIDE = 264, 777, 4242
_MOST_MEMBERS = 20_000  # of an archive of games
LIMITS = {"alfworld-20": 20, "alfworld-30": 30}
OFFICIAL, STEPS = "alfworld", 30  # the stream of ALFWorld's own games, for a model; and the steps that the paper allows


def prepare_household(run: Run, folders: Folders) -> None:
    """Generate as many games as the run plays and unpack the games of the data folder, unless this is already done.

    If the run plays ALFWorld's own games, only the texts at their beginning are read.
    """
    if run.task == OFFICIAL and has_official_games(folders):
        official_stream(run.limit, folders)
        return
    aside = run.solver == ASIDE
    count = MADE if run.limit is None else min(MADE, run.limit)
    make_games(folders.work / _folder(run.solver), count=count, seed=SEED_ASIDE if aside else SEED)
    if not aside and CATALOGUE["alfworld"].is_there(folders.data):
        unpack(folders.data, folders.work / "games-of-the-data")


def _folder(solver: str) -> str:
    return "games-aside" if solver == ASIDE else "games"


def unpack(data: Path, target: Path) -> None:
    """Unpack the games of the data folder, unless this is done; refuse an archive with too many or too large files."""
    listing, archive = (data / file for file in CATALOGUE["alfworld"].files)
    if (target / LISTING).exists():
        return
    try:
        with tarfile.open(archive) as packed:
            for number, member in enumerate(packed, start=1):
                if member.size > MOST_BYTES or number > _MOST_MEMBERS:
                    raise InvalidInput(f"{archive} holds more than games: {member.name!r:.200} is refused")
                path = Path(member.name)
                source = packed.extractfile(member) if member.isfile() and path.name == GAME else None
                if source is not None and path.parent.name not in ("", ".", ".."):  # an archive must not write elsewhere
                    file = target / path.parent.name / GAME
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with open_own(file, "wb") as game:
                        game.write(source.read())
    except (OSError, tarfile.TarError) as error:
        raise InvalidInput(f"cannot read {archive}: {error}") from error
    with open_own(target / LISTING, "wb") as file:  # written last: it marks that all games are there
        file.write(listing.read_bytes())


@lru_cache(maxsize=2)
def embedded(work: Path, limit: int | None, solver: str, model: str) -> tuple[list[Game], PrecomputedEmbedder]:
    """Load the stream of games and the vectors of their tasks; both are cached for later runs."""
    games = read_games(work / _folder(solver))[:MADE]
    given = work / "games-of-the-data"
    if not solver.startswith("reuse") and (given / LISTING).exists():
        games += read_games(given)
    games = games[:limit]  # the first ones, so that no more need to be generated
    games = [games[i] for i in np.random.default_rng(3).permutation(len(games))]
    return games, PrecomputedEmbedder(best_embedder(model), [game.query for game in games])


def has_official_games(folders: Folders) -> bool:
    """Say whether the user has ALFWorld's own games."""
    return official_games(folders.data) is not None


def official_stream(limit: int | None, folders: Folders) -> OfficialStream:
    """Read ALFWorld's own games, at most ``limit`` of them."""
    games = official_games(folders.data)
    assert games is not None
    return OfficialStream.read(games, folders.work / "alfworld-texts.jsonl", limit=limit)


@lru_cache(maxsize=1)
def official_embedded(limit: int | None, folders: Folders, model: str) -> tuple[OfficialStream, PrecomputedEmbedder]:
    """Load ALFWorld's own games and the vectors of their tasks; both are cached for later runs."""
    stream = official_stream(limit, folders)
    return stream, PrecomputedEmbedder(best_embedder(model), [game.query for game in stream.games])


def games_of(run: Run, folders: Folders) -> tuple[list[Game], PrecomputedEmbedder]:
    """Return the games in the order of the seed, and the vectors of their queries.

    If the run's task is the official one, and ALFWorld's own games are installed, these are played, and those in unseen rooms
    come last, as in the paper. Otherwise generated games are played. A solver that is not a reuse agent also plays the games of
    the data folder, if there are any; the reuse agent was developed with them, so it does not.
    """
    if run.task == OFFICIAL and has_official_games(folders):
        stream, embedder = official_embedded(run.limit, folders, folders.model(run, "embedder"))
        seen = len(stream.games) - stream.unseen
        order = [*order_of(seen, run.seed, run.order), *(seen + order_of(stream.unseen, run.seed, run.order))]
        return [stream.games[i] for i in order], embedder
    games, embedder = embedded(folders.work, run.limit, run.solver, folders.model(run, "embedder"))
    return [games[i] for i in order_of(len(games), run.seed, run.order)], embedder


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
        splits=splits_of(games),
        close=agent.close,
    )

"""ALFWorld's own games, from a folder that the user has: the paper's 2,000 of them, those in unseen rooms at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.household.engine import Engine, is_solvable
from cascade_memory.evaluation.environments.household.games import GAME, Game
from cascade_memory.evaluation.environments.household.rooms import PLACES
from cascade_memory.evaluation.environments.kept_lines import add_line, whole_lines
from cascade_memory.evaluation.environments.published import published_rows
from cascade_memory.memory import progress_bar

if TYPE_CHECKING:
    from typing_extensions import Self

PUBLISHED = Path("alfworld", "alfworld.jsonl")  # the paper's own stream, as DTLBench names it
FOLDER = "json_2.1.1"  # as ALFWorld's download names it
SEEN, UNSEEN = "train", "valid_unseen"  # the splits that the paper plays
MOST_SEEN = 1866  # how many games of the split "train" the paper drew; of the other it plays all


@dataclass(frozen=True, slots=True)
class OfficialGame:
    """A game of ALFWorld: its file, its type of task, and its first text if the published stream says it."""

    file: Path
    kind: str
    unseen: bool
    query: str | None = None


def folder_of_games(data: Path) -> Path | None:
    """Find the folder with ALFWorld's splits, in the folder of data or in the folder that ALFWORLD_DATA names.

    ALFWORLD_DATA is ALFWorld's own environment variable. The result is None if neither folder has the splits.
    """
    theirs = os.environ.get("ALFWORLD_DATA")
    places = [data / "alfworld" / FOLDER, data / FOLDER, *([Path(theirs).expanduser() / FOLDER] if theirs else [])]
    return next((place for place in places if (place / SEEN).is_dir() or (place / UNSEEN).is_dir()), None)


def official_games(data: Path) -> list[OfficialGame] | None:
    """List the games of the stream, those in unseen rooms last; None if there is no folder of games.

    If the folder of data holds the published stream, these are its games; both the seen and the unseen ones keep its order.
    Otherwise they are drawn from the folder of games as in the paper: at random from the split "train", and all of
    "valid_unseen".
    """
    folder = folder_of_games(data)
    published = data / PUBLISHED
    if folder is None:
        if published.is_file():
            raise InvalidInput(
                f"{published} names games of ALFWorld, but they are not there: put its folder {FOLDER} beside this file, or "
                "set ALFWORLD_DATA to the folder that holds it (alfworld-download gets it)"
            )
        return None
    if published.is_file():
        rows = published_rows(published, {"task": str, "game_file": str})
        games = [_game(folder, row["game_file"], row["task"]) for row in rows]
        return [*(game for game in games if not game.unseen), *(game for game in games if game.unseen)]
    seen, unseen = (list(_games_in(folder, split)) for split in (SEEN, UNSEEN))
    order = np.random.default_rng(3).permutation(len(seen))[:MOST_SEEN]
    drawn = [*(seen[i] for i in order), *(unseen[i] for i in np.random.default_rng(4).permutation(len(unseen)))]
    if not drawn:
        raise InvalidInput(f"{folder} holds no games ({GAME}): alfworld-download gets them, or alfworld-generate makes them")
    return drawn


@dataclass(frozen=True, slots=True)
class OfficialStream:
    """Games that can be played, those in unseen rooms last, and how many of them are in unseen rooms."""

    games: Sequence[Game]
    unseen: int

    @classmethod
    def read(cls, found: Sequence[OfficialGame], texts: Path, *, limit: int | None = None) -> OfficialStream:
        """Take the first games, and read the texts at their beginning where the published stream does not say them.

        Texts that were read are kept in the file ``texts``. A limit does not change the share of unseen games; from a limit of
        2 on, at least one game is unseen if there are unseen ones. Of the games whose text is read, those that ALFWorld marks
        as unsolvable are left out.
        """
        seen, unseen = ([game for game in found if game.unseen is which] for which in (False, True))
        last = _share(len(seen), len(unseen), limit)
        with _Texts(texts) as known:
            first_part = _taken(seen, known, None if limit is None else limit - last)
            last_part = _taken(unseen, known, None if limit is None else last)
        return cls([*first_part, *last_part], len(last_part))


def _share(seen: int, unseen: int, limit: int | None) -> int:
    """Return how many of ``limit`` games should be unseen ones, if ``seen`` and ``unseen`` games can be had.

    >>> [_share(1866, 134, limit) for limit in (1, 2, 100, 5000)]
    [0, 1, 7, 134]
    """
    if limit is None or not unseen:
        return unseen
    if not seen:
        return min(unseen, limit)
    return min(unseen, max(round(limit * unseen / (seen + unseen)), 1 if limit > 1 else 0))


def _taken(found: Sequence[OfficialGame], known: _Texts, limit: int | None) -> list[Game]:
    playable = (game for one in found if (game := known.game(one)) is not None)
    total = len(found) if limit is None else min(limit, len(found))
    return list(progress_bar(islice(playable, limit), "ALFWorld", show=None, total=total))


class _Texts:
    """The texts at the beginning of games, in a file; the engine is started only for those that the file lacks."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = {row["game"]: row["text"] for row in whole_lines(file)}
        self._engine: Engine | None = None

    def game(self, one: OfficialGame) -> Game | None:
        """Return a game that can be played; None if its text must be read and its file marks it as unsolvable."""
        text = one.query if one.query is not None else self._text(one.file)
        return None if text is None else Game(text, one.file, (), one.kind, "unseen" if one.unseen else "seen")

    def _text(self, file: Path) -> str | None:
        name = "/".join(file.parts[-4:])  # split, task, trial, file: wherever the folder is
        if name not in self._known:
            if self._engine is None:
                self._engine = Engine()
            self._known[name] = self._engine.start(file) if is_solvable(file) else None
            add_line(self._file, {"game": name, "text": self._known[name]})
        return self._known[name]

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine."""
        if self._engine is not None:
            self._engine.close()


def _games_in(folder: Path, split: str) -> Iterator[OfficialGame]:
    for file in sorted((folder / split).glob(f"*/*/{GAME}")):
        name = file.relative_to(folder).as_posix()
        if "movable" not in name and "Sliced" not in name:  # ALFWorld itself leaves these out
            yield _game(folder, name, None)


def _game(folder: Path, name: str, query: str | None) -> OfficialGame:
    """Return a game by its path below the folder; a path that leads elsewhere is refused."""
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    if FOLDER in parts:
        parts = parts[parts.index(FOLDER) + 1 :]
    if path.is_absolute() or ".." in parts or "\\" in name or "\x00" in name or path.name != GAME or len(parts) < 2:
        raise InvalidInput(f"{name!r} is not the path of a game in {folder}, such as {SEEN}/TASK/TRIAL/{GAME}")
    file = folder.joinpath(*parts)
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(f"{file} is a link that leads out of {folder}: copy the game itself there")
    return OfficialGame(file, _kind(parts), parts[0] == UNSEEN, query)


def _kind(parts: Sequence[str]) -> str:
    """Read the type of task from the name of the game's folder; it is "other" if the name has no known type.

    >>> _kind(["train", "pick_and_place_simple-Mug-None-Desk-308", "trial_T2019", "game.tw-pddl"])
    'pick_and_place_simple'
    """
    kinds = [part.split("-", 1)[0] for part in parts]
    return next((kind for kind in kinds if kind in PLACES), "other")

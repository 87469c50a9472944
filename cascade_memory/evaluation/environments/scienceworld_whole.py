"""ScienceWorld as the paper plays it: eleven types of task, which need no known solution since a model plays them.

There are two streams. The one in ``scienceworld_tasks`` is for the reuse agent, which needs for each task a solution that was
verified within the limit of actions. Two types and many variations have no such solution and are left out; published figures
depend on this choice. The stream here has every type, and is drawn from all variations, as the paper's is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.kept_lines import add_line, whole_lines
from cascade_memory.evaluation.environments.published import published_rows
from cascade_memory.evaluation.environments.scienceworld import ALL_LIMITS, Place, ScienceWorld
from cascade_memory.memory import progress_bar

PUBLISHED = Path("scienceworld", "scienceworld.jsonl")  # the paper's own stream, as DTLBench names it
# The paper drew "approximately 200 variations" of each type, 1,857 tasks in all. 200 of each, where there are so many, would be
# 1,901; so that a drawn stream is as long as the paper's, the last 44 of the random order are left out.
PER_KIND, MOST = 200, 1857


@dataclass(frozen=True, slots=True)
class Start:
    """An experiment, and the text that the agent sees at its beginning."""

    place: Place
    text: str

    @property
    def limit(self) -> int:
        """How many actions are allowed in a task of this type."""
        return ALL_LIMITS[self.place.kind]


def published_starts(data: Path) -> list[Start] | None:
    """Read the paper's stream in its order; None if the folder of data does not hold it."""
    file = data / PUBLISHED
    if not file.is_file():
        return None
    rows = published_rows(file, {"task": str, "taskName": str, "variationIdx": int})
    for number, row in enumerate(rows, start=1):
        if row["taskName"] not in ALL_LIMITS or row["variationIdx"] < 0:
            known = ", ".join(ALL_LIMITS)
            about = f"{row['taskName']!r}, variation {row['variationIdx']}"
            raise InvalidInput(f"{file}, task {number}: there is no {about}; the types of task are {known}")
    return [Start(Place(row["taskName"], row["variationIdx"]), row["task"]) for row in rows]


def drawn_starts(file: Path, *, limit: int | None = None, progress: bool | None = None) -> list[Start]:
    """Draw a stream like the paper's, up to 200 variations of each type in random order; return its first ``limit`` tasks.

    The texts are read from the world, which takes a moment for each task, and kept in ``file``.
    """
    found = {Place(row["kind"], row["variation"]): str(row["text"]) for row in whole_lines(file)}
    order = _drawn(file.with_suffix(".places.json"))[:limit]
    missing = [place for place in order if place not in found]
    if missing:
        world = ScienceWorld()
        try:
            for place in progress_bar(missing, "ScienceWorld", show=progress):
                world.load(place)
                found[place] = text_of(world)
                add_line(file, {"kind": place.kind, "variation": place.variation, "text": found[place]})
        finally:
            world.close()
    return [Start(place, found[place]) for place in order]


def text_of(world: ScienceWorld) -> str:
    """Return what the agent sees at the beginning: the task, the room, and what it carries."""
    return f"{world.description()}\n{world.look().strip()}\n{world.inventory().strip()}"


def _drawn(listing: Path) -> list[Place]:
    if listing.exists():
        return [Place(kind, variation) for kind, variation in json.loads(listing.read_text(encoding="utf-8"))]
    world = ScienceWorld()
    try:
        counts = {kind: world.variations(kind) for kind in ALL_LIMITS}
    finally:
        world.close()
    places = list(_some_of_each(counts.items()))
    order = np.random.default_rng(3).permutation(len(places))
    drawn = [places[i] for i in order[:MOST]]
    listing.parent.mkdir(parents=True, exist_ok=True)
    unfinished = listing.with_suffix(".new")
    with open_own(unfinished, "w") as file:
        file.write(json.dumps([[place.kind, place.variation] for place in drawn]))
    unfinished.replace(listing)
    return drawn


def _some_of_each(counts: Iterable[tuple[str, int]]) -> Iterable[Place]:
    for kind, count in counts:
        for variation in np.random.default_rng(len(kind)).permutation(count)[:PER_KIND]:
            yield Place(kind, int(variation))

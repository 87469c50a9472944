"""What is killed: a process that collects scores. It is told a folder, a file for its last words, and a file with numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scored import opened, score

from cascade_memory.capabilities.scores import Score


def scores_of(numbers: list[int]) -> list[Score]:
    """Return two or three scores for each episode; what they come to depends on its number."""
    return [one for number in numbers for one in _of(number)]


def _of(number: int) -> list[Score]:
    first = score(number, number % 2 == 0, id=f"{number}a", at=1.7e9)
    revised = score(number, number % 3 == 0, id=f"{number}a", at=1.7e9 + 1)
    human = score(number, number % 5 == 0, id=f"{number}b", judge="human", by="ann")
    return [first, revised, human] if number % 4 == 0 else [revised, first]


def wanted(number: int) -> tuple[float, str]:
    """Return the reward of an episode, and its source."""
    return (float(number % 5 == 0), "human") if number % 4 == 0 else (float(number % 3 == 0), "judge")


if __name__ == "__main__":
    folder, done, numbers = sys.argv[1:]
    with opened(Path(folder)) as memory:
        sys.stdout.write("began\n")
        sys.stdout.flush()
        collected = memory.scores.collect(scores_of(json.loads(Path(numbers).read_text())))
    Path(done).write_text(json.dumps(collected.why))

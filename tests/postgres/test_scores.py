"""Scores in PostgreSQL: what they come to there is what they come to in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scored import Summary, opened, recalled, score, summary

from cascade_memory import CascadeMemory


def _after(memory: CascadeMemory) -> list[Summary]:
    """Collect scores of all kinds; return what is to be seen after each time."""
    episodes = [recalled(memory, number) for number in range(4)]
    memory.reward(episodes[1], 1.0, source="user")
    memory.reward(episodes[2], 1.0, source="host")
    scores = [score(number, number % 2, judge="human" if number < 2 else "judge", by="ann") for number in range(4)]
    scores.append(score(3, None, id="c", judge="human", by="bob", correction="put it into the freezer"))
    seen: list[Summary] = []
    for some in (
        scores,
        [replace(one, at=1.7e9 + 1, value=1.0) for one in scores],
        [replace(one, at=1.7e9 + 2, deleted=True) for one in scores],
    ):
        for again in (some, some[::-1]):
            assert memory.scores.collect(again).why == ()
            seen.append(summary(memory, episodes))
    return seen


def test_scores_come_to_the_same(new_database: Callable[[], str]):
    url = new_database()
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory, opened() as other:
        assert _after(memory) == _after(other)
        assert memory.scores.newest("mine") == 1.7e9 + 2
    with CascadeMemory(url, embedder="hashing", learn="inline") as memory:
        assert len(memory.scores.known("mine", since=1.7e9)) == 5
        assert all(check.ok for check in memory.data.examine())

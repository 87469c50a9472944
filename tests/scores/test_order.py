"""Any order and any repetition of the same scores gives one ledger, also if processes are killed while they collect."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from intensity import times
from scored import opened, recalled, score, summary

from cascade_memory.capabilities.scores.score import Score

_EPISODES = 3
_WEIGHTS = {"correct": 1.0, "thumb": 0.5}

scores = st.builds(
    lambda number, **fields: score(number, **fields),
    st.integers(0, _EPISODES - 1),
    platform=st.sampled_from(["mine", "yours"]),
    id=st.sampled_from("ab"),
    name=st.sampled_from(["correct", "thumb"]),
    value=st.sampled_from([None, True, 0.0, 0.25, 1.0, "thumbs down", "nobody knows"]),
    judge=st.sampled_from(["human", "judge", "code", "agent"]),
    at=st.sampled_from([1.7e9, 1.7e9 + 1, 1.7e9 + 2]),
    by=st.sampled_from([None, "ann", "bob"]),
    correction=st.sampled_from([None, None, "put it into the freezer", "put it into the fridge"]),
    deleted=st.sampled_from([False, False, False, True]),
)
streams = st.lists(scores, max_size=8)


def after(*parts: Sequence[Score]) -> Any:
    with opened() as memory:
        episodes = [recalled(memory, number) for number in range(_EPISODES)]
        memory.reward(episodes[1], 0.5, source="user")
        memory.reward(episodes[2], 1.0, source="host")
        for part in parts:
            collected = memory.scores.collect(part, weights=_WEIGHTS)
            assert collected.why == ()
        return summary(memory, episodes)


@pytest.mark.fuzz
@settings(deadline=None, max_examples=times(newcomer=8, ci=40, matrix=1_000), suppress_health_check=list(HealthCheck))
@given(streams, st.randoms(use_true_random=False))
def test_any_order_and_any_repetition_gives_one_ledger(stream: list[Score], chance: random.Random):
    other = [*stream, *chance.choices(stream, k=len(stream))] if stream else []
    chance.shuffle(other)
    cut = chance.randint(0, len(other))
    assert after(other[:cut], *([one] for one in other[cut:])) == after(stream)


# -- processes that are killed -------------------------------------------------------------------------------------------


def _collect(folder: str, numbers: list[int], done: str) -> None:
    with opened(Path(folder)) as memory:
        collected = memory.scores.collect(scores_of(numbers))
    Path(done).write_text(json.dumps(collected.why))
    os._exit(0)


def scores_of(numbers: list[int]) -> list[Score]:
    """Return two scores and a revision for each episode; what they come to depends on its number."""
    return [one for number in numbers for one in _of(number)]


def _of(number: int) -> list[Score]:
    first = score(number, number % 2 == 0, id=f"{number}a", at=1.7e9)
    revised = score(number, number % 3 == 0, id=f"{number}a", at=1.7e9 + 1)
    human = score(number, number % 5 == 0, id=f"{number}b", judge="human", by="ann")
    return [first, revised, human] if number % 4 == 0 else [revised, first]


def _wanted(number: int) -> tuple[float, str]:
    return (float(number % 5 == 0), "human") if number % 4 == 0 else (float(number % 3 == 0), "judge")


def _survives(folder: Path, count: int, kills: int) -> None:
    with opened(folder) as memory:
        episodes = [recalled(memory, number, solution=f"fridge {number}") for number in range(count)]
    chance, spawn = random.Random(count), multiprocessing.get_context("fork")
    shares = [chance.sample(range(count), count * 2 // 3) for _ in range(2)]
    shares.append(sorted({*range(count)} - {*shares[0], *shares[1]} | {*chance.sample(range(count), count // 2)}))
    running: dict[int, Any] = {}
    finished: set[int] = set()
    killed = 0
    while len(finished) < len(shares):
        for place, share in enumerate(shares):
            if place not in finished and place not in running:
                chance.shuffle(share)
                running[place] = spawn.Process(target=_collect, args=(str(folder), share, str(folder) + f".{place}"))
                running[place].start()
        time.sleep(chance.uniform(0.05, 0.6) if killed < kills else 0.05)
        if killed < kills:
            os.kill(running[chance.choice(sorted(running))].pid, signal.SIGKILL)
            killed += 1
        for place, process in list(running.items()):
            process.join(timeout=0.02)
            if process.exitcode is not None:
                del running[place]
                if process.exitcode == 0 and killed >= kills:
                    finished.add(place)
    assert killed == kills
    assert [json.loads(Path(f"{folder}.{place}").read_text()) for place in range(3)] == [[], [], []]
    with opened(folder) as memory:
        found = [memory.episodes.get(one) for one in episodes]
        assert [(one.reward, one.source) for one in found if one is not None] == [_wanted(number) for number in range(count)]
        rows = Counter((one.trace_id, one.id) for one in memory.scores.known("mine"))
        assert rows == Counter({(one.trace_id, one.id) for one in scores_of(list(range(count)))})
        assert {case.copies for case in memory.cases.all()} == {1}
        assert len(memory) == sum(_wanted(number)[0] == 1.0 for number in range(count))
        assert all(check.ok for check in memory.data.examine())


@pytest.mark.slow
def test_scores_survive_kills(tmp_path: Path):
    _survives(tmp_path / "m", 60, 5)


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_ten_thousand_scores_survive_fifty_kills(tmp_path: Path):
    _survives(tmp_path / "m", 4_500, 50)  # 2.25 scores each

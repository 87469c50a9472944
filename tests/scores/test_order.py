"""Any order and any repetition of the same scores gives one ledger, also if processes are killed while they collect."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import scores_worker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from intensity import times
from scored import opened, recalled, score, summary
from scores_worker import scores_of, wanted

import cascade_memory
from cascade_memory.capabilities.scores import Score

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


class _Collecting:
    """A process that collects the scores of some episodes, in an order of its own each time."""

    def __init__(self, folder: Path, place: int, numbers: list[int]) -> None:
        self._folder, self.done, self._order = folder, folder.with_suffix(f".done{place}"), folder.with_suffix(f".order{place}")
        self._numbers = numbers
        self.process: subprocess.Popen[str] | None = None

    def begin(self, chance: random.Random) -> None:
        chance.shuffle(self._numbers)
        self._order.write_text(json.dumps(self._numbers))
        words = [sys.executable, scores_worker.__file__, str(self._folder), str(self.done), str(self._order)]
        paths = [str(Path(scores_worker.__file__).parent), str(Path(cascade_memory.__file__).parents[1])]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        )

    def killed_soon(self, chance: random.Random) -> bool:
        """Kill the process a moment after it has begun; say whether that was in time."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "began\n"
        time.sleep(chance.uniform(0.0, 0.3))
        self.process.kill()
        return self.ended() != 0

    def ended(self) -> int:
        assert self.process is not None
        self.process.communicate()
        code, self.process = self.process.returncode, None
        return code


def _survives(folder: Path, count: int, kills: int) -> None:
    with opened(folder) as memory:
        episodes = [recalled(memory, number, solution=f"fridge {number}") for number in range(count)]
    chance = random.Random(count)
    shares = [chance.sample(range(count), count * 2 // 3) for _ in range(2)]
    shares.append(sorted({*range(count)} - {*shares[0], *shares[1]} | {*chance.sample(range(count), count // 2)}))
    workers = [_Collecting(folder, place, share) for place, share in enumerate(shares)]
    killed = 0
    while killed < kills:
        for one in workers:
            if one.process is None:
                one.begin(chance)
        killed += chance.choice(workers).killed_soon(chance)
    for one in workers:
        if one.process is None:
            one.begin(chance)
    assert [one.ended() for one in workers] == [0, 0, 0]
    assert [json.loads(one.done.read_text()) for one in workers] == [[], [], []]
    with opened(folder) as memory:
        found = [memory.episodes.get(one) for one in episodes]
        assert [(one.reward, one.source) for one in found if one is not None] == [wanted(number) for number in range(count)]
        rows = Counter((one.trace_id, one.id) for one in memory.scores.known("mine"))
        assert rows == Counter({(one.trace_id, one.id) for one in scores_of(list(range(count)))})
        assert {case.copies for case in memory.cases.all()} == {1}
        assert len(memory) == sum(wanted(number)[0] == 1.0 for number in range(count))
        assert all(check.ok for check in memory.data.examine())


@pytest.mark.slow
def test_scores_survive_kills(tmp_path: Path):
    _survives(tmp_path / "m", 300, 3)


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_ten_thousand_scores_survive_fifty_kills(tmp_path: Path):
    _survives(tmp_path / "m", 4_500, 50)  # 2.25 scores each

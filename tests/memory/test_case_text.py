"""What a case is kept and found under."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cascade_memory import CascadeMemory, Retention, Step, Trajectory, with_tool_calls
from cascade_memory.assembly.reindex import reindex
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput

STEPS = [Step(tool="search", arguments={"query": "Spielberg"}, observation="born in Cincinnati", thought="whom to look up?")]
TASK = "Where was the director of Jaws born?"


def test_tools_are_part_of_what_a_case_is_found_by(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", retention=Retention(case_text=with_tool_calls), learn="inline") as memory:
        episode = memory.recall(TASK).episode_id
        case = memory.reward(episode, 1.0, solution=STEPS)
        assert case is not None
        kept = memory.cases.get(case)
        assert kept.query == f'{TASK}\nTool calls: search({{"query": "Spielberg"}})'
        by_tool = memory.cases.search("search Spielberg").cases[0].similarity
        with CascadeMemory(embedder="hashing", learn="inline") as plain:
            plain.reward(plain.recall(TASK).episode_id, 1.0, solution=STEPS)
            assert by_tool > plain.cases.search("search Spielberg").cases[0].similarity + 0.1
    assert reindex(tmp_path, "hashing") == 1
    with CascadeMemory(tmp_path, embedder="hashing") as memory:
        assert memory.cases.search("search Spielberg").cases[0].similarity == pytest.approx(by_tool, abs=1e-5)


def test_plain_text_and_steps_without_tools_are_kept_under_the_task():
    assert with_tool_calls(TASK, "Cincinnati") == TASK
    with CascadeMemory(embedder="hashing", retention=Retention(case_text=with_tool_calls)) as memory:
        case = memory.reward(memory.recall(TASK).episode_id, 1.0, solution=[Step(action="look")])
        assert case is not None
        assert memory.cases.get(case).query == TASK


@pytest.mark.parametrize("wrong", [lambda _q, _s: 1 / 0, lambda _q, _s: None, lambda _q, _s: ""])
def test_one_that_fails_does_not_cost_the_outcome(wrong):
    with CascadeMemory(embedder="hashing", retention=Retention(case_text=wrong)) as memory:
        case = memory.reward(memory.recall(TASK).episode_id, 1.0, solution="Cincinnati")
        assert case is not None
        assert memory.cases.get(case).query == TASK
        assert memory.health().failures == {"case_text": 1}


def test_one_that_cannot_be_called_is_refused():
    with pytest.raises(InvalidInput, match="case_text"):
        CascadeMemory(embedder="hashing", retention=Retention(case_text="query"))  # type: ignore[arg-type]


def test_nor_does_an_embedder_that_is_away():
    class Away(HashingEmbedder):
        away = False

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if self.away:
                raise ConnectionError("no embedder")
            return super().embed(texts)

    embedder = Away()
    with CascadeMemory(embedder=embedder, retention=Retention(case_text=with_tool_calls)) as memory:
        episode = memory.recall(TASK).episode_id
        embedder.away = True
        case = memory.reward(episode, 1.0, solution=STEPS)
        assert case is not None
        assert (memory.cases.get(case).query, memory.health().failures) == (TASK, {"case_text": 1})


def test_what_is_added_by_hand_is_found_the_same_way():
    with CascadeMemory(embedder="hashing", retention=Retention(case_text=with_tool_calls)) as memory:
        added = memory.add(TASK, STEPS)
        assert memory.reward(memory.recall(TASK).episode_id, 1.0, solution=STEPS) == added
        assert memory.stats().cases == 1


def test_a_long_task_leaves_room_for_fewer_tools():
    assert len(with_tool_calls("x" * 99_990, Trajectory(STEPS))) == 100_000

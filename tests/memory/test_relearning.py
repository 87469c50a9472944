"""A failure while something is learned or forgotten is made good; nothing forgotten comes back."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory


def _teach(memory: CascadeMemory, n: int, start: int = 0) -> list[str]:
    episodes = []
    for i in range(start, start + n):
        recall = memory.recall(f"task {i} of kind {i % 7}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")
        episodes.append(recall.episode_id)
    return episodes


def _fail_once(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, left = getattr(owner, name), [OSError("too many open files")]

    def sometimes(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, sometimes)


def test_a_reward_whose_case_could_not_be_indexed_at_once_is_acknowledged_and_made_good(on_disk, monkeypatch):
    memory = on_disk()
    _teach(memory, 5)
    episode = memory.recall("another task").episode_id
    _fail_once(engine_of(memory).parts.ledger, "scan", monkeypatch)
    assert memory.reward(episode, 1.0, solution="another solution")
    assert memory.health().failures == {"follow": 1}
    assert memory.recall("another task").explain().candidates[0].similarity > 0.99
    state = state_of(memory)
    assert state.index.count == memory.stats().cases
    assert state.policy.rewards == memory.stats().rewards == 6


def test_a_forgetting_that_could_not_be_learned_at_once_is_learned_later(on_disk, monkeypatch):
    memory = on_disk()
    episodes = _teach(memory, 10)
    _fail_once(engine_of(memory).parts.ledger.lessons, "history", monkeypatch)
    memory.forget(episode_id=episodes[1])
    assert state_of(memory).rebuild_due
    assert memory.health().failures == {"learn": 1}
    memory.sync()
    assert state_of(memory).policy.rewards == memory.stats().rewards == 9


def test_a_purge_says_what_could_not_be_relearned(on_disk, monkeypatch):
    memory = on_disk()
    episodes = _teach(memory, 10)

    def broken(*_: object, **__: object) -> object:
        raise OSError("too many open files")

    monkeypatch.setattr(engine_of(memory).parts.ledger.lessons, "history", broken)
    receipt = memory.forget(episode_id=episodes[1], purge=True)
    assert not receipt.purged
    assert "learning again failed" in receipt.stale[0]
    monkeypatch.undo()
    assert memory.forget(purge=True).purged  # once more, and all is well
    assert state_of(memory).policy.rewards == 9


_OTHER = textwrap.dedent(
    """
    import sys
    from cascade_memory import CascadeMemory
    with CascadeMemory(sys.argv[1], embedder="hashing", learn="inline") as memory:
        if sys.argv[2] == "teach":
            for i in range(15):
                recall = memory.recall(f"task {i} of kind {i % 7}")
                memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")
        else:
            memory.forget(everything=True)
        print(memory.stats().rewards)
    """
)


def _other(tmp_path: Path, verb: str) -> str:
    arguments = [sys.executable, "-c", _OTHER, str(tmp_path / "memory"), verb]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert not ran.returncode, ran.stderr
    return ran.stdout.strip()


def test_a_process_that_does_not_learn_leaves_no_snapshot(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 20)
    memory.close()
    idle = on_disk(learn="off")
    assert _other(tmp_path, "teach") == "35"
    idle.recall("task 3 of kind 3")
    idle.close()
    assert state_of(on_disk()).policy.rewards == 35


def test_what_another_process_forgot_does_not_come_back_in_a_snapshot(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk()
    _teach(memory, 25)
    assert _other(tmp_path, "forget") == "0"
    memory.close()  # it has not looked since
    assert state_of(on_disk()).policy.rewards == 0


def test_a_short_session_compacts_what_it_leaves(on_disk, monkeypatch):
    monkeypatch.setattr("cascade_memory.learning.learner.WINDOW", 20)
    for session in range(6):
        memory = on_disk()
        _teach(memory, 10, start=10 * session)
        memory.close()
    memory = on_disk()
    with engine_of(memory).parts.ledger.connections.read() as connection:
        (whole,) = connection.execute("SELECT count(*) FROM recall WHERE length(context) > 0").fetchone()
    assert whole <= 21

"""Several processes in one folder: started by spawn, killed, or a notebook whose cells are run again."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from busy_process import BusyProcess, make_at_once
from inside import engine_of, state_of
from waiting import wait_until

from cascade_memory import CascadeMemory
from cascade_memory.engine.mirror_projection import Mark
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.sqlite import SQLiteLedger


@pytest.fixture
def start() -> Iterator[Callable[[], BusyProcess]]:
    started: list[BusyProcess] = []

    def one() -> BusyProcess:
        started.append(BusyProcess(len(started)))
        return started[-1]

    yield one
    for process in started:
        process.kill()


def test_a_spawned_worker_works_in_its_parents_folder(on_disk, start: Callable[[], BusyProcess], tmp_path: Path):
    memory = on_disk()
    memory.add("heat the cup", "microwave")
    worker = start()
    assert worker.call("open", tmp_path / "memory") == "follower"
    seen, case = worker.call("solve", "heat a cup", "stove")
    assert seen == ["microwave"]
    assert memory.cases.search("heat a cup").cases[0].id == case
    assert state_of(memory).policy.rewards == 1
    memory.add("wash the plate", "sink")
    assert worker.call("solve", "wash the plate", "sink")[0] == ["sink"]  # and the other way round
    worker.call("close")
    assert worker.stop() == 0


@pytest.mark.long
def test_processes_that_make_the_same_folder_at_once_wait_for_each_other(tmp_path: Path):
    assert make_at_once(tmp_path, processes=3, rounds=60) == []


@pytest.mark.slow
@pytest.mark.long
def test_when_the_owner_is_killed_a_writing_follower_takes_over_and_nothing_is_lost(
    start: Callable[[], BusyProcess], tmp_path: Path
):
    folder = tmp_path / "memory"
    owner, *followers = start(), start(), start()
    states = [process.call("open", folder) for process in (owner, *followers)]
    assert states == ["clean", "follower", "follower"]
    for process in (owner, *followers):
        process.call("start_writing")
    wait_until(lambda: owner.call("state") == "open", 30)  # it is feeding Chroma
    written = owner.call("written")
    owner.kill()

    def promoted() -> list[BusyProcess]:
        return [process for process in followers if process.call("state") != "follower"]

    wait_until(promoted, 5)
    time.sleep(1.5)  # the other one has had its chance to believe the same
    assert len(promoted()) == 1
    written += [case for process in followers for case in process.call("stop_writing")]
    assert len(written) > 50
    (heir,) = promoted()
    heir.call("sync")
    assert heir.call("wrong") == []
    for process in followers:
        assert process.call("close") == {}
        assert process.stop() == 0
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert all(memory.cases.get(case) for case in written)
        assert all(check.ok for check in memory.data.examine())
        assert engine_of(memory).parts.mirror is not None
        assert engine_of(memory).parts.mirror.count("default") == memory.stats().cases >= len(written)


_CELL = """
memory = CascadeMemory(path, embedder="hashing"{options})
memory.add(f"heat cup {{memory.stats(everywhere=True).cases}}", "microwave")
{then}
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", ", k=3, namespace='other'"])
@pytest.mark.parametrize("then", ["", "kept = memory", "memory.recall('heat'); del memory; gc.collect()", "memory.sync()"])
def test_a_notebook_cell_run_twice_loses_nothing_and_ends_cleanly(tmp_path: Path, options: str, then: str):
    script = textwrap.dedent(
        """
        import gc, sys
        from cascade_memory import CascadeMemory
        path = sys.argv[1]
        """
    )
    script += _CELL.format(options="", then=then) + _CELL.format(options=options, then=then)
    folder = tmp_path / "memory"
    ran = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    assert Mark.read(ledger.facts.get("mirror")).clean
    ledger.close()
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.stats(everywhere=True).cases == 2
        memory.sync()
        assert all(check.ok for check in memory.data.examine())


def test_a_cell_run_again_with_other_settings_says_what_to_do(on_disk, tmp_path: Path):
    memory = on_disk()
    with pytest.raises(InvalidInput, match="close it there first"):
        on_disk(ranker="similarity")
    memory.close()
    assert on_disk(ranker="similarity").stats().cases == 0


def test_a_handle_that_nobody_holds_any_more_does_not_keep_the_folder(tmp_path: Path):
    memory = CascadeMemory(tmp_path, embedder="hashing")
    memory = CascadeMemory(tmp_path, embedder="hashing")  # the cell was run again: the first one cannot be closed any more
    gc.collect()
    memory.close()
    with CascadeMemory(tmp_path, embedder="hashing", ranker="similarity") as other:
        assert other.stats().policy == "similarity-1"

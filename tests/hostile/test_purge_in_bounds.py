"""A purge rewrites the whole ledger: elsewhere, in little memory, beside recalls, and leaving its copy to nobody."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.mirror import ChildBuild
from cascade_memory.errors import StoreUnwritable
from cascade_memory.ledger import maintenance

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
_DEADLINE, _SLACK = 0.5, 1.5


def _children() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            found += [int(entry.name)] if parent == os.getpid() else []
    return found


def _megabytes(pid: int | str = "self") -> float:
    """Return what is this process's alone; nothing for a child that still runs its parent's program, in its memory."""
    try:
        if pid != "self" and Path(f"/proc/{pid}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes():
            return 0.0
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("Private_"))


def _open_files(pid: int) -> set[str]:
    files = set()
    try:
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            files.add(str(handle.readlink()))
    except OSError:  # it has just ended
        pass
    return files


@pytest.mark.long
def test_a_purge_takes_little_memory_holds_no_recall_up_and_keeps_its_copy_in_the_folder(tmp_path: Path):
    folder = tmp_path / "m"
    with CascadeMemory(folder, embedder="hashing", learn="off", deadline=_DEADLINE, ranking=Ranking(abstain=False)) as memory:
        cases = [(f"task {i} of kind {i % 9}", f"{os.urandom(20_000).hex()} {i}") for i in range(4_000)]
        _engine_feeds_nothing(memory)
        memory.add(cases, progress=False)
        del cases
        memory.recall("task 1 of kind 1")
        size = (folder / "ledger.sqlite3").stat().st_size / 2**20
        assert size > 150
        purged, most, files, before = threading.Event(), 0.0, set[str](), _megabytes()
        waited, found = [], []

        def recall() -> None:
            while not purged.is_set():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    began = time.perf_counter()
                    found.append(memory.recall("task 1 of kind 1"))
                    waited.append(time.perf_counter() - began)
                time.sleep(0.01)

        def watch() -> None:
            nonlocal most, files
            while not purged.is_set():
                children = _children()
                most = max(most, _megabytes() - before + sum(map(_megabytes, children)))
                for child in children:
                    files |= _open_files(child)
                time.sleep(0.005)

        threads = [threading.Thread(target=work) for work in (recall, watch)]
        for thread in threads:
            thread.start()
        receipt = memory.forget(memory.cases.search("task 7 of kind 7").cases[0].id, purge=True)
        purged.set()
        for thread in threads:
            thread.join()
        assert receipt.cases == 1
        assert max(waited) < _DEADLINE + _SLACK
        assert all(one.cases for one in found)
        assert most < 150  # the ledger would not fit
        copies = [name for name in files if "etilqs" in name]
        assert copies
        assert all(name.startswith(str(folder)) for name in copies)
        assert not list(folder.glob("etilqs*"))


@pytest.mark.slow
@pytest.mark.long
def test_a_large_ledger_is_fed_to_a_new_chroma_in_little_memory(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="off") as memory:
        _engine_feeds_nothing(memory)
        memory.add([(f"task {i} of kind {i % 9}", f"{i} " * 10_000) for i in range(3_000)], progress=False)
        engine_of(memory).close(feed=False)
    build, most = ChildBuild(tmp_path / "m" / "ledger.sqlite3", tmp_path / "new"), 0.0
    while build.poll() is None:
        most = max(most, *map(_megabytes, _children()))
        time.sleep(0.02)
    assert build.poll() == 0
    build.finish()
    assert 100 < most < 290  # with an arena for each of its threads: 320


def _engine_feeds_nothing(memory: CascadeMemory) -> None:
    """Chroma has its own costs, and its own tests."""
    feeder = engine_of(memory).feeder
    assert feeder is not None
    feeder.purge = lambda line: ()  # type: ignore[method-assign]
    feeder.feed_once = lambda *_: False  # type: ignore[method-assign]


def test_a_process_that_cannot_write_it_anew_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="off") as memory:
        case = memory.add("task", "solution")
        full = "import sys; sys.exit('database or disk is full')"
        monkeypatch.setattr(maintenance, "_PROGRAM", full)
        with pytest.raises(StoreUnwritable, match="no room left"):
            memory.forget(case, purge=True)
        monkeypatch.undo()
        assert memory.forget(purge=True).purged

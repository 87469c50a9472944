"""A folder on a disk that is full, or that may only be read: opened, looked at, and written again when that is possible."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

from small_disk import SmallDisk

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.errors import StoreUnwritable

DEADLINE = 0.5


def _refused(call) -> str:
    try:
        call()
    except StoreUnwritable as error:
        return str(error)
    return "it worked"


def _made_read_only(disk: SmallDisk) -> bool:
    for _ in range(100):  # Chroma lets go of its files a little after it was closed
        if disk.read_only(True):
            return True
        time.sleep(0.05)
    return False


def main(place: Path, kind: str, when: str) -> dict[str, object]:
    """Do it; ``when`` the disk becomes so: before the memory is opened, or while it is open."""
    disk = SmallDisk(place, megabytes=64)
    folder = place / "memory"
    options = {"embedder": "hashing", "deadline": DEADLINE, "ranking": Ranking(abstain=False)}
    with CascadeMemory(folder, **options) as memory:
        for i in range(20):
            memory.reward(memory.recall(f"task {i} of kind {i % 4}").episode_id, 1.0, solution=f"solution {i % 4}")
        case = memory.cases.search("task 1 of kind 1").cases[0].id
    memory = CascadeMemory(folder, **options) if when == "open" else None
    if memory is not None:
        memory.recall("task 0 of kind 0")
        memory.sync()
    agreed = _made_read_only(disk) if kind == "read-only" else disk.leave(0) or True
    found: dict[str, object] = {"agreed": agreed}
    memory = memory or CascadeMemory(folder, **options)
    waited, recalls = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(30):
            began = time.perf_counter()
            recalls.append(memory.recall(f"task {i} of kind {i % 4} " + "long " * 2_000))
            waited.append(time.perf_counter() - began)
    found["waited"] = sorted(waited)
    found["with cases"] = sum(len(one.cases) == 1 for one in recalls)
    found["errors"] = [one.error for one in recalls if one.error][:1]
    found["add"] = _refused(lambda: memory.add("a task", "x" * 200_000))
    found["reward of unrecorded"] = memory.reward(recalls[-1].episode_id, 1.0) if recalls[-1].error else "recorded"
    found["search"] = len(memory.cases.search("task 1 of kind 1").cases)
    found["get"] = memory.cases.get(case).solution
    found["cases"] = memory.stats().cases
    found["exported"] = memory.data.export("/dev/null", progress=False)
    found["doctor"] = [check.name for check in memory.data.examine()]
    found["health"] = [memory.health().ok, memory.health().read_only]
    if kind == "read-only":
        disk.read_only(False)
    disk.release()
    time.sleep(0.6)
    found["written again"] = memory.add("a task", "x" * 200_000, metadata={"late": True}) is not None
    found["rewarded again"] = (
        memory.reward(memory.recall("task 1 of kind 1").episode_id, 1.0, solution="solution 1") is not None
    )
    memory.sync()
    found["health then"] = memory.health().read_only
    memory.close()
    with CascadeMemory(folder, **options) as memory:
        found["stored"] = [case.query for case in memory.cases.search("a task", where={"late": True}).cases]
    disk.close()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])) + "\n")

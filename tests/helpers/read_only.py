"""A disk that turns read-only, while a memory is open and before it is opened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from fault_trial import ADVICE
from forks import say
from small_disk import SmallDisk

from cascade_memory import CascadeMemory
from cascade_memory.errors import StoreUnwritable


def _refusal(verb: str, call: Callable[[], object]) -> list[str]:
    try:
        call()
    except StoreUnwritable as error:
        advised = any(words in str(error) for words in ADVICE)
        return [] if advised else [f"{verb} does not say what to do: {error}"]
    except Exception as error:
        return [f"{verb} raised {error!r}"]
    return [f"{verb} worked"]


def refused_while_read_only(template: Path, disk: SmallDisk, pipe: int) -> None:
    """Report what went otherwise than with a clear error, and what was not there afterwards."""
    folder = disk.path / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)

    def opened() -> CascadeMemory:
        return CascadeMemory(folder, embedder="hashing", learn="inline")

    with opened() as memory:
        before = memory.stats()
        in_use = disk.read_only(True)  # the kernel may refuse: then files that are open stay writable
        wrong = _refusal("add", lambda: memory.add("q", "s")) if in_use else []
        disk.read_only(False)
    if not disk.read_only(True):
        wrong.append("the disk could not be made read-only although everything was closed")
    with opened() as memory:  # it can be read
        wrong += [] if memory.stats() == before else ["something cannot be seen while the disk is read-only"]
        wrong += [] if memory.cases.search("task 1 of kind 1").cases else ["a search finds nothing while the disk is read-only"]
        wrong += [] if memory.health().read_only else ["nobody says that the disk is read-only"]
        wrong += _refusal("add", lambda: memory.add("q", "s"))
    wrong += _refusal("a new folder", lambda: CascadeMemory(disk.path / "new", embedder="hashing"))
    disk.read_only(False)
    with opened() as memory:
        wrong += [] if memory.stats() == before else ["something is missing after the disk was read-only"]
        memory.add("q", "s")
        memory.sync()
        wrong += [check.detail for check in memory.data.examine() if not check.ok and check.name != "free disk"]
    say(pipe, json.dumps({"refused": ["add", "open"], "wrong": wrong, "facts": 1, "healed": in_use}))

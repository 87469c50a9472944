"""How long a walk through the package is: the calls, the files and the changes of file of one recall, one reward, one purge.

    python tests/helpers/walks.py           # the counts
    python tests/helpers/walks.py --files   # and which files

A call counts where it enters a function of the package, on whichever thread. It is a change of file where its caller, the
nearest one that belongs to the package, stands in another file. Going on after a ``yield`` (the end of a ``with`` block of a
context manager) is no call. What ``interruptible`` does around a context manager counts as little as what ``contextlib`` does.
"""

from __future__ import annotations

import argparse
import dis
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import cascade_memory

ROOT = str(Path(cascade_memory.__file__).parent)
_GENERATED = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")  # part of the function around them
_AROUND = ROOT + "/domain/interruptible.py"
_RESUME = dis.opmap.get("RESUME")  # since Python 3.11: the instruction at which a function begins, or goes on


@dataclass
class Walk:
    """What was entered on the way."""

    calls: int = 0
    changes: int = 0
    files: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        """Return the three figures."""
        return f"{self.calls} calls, {len(self.files)} files, {self.changes} changes of file"


def walk_of(work: Callable[[], object]) -> Walk:
    """Return the walk of some work, its threads included."""
    walk, noting = Walk(), threading.Lock()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not _is_ours(code.co_filename) or code.co_name in _GENERATED or _goes_on(frame):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller.f_code.co_filename):
            caller = caller.f_back
        with noting:
            walk.calls += 1
            walk.files[code.co_filename.removeprefix(ROOT + "/")] += 1
            walk.changes += caller is None or caller.f_code.co_filename != code.co_filename

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


def _is_ours(file: str) -> bool:
    return file.startswith(ROOT) and file != _AROUND


def _goes_on(frame: FrameType) -> bool:
    """Say whether a generator or coroutine that was entered before goes on."""
    at = frame.f_lasti
    if at < 0 or _RESUME is None:
        return at >= 0
    instruction, argument = frame.f_code.co_code[at : at + 2]
    return instruction == _RESUME and argument != 0


def walks(folder: Path) -> dict[str, Walk]:
    """Return three walks through a memory: each the shortest of some rounds, in which nothing is loaded for the first time and
    no thread of the memory's own has just woken up.
    """
    from cascade_memory.langchain import CascadeMemory

    memory = CascadeMemory(folder, embedder="hashing", learn="inline", deadline=None, reward_fn=lambda episode: 1.0)
    other = cascade_memory.CascadeMemory(embedder="hashing")
    other.forget(other.add("cool an egg", "put it into the fridge"))  # what is imported at its first use is loaded now
    other.close()
    found: dict[str, list[Walk]] = {}
    for round_ in range(4):
        for number in range(5):
            recall = memory.engine.recall(f"cool mug {round_}.{number}")
            memory.engine.reward(recall.episode_id, 1.0, solution="put it into the fridge")
        found.setdefault("a recall through the LangChain retriever", []).append(_recall(memory))
        found.setdefault("a reward through the handler", []).append(_reward(memory))
        found.setdefault("forget(purge=True)", []).extend(_purge(memory) for _ in range(3))  # other threads wake up in some
    memory.engine.close()
    return {name: min(its, key=lambda walk: walk.calls) for name, its in found.items()}


def _recall(memory: Any) -> Walk:
    """Walk from LangChain's call of the retriever to its documents."""
    return walk_of(lambda: memory.invoke("cool some mug"))


def _reward(memory: Any) -> Walk:
    """Walk from the end of the outermost run, as LangChain tells it, to what was learned."""
    run, step = uuid4(), uuid4()
    memory.callback.on_chain_start({}, {"input": "cool some mug"}, run_id=run)
    memory.callback.on_retriever_start({}, "cool some mug", run_id=step, parent_run_id=run)
    memory.invoke("cool some mug", {"metadata": {"cascade_episode_id": str(run)}})
    memory.callback.runs.join(step, {})
    return walk_of(lambda: memory.callback.on_chain_end({"output": "put it into the fridge"}, run_id=run))


def _purge(memory: Any) -> Walk:
    """Walk from ``forget`` to a folder that holds no byte of the case any more."""
    case = memory.engine.add("heat some egg", "put it into the microwave")
    return walk_of(lambda: memory.engine.forget(case, purge=True))


def main() -> None:
    """Print the walks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true")
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        for name, walk in walks(Path(folder) / "memory").items():
            print(f"{name}: {walk}")
            if files:
                for file, calls in walk.files.most_common():
                    print(f"  {calls:4} {file}")


if __name__ == "__main__":
    main()

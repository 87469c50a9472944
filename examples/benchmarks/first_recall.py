"""How long a new process waits for its first recall, and what for: imports, opening, the model, the recall itself.

``python examples/benchmarks/first_recall.py`` starts a process several times on a folder of cases, and prints the medians.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from cascade_memory import CascadeMemory

PROGRAM = """
import json, sys, time
began = time.perf_counter()
from cascade_memory import CascadeMemory
imported = time.perf_counter()
memory = CascadeMemory(sys.argv[1])
opened = time.perf_counter()
if sys.argv[2] == "apart":
    memory.warm()
warmed = time.perf_counter()
recall = memory.recall("how do I reset my router?")
done = time.perf_counter()
assert recall.cases, recall.error
steps = (began, imported, opened, warmed, done)
print(json.dumps([later - before for before, later in zip(steps, steps[1:])]))
"""
STEPS = ("import cascade_memory", "open the folder", "load the model and the cases (warm)", "recall")


def started(folder: Path, how: str, times: int) -> list[list[float]]:
    """Start a process several times; return the seconds of each step of each process."""
    command = [sys.executable, "-c", PROGRAM, str(folder), how]
    return [
        json.loads(subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout)
        for _ in range(times)
    ]


def main() -> None:
    """Print a line for each step, and one for the whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "memory"
        with CascadeMemory(folder) as memory:
            memory.add("reset the router", "hold the button for 10 s")
            memory.add([(f"task number {i} about topic {i % 20}", f"solution {i % 20}") for i in range(options.cases - 1)])
        started(folder, "apart", 1)  # from here on, the files are in the system's cache
        apart = started(folder, "apart", options.times)
        whole = started(folder, "at once", options.times)
    print(f"A new process, {options.cases:,} cases, medians of {options.times}:")
    for place, step in enumerate(STEPS):
        print(f"{1_000 * median(one[place] for one in apart):7.0f} ms  {step}")
    print(f"{1_000 * median(sum(one) for one in whole):7.0f} ms  from the first import to the first recall, without warm()")


if __name__ == "__main__":
    main()

"""Kill a restore, or a purge, at random moments; look at every file with the library's own eyes, and open the folder.

``python tests/torture/restore_kills.py --rounds 300`` prints one line of JSON and exits with 1 if anything was refused or lost.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cascade_memory import CascadeMemory, restore
from cascade_memory.domain.sqlite_files import check_files
from cascade_memory.errors import CascadeError, StoreCorrupt

_CASES = 1_500
_PROGRAM = """
import sys
from cascade_memory import CascadeMemory, restore
verb, good, target = sys.argv[1:]
print("ready", flush=True)
while True:
    if verb == "restore":
        restore(good, target, replace=True)
    else:
        with CascadeMemory(target, embedder="hashing", learn="off") as memory:
            print("open", flush=True)
            for i in range(40):
                memory.forget(memory.add(f"short-lived {i}", "x" * 5_000), purge=True)
"""


def _made(folder: Path) -> None:
    with CascadeMemory(folder / "memory", embedder="hashing", learn="off") as memory:
        memory.add([(f"task {i} of kind {i % 9}", "s" * 1_500) for i in range(_CASES)], progress=False)
        memory.data.backup(folder / "good")
        memory.add([(f"another {i}", "t" * 3_000) for i in range(_CASES)], progress=False)  # so a restore makes it smaller


def _round(folder: Path, verb: str, wait: float, summary: Counter[str], seen: list[str]) -> None:
    target = folder / "here"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "memory", target)
    command = [sys.executable, "-c", _PROGRAM, verb, str(folder / "good"), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
    summary[f"{verb} killed"] += child.returncode == -signal.SIGKILL
    journal = target / "ledger.sqlite3-journal"
    summary[f"{verb} left a journal"] += journal.exists() and journal.stat().st_size > 0
    try:
        for name in ("ledger.sqlite3", "ledger.sqlite3.restoring"):
            check_files(target / name)
        with CascadeMemory(target, embedder="hashing", learn="off") as memory:
            held = memory.stats().cases
            if held not in (_CASES, 2 * _CASES) and not (verb == "purge" and 0 <= held - 2 * _CASES <= 1):
                seen.append(f"{verb}: {held} cases")
    except StoreCorrupt as error:
        if "interrupted; repeat" not in str(error):
            seen.append(f"{verb}: {error}")
        else:
            summary["to be repeated"] += 1
            restore(folder / "good", target, replace=True)
    except CascadeError as error:
        seen.append(f"{verb}: {error}")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, summary, seen = random.Random(options.seed), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="restore-kills-") as place:
        _made(Path(place))
        for number in range(options.rounds):
            _round(Path(place), "purge" if number % 4 == 3 else "restore", rng.random() * 0.6, summary, seen)
    sys.stdout.write(json.dumps({**summary, "rounds": options.rounds, "wrong": seen[:20]}) + "\n")
    return int(bool(seen))


if __name__ == "__main__":
    sys.exit(main())

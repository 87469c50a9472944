"""Kill a working memory again and again, half of the times while Chroma saves; everything acknowledged must be there.

``python tests/torture/kills.py --rounds 300`` prints one line of JSON and exits with 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import chromadb  # noqa: F401 - before the forks, which then need not
import kill_bulk
from forks import Child, finished, left_behind
from kill_checker import Acknowledged, verify
from kill_worker import signature, work_until_killed
from tqdm import tqdm

_FRESH = 15  # rounds on one folder: few enough cases to feed Chroma anew in a moment
_ACKNOWLEDGED = {"recalled", "settled", "added", "forgot"}
_PATIENCE = 4.0  # seconds that a save may keep us waiting


@dataclass
class Summary:
    """What is printed."""

    rounds: int = 0
    aimed_at_saves: int = 0
    killed_while_saving: int = 0
    killed_while_opening: int = 0
    facts_checked: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    worst_first_recall_s: float = 0.0
    missing: int = 0
    leftovers: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    bulk: dict[str, Any] = field(default_factory=dict)
    took_s: float = 0.0

    def complain(self, wrong: list[str]) -> None:
        """Count what is wrong, by kind."""
        self.missing += len(wrong)
        self.wrong.update(re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d[\d.]*", "#", one) for one in wrong)

    def enter(self, report: list[str]) -> dict[str, Any]:
        """Take in what a checker said."""
        try:
            found = json.loads(report[-1])
        except (ValueError, IndexError):
            found = {"wrong": [f"the checker failed: {report[-1:]}"], "seconds": 0.0}
        self.complain(found["wrong"])
        self.worst_first_recall_s = max(self.worst_first_recall_s, found["seconds"])
        return found


class Watch:
    """Follows one worker until it is time to kill it."""

    def __init__(self, folder: Path, child: Child, books: Acknowledged, summary: Summary) -> None:
        self._folder, self._child, self._books, self._summary = folder, child, books, summary
        self._before: str | None = None  # the look of the files when the write in progress began
        self._said = False

    def listen(self) -> None:
        """Enter what the worker said so far."""
        for line in self._child.lines():
            self._said = True
            verb, *words = line.split(" ")
            if verb == "writing":
                self._before = words[0]
            elif verb == "written":
                self._before = None
            else:
                self._books.take(line)
                self._summary.acknowledged.update({verb} & _ACKNOWLEDGED)

    def wait(self, seconds: float) -> None:
        """Let it work."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._child.ended():
            self.listen()
            time.sleep(0.002)

    def wait_for_save(self) -> None:
        """Return as soon as a file of the HNSW index changes."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and not self._child.ended():
            self.listen()
            if self._before not in (None, signature(self._folder)):
                return
            time.sleep(0.0005)

    def kill(self) -> None:
        """Kill, and note what it was doing."""
        self._child.kill()
        self.listen()
        self._child.close()
        self._summary.killed_while_opening += not self._said
        self._summary.killed_while_saving += self._before not in (None, signature(self._folder))
        if self._child.status != -9:
            self._summary.complain([f"the worker ended by itself with {self._child.status}"])


def one_round(number: int, folder: Path, books: Acknowledged, summary: Summary, rng: random.Random) -> None:
    """Let a worker loose, kill it, look."""
    child = Child(partial(work_until_killed, folder, number))
    watch = Watch(folder, child, books, summary)
    summary.rounds += 1
    if number % 2:
        watch.wait(rng.random() * 1.1)
    else:
        summary.aimed_at_saves += 1
        watch.wait(0.15 + rng.random() * 0.5)
        watch.wait_for_save()
        time.sleep(rng.choice([0.0, 0.0, rng.random() * 0.01]))  # not always the first file
    watch.kill()
    summary.leftovers += left_behind(str(folder))
    summary.enter(finished(partial(verify, folder, books, thorough=number % _FRESH in (6, _FRESH - 1))))
    summary.leftovers += left_behind(str(folder))
    summary.complain(books.errors)
    books.errors = []


def run(rounds: int, seed: int, folder: Path, *, bulk_kills: int, bulk_cases: int) -> Summary:
    """Do all rounds, in fresh folders every now and then, then those on a large folder."""
    summary, rng, began = Summary(), random.Random(seed), time.perf_counter()
    tqdm.monitor_interval = 0  # its thread would be in the way of the forks
    books, here = Acknowledged(), folder
    if bulk_kills:
        summary.bulk = kill_bulk.run(folder / "bulk", bulk_cases, bulk_kills, rng)
        summary.complain(summary.bulk.pop("wrong"))
        summary.leftovers += summary.bulk["leftovers"]
    for number in tqdm(range(rounds), desc="kills", disable=not sys.stderr.isatty()):
        if number % _FRESH == 0:
            shutil.rmtree(here, ignore_errors=True) if number else None
            summary.facts_checked += books.facts
            books, here = Acknowledged(), folder / f"memory-{number}"
        one_round(number, here, books, summary, rng)
    summary.facts_checked += books.facts
    summary.took_s = time.perf_counter() - began
    return summary


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    parser.add_argument("--bulk-kills", type=int, default=10, help="kills of a folder with many cases")
    parser.add_argument("--bulk-cases", type=int, default=20_000)
    parser.add_argument("--within", type=float, default=1.0, help="seconds from opening to the first recall; 0: any")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-")))
        summary = run(options.rounds, options.seed, folder, bulk_kills=options.bulk_kills, bulk_cases=options.bulk_cases)
    worst = max(summary.worst_first_recall_s, summary.bulk.get("worst_first_recall_s", 0.0))
    late = bool(options.within) and worst > options.within
    sys.stdout.write(json.dumps({**vars(summary), "late": late}) + "\n")
    return int(bool(summary.missing or summary.leftovers or late))


if __name__ == "__main__":
    sys.exit(main())

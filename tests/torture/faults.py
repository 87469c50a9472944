"""Let the disk fail at every write: each verb works or says what is wrong, nothing is lost, all works when the disk does.

``python tests/torture/faults.py`` lets chosen write calls fail (needs a C compiler), fills a small disk up to the last pages
and takes away the right to write (both need ``unshare``); it prints one line of JSON and exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import chromadb  # noqa: F401 - before the forks, which then need not
import failing_calls
import small_disk
from fault_trial import prepare, trial
from forks import finished
from read_only import refused_while_read_only
from tqdm import tqdm

_ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
_PAGES = (*range(24), 26, 28, 30, 32, 36, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512, 1024)

_PATIENCE = 40.0  # seconds for a run that takes one: more is a hang


@dataclass
class Summary:
    """What is printed."""

    trials: Counter[str] = field(default_factory=Counter)
    calls_in_a_run: int = 0
    calls_failed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    facts_checked: int = 0
    crashed: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def enter(self, kind: str, name: str, report: list[str]) -> dict[str, Any]:
        """Take in the report of one trial."""
        self.trials[kind] += 1
        try:
            found = json.loads(report[-1])
        except (ValueError, IndexError):
            self.crashed += 1
            self.wrong[f"{name}: crashed or hung: {report[-2:]}"] += 1
            return {"healed": None}
        self.refused.update(found["refused"])
        self.facts_checked += found["facts"]
        self.wrong.update(f"{name}: {one}" for one in found["wrong"])
        return found


class Trials:
    """Runs them, each in a process of its own, on a copy of one folder."""

    def __init__(self, template: Path, folder: Path, summary: Summary) -> None:
        self._template, self._folder, self._summary = template, folder, summary
        self._acknowledged = finished(partial(prepare, template))

    def one(self, kind: str, name: str, before: Callable[[str], None], heal: Callable[[], object]) -> Any:
        """Do one; return what ``heal`` returned."""
        work = partial(trial, self._template, self._folder, self._acknowledged, before, heal)
        return self._summary.enter(kind, name, finished(work, seconds=_PATIENCE))["healed"]

    def failing_call(self, nth: int, error: int, *, lasting: bool) -> tuple[int, int]:
        """Let the n-th write call fail."""
        calls, armed = failing_calls.FailingCalls(self._folder), False

        def before(_: str) -> None:
            nonlocal armed
            if not armed:
                calls.arm(nth, error, lasting=lasting)
                armed = True

        what = f"{errno.errorcode.get(error, 'none')} {'from' if lasting else 'at'} call {nth}"
        total, failed = self.one("calls", what, before, calls.disarm) or (0, 0)
        self._summary.calls_failed += failed
        return total, failed


def _call_plan(total: int, every: int) -> Iterator[tuple[int, int, bool]]:
    turn = 0
    for error in _ERRORS:
        for lasting in (False, True):
            turn += 1
            for nth in range(1 + turn * every // 7, total + 1, every):
                yield nth, error, lasting


def fail_calls(folder: Path, summary: Summary, every: int) -> None:
    """Every ``every``-th write call of a run fails, in each of three ways; once, and for good."""
    trials = Trials(folder / "template", folder / "memory", summary)
    summary.calls_in_a_run, _ = trials.failing_call(0, 0, lasting=False)
    plan = list(_call_plan(summary.calls_in_a_run, every))
    for nth, error, lasting in tqdm(plan, desc="failing calls", disable=not sys.stderr.isatty()):
        trials.failing_call(nth, error, lasting=lasting)


def fill_disk(folder: Path, summary: Summary, every: int) -> None:
    """Leave so many pages before each step."""
    disk = small_disk.SmallDisk(folder / "disk")
    try:
        trials = Trials(folder / "template-of-pages", disk.path / "memory", summary)
        for pages in tqdm(_PAGES[:: min(every, 6)], desc="free pages", disable=not sys.stderr.isatty()):
            trials.one("pages", f"{pages} pages", lambda _, pages=pages: disk.leave(pages), disk.release)
            disk.release()
        report = finished(partial(refused_while_read_only, folder / "template-of-pages", disk))
        summary.enter("read-only", "read-only", report)
    finally:
        disk.close()


def inner(every: int) -> int:
    """Run where calls can fail and disks can be mounted, as far as they can."""
    summary, began = Summary(), time.perf_counter()
    tqdm.monitor_interval = 0  # its thread would be in the way of the forks
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name).resolve()
        if failing_calls.loaded():
            fail_calls(folder, summary, every)
        else:
            summary.left_out.append("failing calls: no C compiler")
        if small_disk.private():
            fill_disk(folder, summary, every)
        else:
            summary.left_out.append("full and read-only disk: no private mounts")
    summary.took_s = round(time.perf_counter() - began, 1)
    sys.stdout.write(json.dumps(vars(summary)) + "\n")
    return int(bool(summary.wrong))


def main() -> int:
    """Run from the command line: once more, under control."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="let only every so-manieth call fail")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        return inner(options.every)
    command, more = [sys.executable, __file__, "--every", str(options.every), "--inner"], {}
    if small_disk.possible():
        command, more = small_disk.wrapped(command)
    with tempfile.TemporaryDirectory(prefix="failing-calls-") as name:
        under = failing_calls.preload(Path(name)) if failing_calls.compiler() and sys.platform == "linux" else dict(os.environ)
        return subprocess.run(command, env={**under, **more}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Kill those who work in one database, restart its server, and pause those who hold a lease; nothing may be lost.

``python tests/torture/databases.py`` prints one line of JSON and exits with 1 if anything acknowledged was lost, anything was
learned twice, anything was written under an old epoch of a lease, or a lease was not taken over in time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import chromadb  # noqa: F401 - before the forks, which then need not
from chroma_process import Server
from cluster import Cluster, cluster
from db_checker import check, lines_missed
from db_leases import Pauses, audit, examples_of_old_epochs, old_epochs
from db_witness import differences, latecomer, witness
from db_worker import MAX_CASES, opened, work
from forks import FAILED, Child, finished

_VERBS = ("recalled", "rewarded", "added", "forgot")
_CHECKING = 600.0


@dataclass
class Summary:
    """What is printed."""

    processes: int = 0
    kills: int = 0
    restarts: Counter[str] = field(default_factory=Counter)
    restart_s: list[float] = field(default_factory=list)
    pauses: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    learned_twice: int = 0
    forgotten_but_there: int = 0
    writes_under_a_lease: int = 0
    writes_under_an_old_epoch: int = 0
    refused_for_an_old_epoch: int = 0
    not_taken_over_in_time: int = 0
    taken_over_s: dict[str, list[float]] = field(default_factory=dict)
    rewards_learned: int = 0
    log_lines: int = 0
    checked: dict[str, Any] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def complain(self, wrong: list[str]) -> None:
        """Count what is wrong, by kind."""
        self.lost += sum(one.startswith("lost") for one in wrong)
        self.learned_twice += sum(one.startswith("twice") for one in wrong)
        self.forgotten_but_there += sum(one.startswith("back") for one in wrong)
        self.wrong.update(re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d[\d.]*", "#", one)[:300] for one in wrong)
        self.examples += wrong[: max(0, 12 - len(self.examples))]


class Place:
    """Where one worker after the other works, each killed."""

    def __init__(self, start: Callable[[], Child], journal: Path) -> None:
        self._start, self._journal, self._read = start, journal, 0
        self.child = start()
        self.said: Counter[str] = Counter()

    def listen(self) -> None:
        """Count what was acknowledged since."""
        with contextlib.suppress(FileNotFoundError), self._journal.open("rb") as file:
            file.seek(self._read)
            *whole, _ = file.read().split(b"\n")
            self._read += sum(len(line) + 1 for line in whole)
            self.said.update(line.split(b'"', 2)[1].decode() for line in whole)

    def kill(self) -> None:
        """Kill the worker, and let another one begin."""
        self.child.kill()
        self.child.close()
        self.child = self._start()


class Torture:
    """The one who kills, restarts and pauses."""

    def __init__(self, options: argparse.Namespace, folder: Path, server: Cluster, chroma: str | None) -> None:
        self._options, self._folder, self._server, self._chroma = options, folder, server, chroma
        self._rng, self.summary = random.Random(options.seed), Summary(processes=options.processes)
        self._url = server.new_database("torture")
        self._namespaces = [f"team {number}" for number in range(options.namespaces)]
        self._stop, self._stop_reading = folder / "stop", folder / "stop-reading"
        self._restarts = 0
        opened(self._url).close()
        audit(self._url)
        self._report = folder / "witness.json"
        self._witness = Child(partial(witness, self._url, self._namespaces, self._report, self._stop_reading))
        self._places = [self._place(folder / f"journal{number}") for number in range(options.processes)]
        self._pauses = Pauses(self._url, self._rng, most=MAX_CASES)

    def _place(self, path: Path) -> Place:
        job = partial(work, self._url, self._chroma, self._namespaces, path, self._stop)
        return Place(lambda: Child(job), path)

    # -- doing harm ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go on until there was enough of everything."""
        options, began = self._options, time.monotonic()
        while True:
            for place in self._places:
                place.listen()
                self._check_working(place)
            said = sum((place.said for place in self._places), Counter[str]())
            share = min(said[verb] for verb in _VERBS) / options.episodes
            self._pauses.look()
            paused = len(self._pauses.past) + len(self._pauses.now)
            if self._is_due(self.summary.kills, options.kills, share):
                self._kill()
            if self._is_due(self._restarts, options.restarts, share):
                self._restart()
            if self._is_due(paused, options.pauses, share):
                self._pauses.begin({place.child.pid for place in self._places})
            done = (self.summary.kills, self._restarts, len(self._pauses.past))
            if share >= 1 and all(map(int.__ge__, done, (options.kills, options.restarts, options.pauses))):
                return
            if time.monotonic() - began > options.at_most:
                self.summary.complain([f"not done after {options.at_most:g} s: {done}, {dict(said)}"])
                return
            self._tell(said, done)
            time.sleep(0.05)

    @staticmethod
    def _is_due(done: int, wanted: int, share: float) -> bool:
        return done < wanted and share >= (done + 0.5) / (wanted + 1)

    def _tell(self, said: Counter[str], done: tuple[int, ...]) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{[said[verb] for verb in _VERBS]} kills, restarts, pauses: {done}   ")

    def _check_working(self, place: Place) -> None:
        """No worker may end by itself."""
        if place.child.ended():
            self.summary.complain([f"a worker ended by itself: {line}" for line in place.child.lines()] or ["a worker ended"])
            place.kill()

    def _kill(self) -> None:
        place = self._rng.choice([place for place in self._places if place.child.pid not in self._pauses.pids])
        place.kill()
        self.summary.kills += 1

    def _restart(self) -> None:
        how = ("fast", "immediate")[self._restarts % 2]
        self._restarts += 1
        began = time.monotonic()
        self._server.stop(how)
        self._server.start()
        away = time.monotonic() - began
        self._pauses.without_server(away)
        self.summary.restarts[how] += 1
        self.summary.restart_s.append(round(away, 1))

    # -- looking -------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Let all end, and compare."""
        while self._pauses.now:
            self._pauses.look()
            time.sleep(0.05)
        self._stop.touch()
        for place in self._places:
            self._await(place.child, "a worker")
            place.listen()
        self._stop_reading.touch()
        self._await(self._witness, "the reader of the log")
        self._compare_learned()
        journals = [self._folder / f"journal{number}" for number in range(self._options.processes)]
        self._count()  # before the checker, who feeds Chroma what is still missing, and says of no write what it believes
        checking = partial(check, self._url, self._chroma, self._namespaces, journals)
        self._enter(finished(checking, _CHECKING))

    def _await(self, child: Child, who: str) -> None:
        deadline = time.monotonic() + 180
        while not child.ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        ended = child.ended()
        child.kill()
        said = [line for line in child.lines() if line.startswith(FAILED)]
        if said or not ended or child.status:
            self.summary.complain([f"{who} ended with {child.status}: {said}"])

    def _compare_learned(self) -> None:
        late = self._folder / "late.json"
        self.summary.complain(finished(partial(latecomer, self._url, self._namespaces, late), _CHECKING))
        if not (late.exists() and self._report.exists()):
            return
        seen, found = json.loads(self._report.read_text()), json.loads(late.read_text())
        self.summary.complain(lines_missed(self._url, seen["lines"]))
        self.summary.log_lines = len(seen["lines"])
        self.summary.complain(differences(seen["learned"], found["afresh"], "who followed all along"))
        self.summary.complain(differences(found["restored"], found["afresh"], "who began with a snapshot"))
        self.summary.rewards_learned = sum(one["rewards"] for one in seen["learned"].values())

    def _enter(self, report: list[str]) -> None:
        try:
            found = json.loads(report[-1])
        except (ValueError, IndexError):
            found = {"wrong": [f"the checker failed: {report[-1:]}"], "counts": {}}
        self.summary.complain(found.pop("wrong"))
        self.summary.acknowledged = {verb: found["counts"].get(verb, 0) for verb in _VERBS}
        self.summary.refused_for_an_old_epoch = found["counts"].get("fenced out", 0)
        self.summary.checked = found

    def _count(self) -> None:
        summary = self.summary
        summary.writes_under_an_old_epoch, summary.writes_under_a_lease = old_epochs(self._url)
        summary.examples += examples_of_old_epochs(self._url)
        summary.pauses.update(pause.job for pause in self._pauses.past)
        for pause in self._pauses.past:
            if pause.taken_over is not None:
                summary.taken_over_s.setdefault(pause.job, []).append(round(pause.taken_over, 1))
        summary.not_taken_over_in_time = sum(pause.too_late for pause in self._pauses.past)

    def end(self) -> None:
        """Leave no process behind."""
        for child in (self._witness, *(place.child for place in self._places)):
            child.kill()


def torture(options: argparse.Namespace, folder: Path) -> Summary:
    """Do everything."""
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(cluster(fsync=True))
        chroma = None if options.without_chroma else Server(folder / "chroma")
        if chroma is not None:
            stack.callback(chroma.stop)
            chroma.start()
        one = Torture(options, folder, server, None if chroma is None else chroma.url)
        stack.callback(one.end)
        one.run()
        one.look()
    one.summary.took_s = round(time.perf_counter() - began, 1)
    return one.summary


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=10_000, help="acknowledged recalls, rewards, adds and forgets, each")
    parser.add_argument("--kills", type=int, default=200, help="of workers, with kill -9")
    parser.add_argument("--restarts", type=int, default=20, help="of PostgreSQL: fast and immediate in turn")
    parser.add_argument("--pauses", type=int, default=20, help="of lease holders, for longer than the lease lasts")
    parser.add_argument("--namespaces", type=int, default=6, help="so many that none has more outcomes than it learns from")
    parser.add_argument("--at-most", type=float, default=7_200, help="seconds after which to stop nevertheless")
    parser.add_argument("--without-chroma", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to keep the journals; a temporary folder by default")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="databases-")))
        folder.mkdir(parents=True, exist_ok=True)
        summary = torture(options, folder)
    sys.stdout.write(json.dumps(vars(summary)) + "\n")
    return int(bool(summary.wrong or summary.writes_under_an_old_epoch or summary.not_taken_over_in_time))


if __name__ == "__main__":
    sys.exit(main())

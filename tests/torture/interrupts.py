"""Interrupt a working memory at random moments of its verbs: nothing stays locked, lost or half done.

``python tests/torture/interrupts.py --place disk --moments 20000`` prints one line of JSON, and exits with 1 if anything was
wrong.
The place is "disk", "ram", a folder, or the URL of a database. Most exceptions are kept with their tracebacks, as notebooks do.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import json
import logging
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from interrupted_verbs import VERBS, Acknowledged, Trial
from tqdm import tqdm

from cascade_memory import CascadeMemory
from cascade_memory.errors import CascadeError

_KEPT = 30  # exceptions whose tracebacks are kept at a time
_HANGS = 40.0  # seconds after which the whole run ends with the stacks of all threads
_OTHERS = 20  # moments after which another process is asked, too
_FRESH = 250  # moments in one place
_CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    {"learn": "background", "deadline": 2.0},
    {"learn": "inline", "deadline": None},
    {"learn": "background", "deadline": None},
    {"learn": "inline", "deadline": 2.0},
)


class SoftLimit(Exception):
    """Raised by a worker's time limit; unlike Ctrl-C it is an ordinary exception."""


_KINDS: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit, SoftLimit)


@dataclass
class Summary:
    """What is printed."""

    moments: int = 0
    interrupted: Counter[str] = field(default_factory=Counter[str])
    by: Counter[str] = field(default_factory=Counter[str])
    facts_checked: int = 0
    asked_others: int = 0
    late: int = 0
    worst_s: float = 0.0
    worst_close_s: float = 0.0
    wrong: Counter[str] = field(default_factory=Counter[str])
    took_s: float = 0.0


_unraised: deque[Any] = deque(maxlen=10)  # what came while a block was being closed, or in a thread


class _Alarm:
    """Interrupts the main thread."""

    def __init__(self) -> None:
        self.armed, self.kind, self.raised = False, KeyboardInterrupt, 0
        signal.signal(signal.SIGALRM, self._ring)
        signal.signal(signal.SIGINT, self._ring)

    def _ring(self, *_: object) -> None:
        if self.armed:
            self.raised += 1
            raise self.kind


_alarm = _Alarm()


def _by_alarm(call: Callable[[], Any], delays: list[float], kind: type[BaseException]) -> tuple[list[Any], Any]:
    """Call with ``signal.setitimer``."""
    return _on_this_thread(call, kind, lambda: signal.setitimer(signal.ITIMER_REAL, delays[0], delays[1] if delays[1:] else 0))


def _by_sigint(call: Callable[[], Any], delays: list[float], _: type[BaseException]) -> tuple[list[Any], Any]:
    """Call while another thread presses Ctrl-C."""

    def press() -> None:
        for delay in delays:
            time.sleep(delay)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    presses = threading.Thread(target=press)
    found = _on_this_thread(call, KeyboardInterrupt, presses.start)
    presses.join()
    return found


def _on_this_thread(call: Callable[[], Any], kind: Any, begin: Callable[[], object]) -> tuple[list[Any], Any]:
    results: list[Any] = []
    error: BaseException | None = None
    begin()
    try:
        _alarm.kind, _alarm.armed = kind, True
        results.append(call())
        _alarm.armed = False
    except BaseException as caught:
        _alarm.armed = False  # no call before it: the next interrupt is ignored
        error = caught
    signal.setitimer(signal.ITIMER_REAL, 0)
    return results, error


def _in_thread(call: Callable[[], Any], delays: list[float], kind: type[BaseException]) -> tuple[list[Any], Any]:
    """Call on another thread, into which exceptions are set."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as caught:
            errors.append(caught)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    for delay in delays:
        thread.join(delay)
        if thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(kind))
    thread.join(_HANGS)
    return results, errors[0] if errors else None


_WAYS = {"alarm": _by_alarm, "sigint": _by_sigint, "thread": _in_thread}


class Other:
    """Another process with the same place open."""

    def __init__(self, place: str) -> None:
        command = [sys.executable, __file__, "--other", place]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, what: str) -> str:
        """Let it read and write."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def be_other(place: str) -> None:
    """Read and write whenever asked."""
    with CascadeMemory(place, embedder="hashing", learn="off") as memory:
        for number, _ in enumerate(sys.stdin):
            sys.stdout.write(_used(memory, f"other {number}") + "\n")
            sys.stdout.flush()


def _used(memory: CascadeMemory, name: str) -> str:
    """Write and read; return what was wrong."""
    try:
        case = memory.add(f"afterwards {name}", "it works", metadata={"afterwards": name})
        found = memory.cases.get(case)
        return "" if found is not None and found.solution == "it works" else "what was just written cannot be read"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def _is_interrupt(error: BaseException | None) -> bool:
    """Say whether an error is an interrupt, or was raised because of one: a soft limit counts as a failure of what it hits."""
    return error is not None and (isinstance(error, _KINDS) or _is_interrupt(error.__cause__ or error.__context__))


_durations: dict[str, dict[str, deque[float]]] = {}  # of calls that were not interrupted, by options and by verb


class Run:
    """Interrupts the verbs of one memory."""

    def __init__(self, place: str | None, options: dict[str, Any], rng: random.Random, summary: Summary, number: int) -> None:
        self._place, self._options, self._rng, self._summary = place, options, rng, summary
        self._memory = CascadeMemory(place, embedder="hashing", **options)
        self._books = Acknowledged(place, number, options)
        self._durations = _durations.setdefault(str(options), {})
        self._kept: deque[BaseException] = deque(maxlen=_KEPT)
        self._other = None if place is None else Other(place)

    def moment(self, number: int, ways: list[str]) -> None:
        """Interrupt one call, and look."""
        rng, summary = self._rng, self._summary
        make = rng.choice(VERBS) if number >= 2 * len(VERBS) else VERBS[number % len(VERBS)]
        name = make.__name__
        try:
            trial: Trial | None = make(self._memory, self._books, rng)
        except Exception as fault:
            self._complain(f"before {name}: {type(fault).__name__}: {fault}", fault)
            return
        if trial is None:
            return
        way, kind = rng.choice(ways), rng.choice(_KINDS)
        known = self._durations.setdefault(name, deque(maxlen=9))
        if len(known) < 3:
            began = time.perf_counter()
            results, error = [trial.call()], None
            known.append(time.perf_counter() - began)
        else:
            delays = [max(1e-6, rng.random() * 1.2 * sorted(known)[len(known) // 3])]
            if rng.random() < 0.4:
                delays += [rng.choice([2e-5, 1e-4, 1e-3])] * rng.choice([1, 2])
            began = time.perf_counter()
            results, error = _WAYS[way](trial.call, delays, kind)
            if error is None:
                known.append(time.perf_counter() - began)
            elif _is_interrupt(error) or (
                kind is SoftLimit and isinstance(error, CascadeError)
            ):  # a row that it hit is left out
                summary.interrupted[name] += 1
                summary.by[way] += 1
            else:
                self._complain(f"{name}: raised {type(error).__name__}: {error}", error)
            if error is not None and rng.random() < 0.8:
                self._kept.append(error)
        summary.moments += 1
        self._look(name, trial, results, error, others=number % _OTHERS == 0)

    def _look(self, name: str, trial: Trial, results: list[Any], error: Any, *, others: bool) -> None:
        for said in (self._timely(lambda: _used(self._memory, "here")), self._timely(self._in_another_thread)):
            if said:
                self._complain(f"{name}: afterwards {said}", error)
        try:
            for said in trial.wrong(results[0] if results else None, bool(results)):
                self._complain(f"{name}: {said}", error)
        except Exception as fault:
            self._complain(f"{name}: looking failed: {fault!r}", fault)
        self._summary.facts_checked += 1
        if others and self._other is not None:
            self._summary.asked_others += 1
            if said := self._timely(lambda: self._other.answer("go")):
                self._complain(f"{name}: the other process {said}", error)

    def _in_another_thread(self) -> str:
        said: list[str] = []
        thread = threading.Thread(target=lambda: said.append(_used(self._memory, "there")), daemon=True)
        thread.start()
        thread.join(10)
        return f"in another thread: {said[0] if said else 'it hangs'}" if not said or said[0] else ""

    def _timely(self, work: Callable[[], str]) -> str:
        """Do it within a second; once more if it was late, since the machine may be."""
        faulthandler.dump_traceback_later(_HANGS, exit=True)
        for attempt in range(2):
            began = time.perf_counter()
            said = work()
            took = time.perf_counter() - began
            self._summary.worst_s = max(self._summary.worst_s, took)
            if said or took < 1.0:
                break
            self._summary.late += 1
            said = f"it took {took:.0f} s" if attempt else ""
        return said

    def _complain(self, what: str, error: BaseException | None) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1] if error is not None and error.__traceback__ else None
        at = "" if where is None else f" [{Path(where.filename).name}:{where.lineno} {where.name}]"
        self._summary.wrong[f"{what[:300]}{at}"] += 1

    def close(self) -> None:
        """Close, open again, and look at everything that was acknowledged."""
        faulthandler.dump_traceback_later(_HANGS, exit=True)
        _unraised.clear()
        self._kept.clear()  # and the handles in it, whose blocks were interrupted at their end: they are open as long as it is
        gc.collect()
        if self._other is not None:
            self._other.close()
        self._sound(self._memory)
        began = time.perf_counter()
        self._memory.close()
        self._summary.worst_close_s = max(self._summary.worst_close_s, time.perf_counter() - began)
        if self._place is not None:
            with CascadeMemory(self._place, embedder="hashing", **self._options) as memory:
                self._sound(memory)
        faulthandler.cancel_dump_traceback_later()

    def _sound(self, memory: CascadeMemory) -> None:
        memory.sync()
        for said in self._books.lost(memory):
            self._complain(said, None)
        for check in memory.data.examine():
            if not check.ok:
                self._complain(f"examine: {check.name}: {check.detail}", None)


def run(place: str, moments: int, seed: int, folder: Path, ways: list[str]) -> Summary:
    """Do all moments, in several places or configurations."""
    summary, began, number = Summary(), time.perf_counter(), 0
    warnings.simplefilter("ignore")
    logging.disable()
    # What comes while a block is being closed, or a thread ends. Written in C: it cannot be interrupted itself.
    sys.unraisablehook = threading.excepthook = _unraised.append
    sys.setswitchinterval(1e-4)
    tqdm.monitor_interval = 0
    shown = tqdm(total=moments, desc="interrupts", disable=not sys.stderr.isatty())
    while summary.moments < moments:
        here = {"disk": str(folder / f"memory-{number}"), "ram": None}.get(place, place)
        options = _CONFIGURATIONS[number % len(_CONFIGURATIONS)]
        one = Run(here, options, random.Random(f"{seed} {number}"), summary, number)
        for moment in range(min(_FRESH, max(moments // 4, 1))):
            faulthandler.dump_traceback_later(_HANGS, exit=True)
            one.moment(moment, ways)
            shown.update(summary.moments - shown.n)
        one.close()
        number += 1
    summary.took_s = round(time.perf_counter() - began, 1)
    return summary


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", default="disk", help='"disk", "ram", a folder, or the URL of a database')
    parser.add_argument("--moments", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ways", nargs="*", default=sorted(_WAYS), choices=sorted(_WAYS))
    parser.add_argument("--other", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.other:
        be_other(options.other)
        return 0
    with tempfile.TemporaryDirectory(prefix="interrupts-") as name:
        summary = run(options.place, options.moments, options.seed, Path(name), options.ways)
    sys.stdout.write(json.dumps(vars(summary)) + "\n")
    return int(bool(summary.wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Measures the CPU seconds of every test. One that takes more than a second of them is marked ``slow``, or CI fails it.

``pytest --speed times.jsonl`` writes a line for each test, and fails those that take too long and are not marked. A slower
machine is given more in proportion, and every machine twice as much, for what other tests of that moment cost a processor.
The children of a test count too, once they have ended. What waits for a clock costs nothing here, but is written down.
"""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from intensity import LEVEL

MOST = 1.0  # CPU seconds of a test that is not slow, where the marks were set
_MARGIN = 2.0
_LOOP = 0.02  # CPU seconds of the loop below, where the marks were set
_KEY = "cpu_seconds"
_MARKS = ("slow", "long", "postgres", *(() if LEVEL == "newcomer" else ("fuzz",)))


def _spent() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


@functools.cache
def slowness() -> float:
    """Return how many times as slow as where the marks were set this machine is, and 1 if it is as fast."""

    def loop() -> float:
        began, seen = time.process_time(), dict[int, int]()
        for number in range(200_000):
            seen[number % 1_000] = seen.get(number % 1_000, 0) + number
        return time.process_time() - began

    return max(1.0, min(loop() for _ in range(5)) / _LOOP)


class Speed:
    """Times the tests of this process, and where the runs of all processes are reported, collects the times."""

    def __init__(self, path: str) -> None:
        self._path, self._most = path, MOST * _MARGIN * slowness()  # CPU seconds without a mark, on this machine
        self._took: dict[str, tuple[float, float]] = {}  # CPU seconds, and seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and again if it took too long: the first one that needs a framework pays for its import."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, seconds = _timed(item, nextitem)
        marked = isinstance(item, pytest.DoctestItem) or any(item.get_closest_marker(mark) for mark in _MARKS)
        if seconds > self._most and not marked and all(report.passed for report in reports):
            item._initrequest()  # type: ignore[attr-defined]
            again, less = _timed(item, nextitem)
            if less < seconds or not all(report.passed for report in again):
                reports, seconds = again, less
        if seconds > self._most and not marked and reports[-1].passed:
            reports[-1].outcome = "failed"
            reports[-1].longrepr = f"{item.nodeid} takes {seconds:.2f} CPU seconds: make it faster, or mark it slow"
        waited = sum(report.duration for report in reports)
        reports[-1].user_properties.append((_KEY, [round(seconds, 3), round(waited, 3)]))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, took in report.user_properties:
            if key == _KEY:
                self._took[report.nodeid] = tuple(took)  # type: ignore[arg-type, assignment]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            with open(self._path, "w", encoding="utf-8") as file:
                for test, (spent, seconds) in self._took.items():
                    file.write(json.dumps({"test": test, _KEY: spent, "seconds": seconds}) + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        whole = sum(spent for spent, _ in self._took.values())
        terminalreporter.section(f"{whole:.0f} CPU seconds in {len(self._took)} tests; the slowest, and how long they took")
        for test, (spent, seconds) in sorted(self._took.items(), key=lambda one: -one[1][0])[:20]:
            terminalreporter.write_line(f"{spent:6.2f} {seconds:6.2f} s {test}")


def _timed(item: pytest.Item, nextitem: pytest.Item | None) -> tuple[list[pytest.TestReport], float]:
    before = _spent()
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    return reports, _spent() - before

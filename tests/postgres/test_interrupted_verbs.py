"""Interrupted at any moment of any verb, a memory in a database loses nothing and locks nobody out."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from intensity import times
from tortured import tortured

MOMENTS = times(newcomer=60, ci=60, matrix=1_000)

pytestmark = [
    pytest.mark.timeout(14_400),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms"),
]


def test_nothing_is_lost_locked_or_half_done(new_database: Callable[[], str]):
    summary, status = tortured("interrupts.py", "--place", new_database(), "--moments", MOMENTS)
    assert summary["wrong"] == {}
    assert summary["moments"] >= MOMENTS
    assert status == 0

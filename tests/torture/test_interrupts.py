"""Interrupted at any moment of any verb, a memory loses nothing and locks nobody out."""

from __future__ import annotations

import signal

import pytest
from inside import verb_of
from intensity import times
from interrupted_verbs import LOOKS
from tortured import tortured

from cascade_memory import CascadeMemory

MOMENTS = times(newcomer=40, ci=40, matrix=2_000)

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms"),
]


def test_whatever_is_looked_at_exists():
    """A run of few moments may draw no verb that only looks, so a name that is gone would be noticed after hours."""
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        assert all(callable(verb_of(memory, name)) for name in LOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["ram", pytest.param("disk", marks=pytest.mark.long)])
def test_nothing_is_lost_locked_or_half_done(place: str):
    summary, status = tortured("interrupts.py", "--place", place, "--moments", MOMENTS)
    assert summary["wrong"] == {}
    assert summary["moments"] >= MOMENTS
    assert status == 0

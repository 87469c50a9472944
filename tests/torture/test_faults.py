"""On a disk that is full, broken or read-only, every verb works or says what is wrong; nothing is lost."""

from __future__ import annotations

import sys
from typing import Any

import failing_calls
import pytest
import small_disk
from intensity import times
from tortured import tortured

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs and LD_PRELOAD"),
]


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    return tortured("faults.py", "--every", times(newcomer=901, ci=901, matrix=97))[0]


@pytest.mark.skipif(failing_calls.compiler() is None, reason="needs a C compiler")
def test_whichever_write_fails_nothing_is_lost_and_all_works_again(summary: dict[str, Any]):
    assert summary["trials"]["calls"] > 10
    assert summary["calls_failed"] > 10
    assert not {name: n for name, n in summary["wrong"].items() if " call " in name}


@pytest.mark.skipif(not small_disk.possible(), reason="needs to mount a tmpfs in a namespace of its own")
def test_on_a_full_disk_nothing_is_lost_and_all_works_when_there_is_room(summary: dict[str, Any]):
    assert summary["trials"]["pages"] > 5
    assert not {name: n for name, n in summary["wrong"].items() if " pages" in name}


@pytest.mark.skipif(not small_disk.possible(), reason="needs to mount a tmpfs in a namespace of its own")
def test_a_read_only_disk_is_a_clear_error(summary: dict[str, Any]):
    assert summary["trials"]["read-only"] == 1
    assert not {name: n for name, n in summary["wrong"].items() if name.startswith("read-only")}

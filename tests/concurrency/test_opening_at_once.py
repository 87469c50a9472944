"""Processes that open the same new folder at once do not take each other's files for faults."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascade_memory.domain.sqlite_files import check_files

COMES_AND_GOES = """import os, sys
while True:
    os.close(os.open(sys.argv[1], os.O_CREAT))
    os.unlink(sys.argv[1])
"""


@pytest.mark.slow
def test_a_journal_that_comes_and_goes_meanwhile_is_no_fault(tmp_path: Path):
    """Another process that opens the same new folder has a journal for a moment."""
    ledger = tmp_path / "ledger.sqlite3"
    with subprocess.Popen([sys.executable, "-c", COMES_AND_GOES, str(ledger) + "-journal"]) as other:
        try:
            until = time.monotonic() + 3
            while time.monotonic() < until:
                check_files(ledger)
        finally:
            other.kill()

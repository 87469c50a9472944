"""Killed while it is restored or purged, a folder still opens: no file that we leave behind is taken for somebody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from intensity import times

ROUNDS = times(newcomer=6, ci=6, matrix=100)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_folder_that_was_killed_while_it_was_restored_or_purged_still_opens():
    command = [sys.executable, str(Path(__file__).with_name("restore_kills.py")), "--rounds", str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["wrong"] == []
    assert done.returncode == 0

"""Killed while it is restored or purged, a folder still opens: no file that we leave behind is taken for somebody else's."""

from __future__ import annotations

import os

import pytest
from intensity import times
from tortured import tortured

ROUNDS = times(newcomer=6, ci=6, matrix=100)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_folder_that_was_killed_while_it_was_restored_or_purged_still_opens():
    summary, status = tortured("restore_kills.py", "--rounds", ROUNDS)
    assert summary["wrong"] == []
    assert status == 0

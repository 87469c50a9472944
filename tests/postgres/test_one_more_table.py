"""A table that is only declared moves into a database and back, and is used there like all others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PROGRAM = Path(__file__).parents[1] / "helpers" / "one_more_table.py"


def test_its_rows_are_those_of_the_other_database(tmp_path: Path, new_database: Callable[[], str]):
    command = [sys.executable, _PROGRAM, tmp_path, new_database()]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    there = said["in the database"]
    assert [row[2:] for row in there] == [[word, 1.0, word, "more"] for word in ("two", "three")]
    assert said["moved"] == 2
    assert said["back"][:2] == there
    assert [row[0] for row in said["back"]] == [2, 3, 4]  # the next key is the one after those of the folder

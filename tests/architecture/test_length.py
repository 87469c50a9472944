"""A test file has one idea, and can be read at one sitting."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST = 400  # lines


def test_no_test_file_is_too_long():
    lengths = {file.relative_to(TESTS): len(file.read_text().splitlines()) for file in TESTS.rglob("*.py")}
    assert {file: length for file, length in lengths.items() if length > MOST} == {}

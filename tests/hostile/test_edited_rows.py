"""Rows that somebody has edited where they stand: served as far as they can be, mended by the doctor, and opened again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hostile_files import case_ids, check_serves, filled, opened
from inside import engine_of, state_of

from cascade_memory.errors import StoreCorrupt

_EDITS = {
    "a note of the running time that is no text": "UPDATE meta SET value = CAST(x'ff80c3' AS TEXT) WHERE key = 'running'",
    "a case of a namespace that cannot be": "UPDATE cases SET namespace = -1 WHERE key = 1",
    "a case of no namespace": "UPDATE cases SET namespace = 0 WHERE key = 2",
    "an episode of a namespace that cannot be": "UPDATE episode SET namespace = -4611686018427387904 WHERE key = 2",
    "a report of less than nothing": "UPDATE episode SET reported = -4611686018427387904 WHERE key = 3",
    "a report that is no number": "UPDATE episode SET reported = 'much' WHERE key = 3",
    "a case that none can follow": "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'cases'",
    "recalls without end": "UPDATE sqlite_sequence SET seq = 9e999 WHERE name = 'recall'",
    "lines of the log without end": "UPDATE sqlite_sequence SET seq = 9e999 WHERE name = 'change'",
    "cases that are counted below zero": "UPDATE sqlite_sequence SET seq = 1e300 WHERE name = 'cases'",
    "episodes that are counted by a text": "UPDATE sqlite_sequence SET seq = CAST(x'ff' AS TEXT) WHERE name = 'episode'",
}


def _edit(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "ledger.sqlite3")
    connection.execute("PRAGMA foreign_keys = OFF")
    with connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


@pytest.mark.parametrize("what", _EDITS)
def test_it_is_served_mended_and_opened_again(tmp_path: Path, what: str):
    folder = tmp_path / "memory"
    filled(folder)
    ids = case_ids(folder)
    _edit(folder, _EDITS[what])
    for _ in range(2):
        memory = opened(folder)
        try:
            recall = memory.recall("task 3 of kind 3")
            assert recall.error is None
            assert memory.reward(recall.episode_id, 1.0, solution="fix 3")
            memory.data.examine(fix=True)
            engine_of(memory).failures.clear()  # what could not be learned until it was mended
            check_serves(memory, ids)
        finally:
            memory.close()
    assert ids <= case_ids(folder)


def test_a_row_after_which_no_other_can_come_is_refused_and_not_taken_for_a_full_disk(tmp_path: Path):
    filled(tmp_path / "memory")
    _edit(tmp_path / "memory", "UPDATE recall SET key = 9223372036854775807 WHERE key = 2")
    with pytest.raises(StoreCorrupt, match="a row of recall with the impossible key 9223372036854775807"):
        opened(tmp_path / "memory")


@pytest.mark.parametrize("case", [1, 2], ids=["of the shown case", "of the retained case"])
@pytest.mark.parametrize("head", ["CAST(x'ff80c3' AS TEXT)", "x'ff00'", "7"], ids=["not UTF-8", "bytes", "a number"])
def test_the_beginning_of_a_solution_that_is_no_text_keeps_nothing_from_being_learned(tmp_path: Path, head: str, case: int):
    steps = "cut the power, open the case, change the bulb"
    memory = opened(tmp_path / "memory")
    memory.add("repair the lamp", steps)
    for number in range(10):
        recall = memory.recall(f"repair the lamp number {number}")
        memory.reward(recall.episode_id, 1.0, solution=f"{steps} {number}")
    memory.close()
    _edit(tmp_path / "memory", f"UPDATE cases SET head = {head} WHERE key = {case}")
    memory = opened(tmp_path / "memory")
    memory.data.refit()
    assert state_of(memory).policy.rewards == 10
    memory.close()

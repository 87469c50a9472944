"""A row is left out because it cannot be read, and not because its reader was interrupted."""

from __future__ import annotations

import json

import pytest

from cascade_memory.ledger.rows import usable


class SoftLimit(Exception):
    """Raised by a worker's time limit, at any moment."""


def test_a_row_that_was_being_read_at_an_interrupt_is_not_taken_for_a_damaged_one():
    interrupts = [SoftLimit()]

    def read(text: str) -> object:
        if text == "2" and interrupts:
            raise interrupts.pop()
        return json.loads(text)

    with pytest.raises(SoftLimit):
        usable(["1", "2", "3"], read)
    assert usable(["1", "2", "{", "3"], read) == [1, 2, 3]

"""A page of the audit log is read at the same speed, however long the log is."""

from __future__ import annotations

from inside import engine_of

from cascade_memory import CascadeMemory


def _steps(memory: CascadeMemory) -> int:
    """Count the steps, in tens, in which SQLite reads the newest page."""
    counted: list[int] = []
    with engine_of(memory).parts.ledger.connections.read() as connection:
        connection.set_progress_handler(lambda: counted.append(1), 10)
    page = memory.review.page(limit=10)
    with engine_of(memory).parts.ledger.connections.read() as connection:
        connection.set_progress_handler(None, 0)
    assert len(page.items) == 10
    return len(counted)


def test_a_page_of_a_long_log_asks_about_its_own_entries_only():
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        cases = memory.add([(f"task {number}", "s") for number in range(1_000)])
        for case_id in cases[:50]:
            memory.acting(actor="ann").cases.pin(case_id)
        short = _steps(memory)
        for case_id in cases[50:]:
            memory.acting(actor="ann").cases.pin(case_id)
        assert 0 < short <= _steps(memory) < short + 950 * 2  # a key of each entry, and nothing else


def test_what_was_done_since_is_found_in_a_page_and_beyond_it():
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        one, other = memory.add([("cool some mug", "fridge"), ("heat some egg", "microwave")])
        ann = memory.acting(actor="ann")
        for verb in (ann.cases.pin, ann.cases.unpin, ann.cases.pin):
            verb(one)
        memory.acting(actor="ann").cases.hide(one)
        memory.acting(actor="ann").cases.pin(other)
        first = memory.review.page(limit=3)
        rest = memory.review.page(limit=3, after=first.after)
        found = [(entry.action, entry.can_undo) for entry in (*first.items, *rest.items)]
        assert found[:5] == [("pin", True), ("hide", True), ("pin", True), ("unpin", False), ("pin", False)]
        assert [entry.id for entry in memory.review.audit()][:5] == [entry.id for entry in (*first.items, *rest.items)][:5]

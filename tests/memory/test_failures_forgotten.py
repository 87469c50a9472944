"""Failed steps are forgotten with their episodes: no byte of them stays, and a warning goes with its last failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from failed_once import WARNING, check_once, fail_once
from inside import engine_of

from cascade_memory import CascadeMemory

_BYTES = (b"agee", b"named age", WARNING.encode())


def _held(folder: Path) -> set[bytes]:
    found = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    return {some for some in _BYTES if any(some in raw for raw in found)}


@pytest.fixture
def memory(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as one:
        yield one


def test_no_byte_of_them_stays_after_a_purge(memory: CascadeMemory, tmp_path: Path):
    fail_once(memory, metadata={"user": "ann"})
    check_once(memory)
    assert _held(tmp_path) == set(_BYTES)
    preview = memory.forget(where={"user": "ann"}, dry_run=True)
    receipt = memory.forget(where={"user": "ann"}, purge=True)
    assert preview.counts == receipt.counts == {"cases": 0, "episodes": 1, "recalls": 1, "outcomes": 1, "warnings": 1}
    assert "1 warnings" in receipt.summary()
    assert receipt.as_dict()["warnings"] == 1
    assert receipt.purged
    # The audit log says that somebody decided about a warning, by its id.
    assert _held(tmp_path) == {WARNING.encode()}
    assert engine_of(memory).parts.ledger.maintenance.orphans() == {}


def test_others_who_failed_there_keep_the_warning(memory: CascadeMemory):
    fail_once(memory, metadata={"user": "ann"})
    fail_once(memory, "asks for the same column", metadata={"user": "bob"})
    check_once(memory)
    warnings = engine_of(memory).parts.ledger.warnings
    assert memory.forget(where={"user": "ann"}).counts["warnings"] == 1
    assert [one.query for one in warnings.failures(1)] == ["asks for the same column"]
    assert warnings.decisions(1)[WARNING].advice == "the column is named age"
    assert memory.forget(everything=True).counts["warnings"] == 1
    assert (warnings.failures(1), warnings.decisions(1), warnings.tallies(1)) == ([], {}, {})


def test_a_receipt_without_any_says_nothing_of_warnings(memory: CascadeMemory):
    receipt = memory.forget(case_ids=memory.add("a task", "a solution"))
    assert "warnings" not in receipt.as_dict()
    assert "warnings" not in receipt.summary()


def test_secrets_are_taken_out_of_what_is_imported(memory: CascadeMemory, tmp_path: Path):
    fail_once(memory)
    check_once(memory)
    lines = io.StringIO()
    memory.export(lines, progress=False)
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    told = lines.getvalue().replace("no such column: agee", f"denied for {secret}").replace("named age", f"in {secret}")
    with CascadeMemory(tmp_path / "other", embedder="hashing", learn="inline") as other:
        other.import_(told.splitlines(), progress=False)
        warnings = engine_of(other).parts.ledger.warnings
        (one,) = warnings.failures(1)
        assert one.blame.action == "SELECT agee FROM staff"
        for text in (one.blame.happened, str(warnings.decisions(1)[WARNING].advice)):
            assert secret not in text
            assert "key" in text
    with CascadeMemory(tmp_path / "open", embedder="hashing", learn="inline", redact=False) as unguarded:
        unguarded.import_(told.splitlines(), progress=False)
        assert {"outcome failure", "action decision"} <= {one.where for one in unguarded.find_secrets()}

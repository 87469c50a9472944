"""Failed steps are forgotten with their episodes: no byte of them stays, and a warning goes with its last failure."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest
from failed_once import WARNING, check_once, fail_once
from inside import engine_of
from warned import MISTAKE, TASK, fail
from warning_rows import rows_in, rows_of

from cascade_memory import CascadeMemory, FailureWarning, Step, WarningOptions
from cascade_memory.capabilities.warnings.records import Check

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
    assert "1 warning" in receipt.summary()
    assert receipt.as_dict()["warnings"] == 1
    assert receipt.purged
    # The audit log says that somebody decided about a warning, by its id.
    assert _held(tmp_path) == {WARNING.encode()}
    assert engine_of(memory).parts.ledger.maintenance.orphans() == {}


def test_nor_does_one_of_a_failure_that_was_taken_back_before(memory: CascadeMemory, tmp_path: Path):
    episode_id = fail_once(memory)
    ledger = engine_of(memory).parts.ledger
    checked = memory.recall("asks for another column").episode_id
    rows_in(ledger).note_check(Check(episode_id=checked, warning=WARNING, warned=True, propensity=0.5, at=1.0))
    memory.reward(episode_id, 1.0, source="env", overwrite=True)
    assert memory.warnings.all() == []
    assert len(rows_in(ledger).checks(checked)) == 1
    memory.forget(episode_id=episode_id, purge=True)
    assert _held(tmp_path) == set()


def test_others_who_failed_there_keep_the_warning(memory: CascadeMemory):
    fail_once(memory, metadata={"user": "ann"})
    fail_once(memory, "asks for the same column", metadata={"user": "bob"})
    check_once(memory)
    warnings = rows_of(memory)
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
    memory.data.export(lines, progress=False)
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    told = lines.getvalue().replace("no such column: agee", f"denied for {secret}").replace("named age", f"in {secret}")
    with CascadeMemory(tmp_path / "other", embedder="hashing", learn="inline") as other:
        other.data.import_(told.splitlines(), progress=False)
        warnings = rows_of(other)
        (one,) = warnings.failures(1)
        assert one.blame.action == "SELECT agee FROM staff"
        for text in (one.blame.happened, str(warnings.decisions(1)[WARNING].advice)):
            assert secret not in text
            assert "key" in text
    with CascadeMemory(tmp_path / "open", embedder="hashing", learn="inline", redact=False) as unguarded:
        unguarded.data.import_(told.splitlines(), progress=False)
        assert {"outcome failure", "action decision"} <= {one.where for one in unguarded.data.find_secrets()}


# -- what a model has made of them -------------------------------------------------------------------------------------


_WORKED = Step(tool="sql", arguments={"q": "SELECT name FROM zebras"}, observation="ok")


def _quoting(warning: FailureWarning) -> str:
    return f"do {warning.instead}"


@pytest.fixture
def advised():
    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(distil=_quoting)) as one:
        yield one


def test_a_models_advice_goes_with_the_case_that_it_quotes(advised: CascadeMemory):
    case_id = advised.add(TASK, [_WORKED])
    fail(advised)
    assert "zebras" in str(advised.warnings.all()[0].advice)
    advised.forget(case_ids=case_id)
    (warning,) = advised.warnings.all()
    assert (warning.instead, warning.advice) == ("", None)


def test_a_models_advice_is_not_shown_while_the_case_that_it_quotes_is_hidden(advised: CascadeMemory):
    case_id = advised.add(TASK, [_WORKED])
    fail(advised)
    assert "zebras" in str(advised.warnings.all()[0].advice)
    advised.acting(actor="ann").cases.hide(case_id)
    assert advised.warnings.all()[0].advice is None
    advised.acting(actor="ann").cases.unhide(case_id)
    assert "zebras" in str(advised.warnings.all()[0].advice)


@pytest.mark.parametrize("what", ["episode", "case"])
def test_what_is_forgotten_while_a_model_writes_advice_does_not_come_back_in_its_words(what: str):
    asked, forgotten = threading.Event(), threading.Event()

    def distil(warning: FailureWarning) -> str:
        asked.set()
        forgotten.wait(20)
        return f"do {warning.instead}: {warning.query}"

    with CascadeMemory(embedder="hashing", learn="inline", warnings=WarningOptions(distil=distil)) as memory:
        case_id = memory.add(TASK, [_WORKED])
        first = memory.recall(TASK)
        learns = threading.Thread(target=lambda: first.reward(0.0, solution=[MISTAKE], source="env"))
        learns.start()
        assert asked.wait(20)
        fail(memory, f"{TASK} again", MISTAKE)
        memory.forget(**({"episode_id": first.episode_id} if what == "episode" else {"case_ids": case_id}))
        forgotten.set()
        learns.join()
        (warning,) = memory.warnings.all()
        assert warning.advice is None
        assert warning.times == (1 if what == "episode" else 2)

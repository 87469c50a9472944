"""Codes that confirm a deletion: forged, of other cases, of other clients, used, too late, or for what has changed since."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from inside import verb_of

from cascade_memory import CascadeMemory, Trust
from cascade_memory.errors import InvalidInput, TicketRefused, UnknownCase
from cascade_memory.ledger import running
from cascade_memory.mcp_server.verbs import Verbs


@pytest.fixture
def memory(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline", trust=Trust(tickets=True)) as memory:
        yield memory


@pytest.fixture
def ids(memory: CascadeMemory) -> list[str]:
    return memory.add([(f"task {number}", f"solution {number}") for number in range(3)])


def _refused(verbs: Verbs, ids: list[str], code: object) -> None:
    before = verbs.memory.stats().cases
    with pytest.raises(TicketRefused, match="call forget_cases without a code") as refused:
        verbs.forget_cases(ids, code)  # type: ignore[arg-type]
    assert verbs.memory.stats().cases == before
    if isinstance(code, str) and len(code) > 8:
        assert code not in str(refused.value)


@pytest.mark.slow
def test_a_code_is_good_for_exactly_what_was_previewed(memory, ids):
    verbs = Verbs(memory)
    code = verbs.forget_cases(ids[:2])["code"]
    for others in (ids, ids[:1], ids[1:], ids[2:]):
        _refused(verbs, others, code)
    assert verbs.forget_cases([*ids[1::-1], ids[0]], code)["forgotten"]["cases"] == 2  # in any order, named twice


def test_a_code_is_good_once_even_if_the_cases_come_back(memory, ids, tmp_path):
    verbs = Verbs(memory)
    memory.data.export(tmp_path / "all.jsonl")
    code = verbs.forget_cases(ids)["code"]
    verbs.forget_cases(ids, code)
    with pytest.raises(UnknownCase):
        verbs.forget_cases(ids, code)
    memory.data.import_(tmp_path / "all.jsonl")
    _refused(verbs, ids, code)


@pytest.mark.slow
def test_a_code_is_good_for_its_own_client(memory, ids):
    code = Verbs(memory, actor="ann").forget_cases(ids)["code"]
    for other in ("bob", "Ann", "ann ", None):
        _refused(Verbs(memory, actor=other), ids, code)
    Verbs(memory, actor="ann").forget_cases(ids, code)


def test_names_and_ids_cannot_be_shifted_into_one_another(memory, ids):
    """A client that is called like a case gets no code for fewer cases."""
    code = Verbs(memory, actor=None).forget_cases(ids)["code"]
    _refused(Verbs(memory, actor=ids[0]), ids[1:], code)


@pytest.mark.parametrize("change", ["another episode", "a verification", "a reward that shows it", "metadata"])
def test_what_has_changed_since_is_looked_at_again(memory, ids, change):
    verbs = Verbs(memory)
    code = verbs.forget_cases(ids[:1])["code"]
    if change == "a verification":
        memory.recall("task 0").reward(1.0, solution="solution 0")
    elif change == "metadata":
        memory.add("task 0", "solution 0", metadata={"user": "ann"})
    else:
        recall = memory.recall("task 0 again")
        recall.reward(1.0, solution="solution 0")
        memory.recall("task 0").reward(1.0, solution="solution 0")
    _refused(verbs, ids[:1], code)


@pytest.mark.parametrize("decision", ["pin", "hide", "correct"])
def test_what_a_person_decides_after_the_preview_holds(memory, ids, decision):
    verbs = Verbs(memory)
    code = verbs.forget_cases(ids[:1])["code"]
    if decision == "correct":
        memory.acting(actor="ann").review.correct(ids[0], "another solution")
    else:
        verb_of(memory.acting(actor="ann"), decision)(ids[0])
    _refused(verbs, ids[:1], code)


@pytest.mark.parametrize(("decided", "taken_back"), [("pin", "unpin"), ("hide", "unhide")])
def test_what_a_person_takes_back_after_the_preview_counts_as_well(memory, ids, decided, taken_back):
    verbs = Verbs(memory)
    verb_of(memory, decided)(ids[0])
    code = verbs.forget_cases(ids[:1])["code"]
    verb_of(memory, taken_back)(ids[0])
    _refused(verbs, ids[:1], code)


@pytest.mark.slow
def test_an_episode_that_takes_the_place_of_another_one_was_not_previewed(memory):
    """All counts are as before, but what would go is somebody else's."""
    case_id = memory.recall("cool some mug", episode_id="first").reward(1.0, solution="fridge")
    verbs = Verbs(memory)
    code = verbs.forget_cases([case_id])["code"]
    memory.recall("cool some mug", episode_id="second").reward(1.0, solution="fridge")
    memory.forget(episode_id="first")
    _refused(verbs, [case_id], code)
    assert memory.episodes.get("second") is not None
    verbs.forget_cases([case_id], verbs.forget_cases([case_id])["code"])
    assert memory.episodes.get("second") is None


@pytest.mark.parametrize(
    "altered",
    [
        lambda code: code[:-1],
        lambda code: code + "A",
        lambda code: code.swapcase(),
        lambda code: f" {code}",
        lambda code: "A" * 48,
        lambda code: "\ud800" * 48,
        lambda code: "🦙" * 100_000,
        lambda code: "yes",
        lambda code: 1,
        lambda code: [code],
    ],
    ids=range(10),
)
def test_a_forged_code_deletes_nothing(memory, ids, altered):
    verbs = Verbs(memory)
    _refused(verbs, ids, altered(verbs.forget_cases(ids)["code"]))


def test_a_ticket_is_no_code(memory, ids):
    recall = memory.recall("task 0")
    _refused(Verbs(memory), ids, recall.ticket)
    code = Verbs(memory).forget_cases(ids)["code"]
    with pytest.raises(TicketRefused):
        memory.reward(recall.episode_id, 1.0, source="user", ticket=code)


@pytest.mark.slow
def test_a_code_expires_and_no_clock_brings_it_back(memory, ids, monkeypatch):
    passed, ahead, began = [0.0], [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: began + passed[0] + ahead[0])
    monkeypatch.setattr(running, "clock", lambda: 1_000.0 + passed[0])
    monkeypatch.setattr(running, "boot", lambda: "one")
    verbs = Verbs(memory)
    code = verbs.forget_cases(ids)["code"]
    passed[0] = 601.0
    for ahead[0] in (0.0, -600.0, -1e6):
        _refused(verbs, ids, code)
    fresh = verbs.forget_cases(ids)["code"]
    passed[0] += 599.0
    verbs.forget_cases(ids, fresh)


def test_a_code_works_in_another_process_with_the_same_memory(memory, ids, tmp_path):
    """A client that starts a server for every call has a new process for the second step."""
    code = Verbs(memory, actor="ann").forget_cases(ids)["code"]
    memory.close()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as later:
        assert Verbs(later, actor="ann").forget_cases(ids, code)["forgotten"]["cases"] == 3


@pytest.mark.slow
def test_of_many_who_confirm_at_once_one_deletes(memory, ids):
    verbs = Verbs(memory)
    code = verbs.forget_cases(ids)["code"]
    done: list[str] = []

    def confirm() -> None:
        with contextlib.suppress(TicketRefused, UnknownCase):
            done.append(verbs.forget_cases(ids, code)["status"])

    threads = [threading.Thread(target=confirm) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["forgotten"]


def test_unknown_ids_and_too_many_get_no_code(memory, ids):
    for wrong, refusal in ((["nowhere"], UnknownCase), ([], InvalidInput), (["x"] * 101, InvalidInput)):
        with pytest.raises(refusal):
            Verbs(memory).forget_cases(wrong)

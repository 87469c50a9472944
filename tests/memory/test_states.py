"""The drawings of states.md: every arrow is played, and every move that is not drawn changes nothing."""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clocks import Clocks

from cascade_memory import CascadeMemory, Ranking, Retention
from cascade_memory.errors import CascadeError

ROOT = Path(__file__).parents[2]
TASK = "cool some mug"
Arrow = tuple[str, str, str]
Memory = CascadeMemory


def drawn(name: str) -> set[Arrow]:
    """Return the arrows of a drawing: from, to, and by what."""
    tree = ET.parse(ROOT / "docs" / "images" / name)
    groups = [one for one in tree.iter() if "data-from" in one.attrib]
    for group in groups:  # what is compared is what is written beside the arrow
        written = [one.text for one in group if one.tag.endswith("text")]
        assert " | ".join(map(str, written)) == group.attrib["data-by"]
    return {(one.attrib["data-from"], one.attrib["data-to"], by) for one in groups for by in one.attrib["data-by"].split(" | ")}


EPISODES, CASES = drawn("episode_states.svg"), drawn("case_states.svg")


@pytest.fixture
def memory(clocks: Clocks) -> Iterator[CascadeMemory]:
    proposed.clear()
    with CascadeMemory(
        embedder="hashing", learn="inline", retention=Retention(max_cases=3, ttl=100.0), ranking=Ranking(abstain=False)
    ) as memory:
        yield memory


# -- episodes ------------------------------------------------------------------------------------------------------------


proposed: list[str] = []  # the id of the episode, if that is not "it"


def episode_state(memory: Memory) -> str:
    found = memory.episodes.get(*(proposed or ["it"]))
    return "nothing" if found is None else found.status


def judge(memory: Memory, **options: Any) -> None:
    memory.acting(actor=options.pop("actor", None)).reward("it", 1.0, solution="fridge", **options)


def propose(memory: Memory) -> None:
    """Store a proposal, whose episode has an id that nobody chooses."""
    proposed[:] = [memory.review.propose(TASK, "fridge")]


def seen(memory: Memory) -> str:
    found = memory.episodes.get("it")
    return "" if found is None else found.fingerprint


def undo_the_verdict(memory: Memory) -> None:
    entries = [entry for entry in memory.review.audit() if entry.action in ("confirm", "reject", "correct")]
    if not entries:
        raise CascadeError("there is no verdict")
    memory.review.undo(entries[0].id)


MOVE_EPISODE: dict[str, Callable[[Memory], object]] = {
    "recall()": lambda memory: memory.recall(TASK, episode_id="it"),
    "propose()": propose,
    "reward()": judge,
    "reward(overwrite=True)": lambda memory: memory.reward("it", 0.0, overwrite=True),
    "confirm()": lambda memory: memory.acting(actor="ann").review.confirm("it", seen=seen(memory)),
    "reject()": lambda memory: memory.acting(actor="ann").review.reject("it", seen=seen(memory)),
    "correct()": lambda memory: memory.acting(actor="ann").review.correct("it", "freezer"),
    "undo()": undo_the_verdict,
    "forget(by_actor=...)": lambda memory: memory.forget(by_actor="eve"),
    "discard()": lambda memory: memory.episodes.discard("it"),
    "expire()": lambda memory: memory.episodes.expire(0.0),
    "expire(reported=True)": lambda memory: memory.episodes.expire(0.0, reported=True),
    "forget(episode_id=...)": lambda memory: memory.forget(episode_id="it"),
}


def bring_episode(memory: Memory, clocks: Clocks, state: str, by: str = "") -> None:
    """Bring an episode into a state, in the way that the next move needs."""
    if state == "nothing":
        return
    memory.recall(TASK, episode_id="it")
    if state == "open":
        memory.episodes.finish("it", solution="fridge")  # a verdict is about an answer
    elif state == "settled":
        if by == "undo()":
            memory.episodes.finish("it", solution="fridge")
            MOVE_EPISODE["confirm()"](memory)
        else:
            who = {"forget(by_actor=...)": {"actor": "eve"}, "expire(reported=True)": {"source": "agent"}}
            judge(memory, **who.get(by, {}))
    elif state == "censored":
        memory.episodes.discard("it")
    elif state == "expired":
        clocks.real += 1.0
        memory.episodes.expire(0.0)


@pytest.mark.parametrize("arrow", sorted(EPISODES), ids=lambda arrow: f"{arrow[0]}, {arrow[2]}")
def test_an_episode_goes_where_the_arrow_points(memory: CascadeMemory, clocks: Clocks, arrow: Arrow):
    state, to, by = arrow
    bring_episode(memory, clocks, state, by)
    assert episode_state(memory) == state
    clocks.real += 1.0
    MOVE_EPISODE[by](memory)
    assert episode_state(memory) == {"gone": "nothing"}.get(to, to)


@pytest.mark.parametrize("state", ["open", "settled", "censored", "expired"])
@pytest.mark.parametrize("by", sorted(set(MOVE_EPISODE) - {"propose()", "forget(episode_id=...)"}))
def test_an_episode_stays_where_no_arrow_leads_on(memory: CascadeMemory, clocks: Clocks, state: str, by: str):
    bring_episode(memory, clocks, state)
    clocks.real += 1.0
    with contextlib.suppress(CascadeError):
        MOVE_EPISODE[by](memory)
    leads_to = {to for one, to, move in EPISODES if one == state and move.partition("(")[0] == by.partition("(")[0]}
    assert episode_state(memory) in (leads_to | {state})


# -- cases ---------------------------------------------------------------------------------------------------------------


def the_case(memory: Memory) -> str:
    found = next((case.id for case in memory.cases.all() if case.query == TASK), None)
    return found or next(case.id for why in ("expired", "evicted") for case in memory.cases.expired(why=why))


def case_state(memory: Memory) -> str:
    found = next((case for case in memory.cases.all() if case.query == TASK and case.solution == "fridge"), None)
    if found is None:
        kept = [case for why in ("expired", "evicted") for case in memory.cases.expired(why=why) if case.query == TASK]
        return "set aside" if kept else "nothing"
    if not found.hidden:
        assert found.id in {case.id for case in memory.cases.search(TASK, k=3).cases}
        return "shown"
    by_person = memory.cases.unhide(found.id)
    if by_person:
        memory.cases.hide(found.id)
    return "hidden" if by_person else "quarantined"


def crowd_out(memory: Memory, clocks: Clocks) -> None:
    """Add more than there is room for."""
    del clocks
    memory.add([(f"other {number}", "oven") for number in range(20)], progress=False)
    memory.recall(TASK)
    memory.sync()


def pass_for(seconds: float) -> Callable[[Memory, Clocks], None]:
    def wait(memory: Memory, clocks: Clocks) -> None:
        clocks.pass_for(memory, seconds)
        memory.recall("another task")

    return wait


def rewarded(memory: Memory, clocks: Clocks) -> None:
    del clocks
    memory.reward(memory.recall(TASK).episode_id, 1.0, solution="fridge")


def corrected(memory: Memory, clocks: Clocks) -> None:
    del clocks
    memory.acting(actor="ann").review.correct(memory.recall(TASK).episode_id, "fridge")


def undo_the_hiding(memory: Memory, clocks: Clocks) -> None:
    del clocks
    memory.review.undo(next(entry.id for entry in memory.review.audit() if entry.action == "hide"))


MOVE_CASE: dict[str, Callable[[Memory, Clocks], object]] = {
    "reward()": rewarded,
    "add()": lambda memory, _: memory.add(TASK, "fridge"),
    "correct()": corrected,
    "hide()": lambda memory, _: memory.cases.hide(the_case(memory)),
    "unhide()": lambda memory, _: memory.cases.unhide(the_case(memory)),
    "undo()": undo_the_hiding,
    "quarantine()": lambda memory, _: memory.sources.quarantine("eve"),
    "release()": lambda memory, _: memory.sources.release("eve"),
    "pin()": lambda memory, _: memory.cases.pin(the_case(memory)),
    "max_cases": crowd_out,
    "ttl": pass_for(101.0),
    "bring_back()": lambda memory, _: memory.cases.bring_back([the_case(memory)]),
    "forget()": lambda memory, _: memory.forget([the_case(memory)]),
    "after a week": pass_for(8 * 24 * 3600.0),
}


@pytest.mark.parametrize("arrow", sorted(CASES), ids=lambda arrow: f"{arrow[0]}, {arrow[2]}")
def test_a_case_goes_where_the_arrow_points(memory: CascadeMemory, clocks: Clocks, arrow: Arrow):
    state, to, by = arrow
    if state != "nothing":
        memory.acting(actor="eve").add(TASK, "fridge", source="host")
    bring = {"hidden": "hide()", "quarantined": "quarantine()", "set aside": "ttl"}.get(state)
    if bring is not None:
        MOVE_CASE[bring](memory, clocks)
    assert case_state(memory) == state
    MOVE_CASE[by](memory, clocks)
    assert case_state(memory) == {"gone": "nothing"}.get(to, to)


@pytest.mark.parametrize("first", ["hide()", "quarantine()"])
def test_a_case_that_is_hidden_for_two_reasons_is_shown_when_neither_holds(memory: CascadeMemory, clocks: Clocks, first: str):
    memory.acting(actor="eve").add(TASK, "fridge", source="host")
    second = {"hide()": "quarantine()", "quarantine()": "hide()"}[first]
    for move in (first, second):
        MOVE_CASE[move](memory, clocks)
    for move in (first, second):
        assert case_state(memory) != "shown"
        MOVE_CASE[{"hide()": "unhide()", "quarantine()": "release()"}[move]](memory, clocks)
    assert case_state(memory) == "shown"


# -- where the moves are made --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "module"),
    [
        (r"UPDATE episode SET (status|source|closed_at|reported)\b", "episode_states"),
        (r"DELETE FROM episode\b", "episode_states"),
        (r"INSERT INTO episode \(", "recalls"),
        (r"UPDATE cases SET (hidden|pinned)\b", "case_states"),
        (r"INSERT INTO expired \(", "room"),
    ],
)
def test_each_move_is_made_in_one_module(statement: str, module: str):
    ledger = ROOT / "cascade_memory" / "ledger"
    found = {path.stem for path in ledger.rglob("*.py") if re.search(statement, path.read_text(encoding="utf-8"))}
    # What comes from a file is checked first: a damaged number is cleared, and the length of an imported report is counted.
    of_files = {"mending", "transfer"} if "reported" in statement else set[str]()
    assert found - of_files == {module}

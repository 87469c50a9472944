"""The pages say what is so, and offer only what can be done."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import pytest
from inspecting import WEIRD, Browser, Door, door, form_of, links_of, text_of

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.capabilities.review import pages
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.forgetting import SQLForgetting

TASK = "boil some water"


@pytest.fixture
def editing(memory: CascadeMemory) -> Iterator[Door]:
    with door(memory, edit=True) as made:
        yield made


@pytest.fixture
def person(editing: Door) -> Browser:
    return editing.browser()


def of_episode(browser: Browser, episode_id: str) -> Any:
    return browser.get("/episode", params={"id": episode_id})


def of_case(browser: Browser, case_id: str) -> Any:
    return browser.get("/case", params={"id": case_id})


def failed(memory: CascadeMemory) -> str:
    episode_id = memory.recall(TASK).episode_id
    memory.reward(episode_id, 0.0, solution="use the kettle", source="agent")
    return episode_id


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_a_failure_that_an_agent_reports_is_confirmed_as_a_failure(person: Browser, memory: CascadeMemory):
    page = of_episode(person, episode_id := failed(memory))
    assert "it says that it was not solved" in text_of(page)
    assert "Confirm: it is right" not in text_of(page)
    assert "Confirm: it was not solved" in text_of(page)
    done = person.post("/do/confirm", form_of(page, "confirm"))
    assert "No case was stored" in text_of(person.get(done.headers["location"]))
    found = memory.episodes.get(episode_id)
    assert found is not None
    assert (found.reward, found.source) == (0.0, "human")


def test_an_answer_that_an_agent_took_for_a_failure_can_be_right(person: Browser, memory: CascadeMemory):
    page = of_episode(person, failed(memory))
    assert "It is right after all" in text_of(page)
    done = person.post("/do/confirm", {**form_of(page, "confirm"), "right": "yes"})
    after = person.get(done.headers["location"])
    assert "The answer is a case now" in text_of(after)
    assert memory.recall(TASK).cases[0].solution == "use the kettle"
    person.post("/do/undo", form_of(after, "undo"))
    assert memory.cases.search(TASK).cases[0].solution != "use the kettle"


def test_a_run_that_goes_on_has_no_buttons_for_a_verdict(person: Browser, memory: CascadeMemory):
    episode_id = memory.recall(TASK).episode_id
    text = text_of(of_episode(person, episode_id))
    assert "Reject" not in text
    memory.episodes.finish(episode_id, solution="use the kettle")
    text = text_of(of_episode(person, episode_id))
    assert "Confirm: it is right" in text
    assert "Reject: it is wrong" in text


def test_an_episode_that_was_closed_without_a_verdict_cannot_be_corrected(person: Browser, memory: CascadeMemory):
    episode_id = memory.recall(TASK).episode_id
    memory.episodes.discard(episode_id)
    page = of_episode(person, episode_id)
    assert "censored" in text_of(page)
    assert "/do/correct" not in page.text


def test_a_case_that_somebody_else_has_corrected_since_is_not_corrected(editing: Door, memory: CascadeMemory):
    case_id = memory.add(TASK, "use the oven")
    ann, bob = editing.browser(), editing.browser()
    pages = [of_case(one, case_id) for one in (ann, bob)]
    forms = [form_of(page, "correct") for page in pages]
    assert ann.post("/do/correct", {**forms[0], "solution": "use the kettle"}).status_code == 303
    refused = bob.post("/do/correct", {**forms[1], "solution": "use the sun"})
    assert refused.status_code == 409
    assert "Nothing was changed" in text_of(refused)
    assert [case.solution for case in memory.cases.search(TASK, k=9).cases if case.query == TASK] == ["use the kettle"]


def test_a_report_that_somebody_else_has_confirmed_since_is_not_corrected(editing: Door, memory: CascadeMemory):
    episode_id = memory.review.propose(TASK, "use the kettle")
    ann, bob = editing.browser(), editing.browser()
    pages = [of_episode(one, episode_id) for one in (ann, bob)]
    assert ann.post("/do/confirm", form_of(pages[0], "confirm")).status_code == 303
    assert bob.post("/do/correct", {**form_of(pages[1], "correct"), "solution": "use the sun"}).status_code == 409
    assert memory.recall(TASK).cases[0].solution == "use the kettle"


def test_what_is_listed_to_judge_is_not_all_when_there_is_too_much(editing: Door, memory: CascadeMemory, monkeypatch: Any):
    monkeypatch.setattr(pages, "MOST_LISTED", 3)
    for number in range(4):
        memory.review.propose(f"{TASK} {number}", "use the kettle")
    assert "More may wait; these 3 come first." in text_of(editing.browser().get("/judge"))


# -- what can be taken back --------------------------------------------------------------------------------------------


def test_an_address_does_not_decide_what_its_undo_takes_back(person: Browser, memory: CascadeMemory):
    one, other = (memory.add(f"{TASK} {number}", "use the kettle") for number in range(2))
    memory.acting(actor="ann").cases.hide(one)
    hidden = next(memory.review.audit()).id
    memory.acting(actor="bob").cases.pin(other)
    lured = person.get("/case", params={"id": other, "done": "pin", "entry": hidden})
    assert "This case is pinned" in text_of(lured)
    assert "/do/undo" not in lured.text
    mine = person.get("/case", params={"id": one, "done": "hide"})
    assert form_of(mine, "undo")["entry"] == hidden


def test_a_text_in_the_address_is_never_shown(person: Browser):
    page = person.get("/audit", params={"done": "<b>call 555 to unlock</b>"})
    assert "555" not in page.text


# -- forgetting --------------------------------------------------------------------------------------------------------


def test_forgetting_says_how_much_it_deleted(person: Browser, memory: CascadeMemory):
    recall = memory.recall(TASK)
    case_id = str(memory.reward(recall.episode_id, 1.0, solution="use the kettle"))
    preview = person.get("/forget", params={"what": "case", "id": case_id})
    done = person.post("/do/forget", {**form_of(preview, "forget"), "purge": "yes"})
    text = "".join(text_of(done).split())
    assert done.status_code == 200
    assert "Cases1Episodes1Recalls1Outcomes1" in text
    assert "Nofileofthememoryholdsabyte" in text


def test_a_purge_that_was_not_complete_says_so(person: Browser, memory: CascadeMemory, monkeypatch: Any):
    case_id = memory.add(TASK, "use the kettle")
    preview = person.get("/forget", params={"what": "case", "id": case_id})
    left = "the write-ahead log: another process <reads> from it; purge again"
    monkeypatch.setattr(SQLForgetting, "scrub", lambda self, namespace, action=None: (1, left))
    done = person.post("/do/forget", {**form_of(preview, "forget"), "purge": "yes"})
    assert "Files may still hold bytes of it" in text_of(done)
    assert left in text_of(done)
    assert "No file of the memory holds a byte" not in text_of(done)
    assert case_id not in memory


def test_who_may_only_look_gets_no_preview_of_forgetting(browser: Browser, memory: CascadeMemory):
    case = next(iter(memory.cases.all()))
    assert browser.get("/forget", params={"what": "case", "id": case.id}).status_code == 404


# -- texts -------------------------------------------------------------------------------------------------------------


def test_lines_that_end_as_on_windows_are_lines(person: Browser, memory: CascadeMemory):
    case_id = memory.add("open\r\nthe door", "take the key\r\nturn it")
    page = of_case(person, case_id)
    assert "U+000D" not in page.text
    assert "\ufffd" not in page.text
    fields = {**form_of(page, "correct"), "solution": "take the key\r\npush"}
    done = person.post("/do/correct", fields)
    assert "take the key\npush" in [case.solution for case in memory.cases.all()]
    assert done.status_code == 303


def test_a_trajectory_that_nobody_has_edited_is_not_saved_as_a_text(person: Browser, memory: CascadeMemory):
    case_id = memory.add(TASK, Trajectory([Step(action="fill kettle", observation="full")], answer="it boils"))
    page = of_case(person, case_id)
    there = page.text.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0].strip("\n")
    assert person.post("/do/correct", {**form_of(page, "correct"), "solution": html.unescape(there)}).status_code == 400
    assert next(entry.action for entry in memory.review.audit()) == "add"


@pytest.mark.parametrize(("address", "query"), WEIRD)
def test_a_weird_address_is_answered_with_a_sentence(person: Browser, address: str, query: dict[str, str]):
    found = person.ask("GET", address, params=query)
    assert found.status_code in (200, 303, 400, 404), found.text
    assert found.headers.get("location", "/").startswith("/")
    assert not found.headers.get("location", "/").startswith("//")
    assert links_of(found) or found.status_code == 303


def test_the_place_of_a_page_is_a_place(memory: CascadeMemory):
    for after in ("1.2.3:5", "x", "1:", "nan:1", "1:-1"):
        with pytest.raises(InvalidInput, match="after"):
            memory.cases.page(after=after)

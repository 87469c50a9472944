"""The pages say who made a case, how far it is trusted, and who asked."""

from __future__ import annotations

import re

import pytest
from inside import take_names_of_before
from inspecting import Browser, door, form_of, text_of

from cascade_memory import CascadeMemory
from cascade_memory.inspector.drawing import weights


def test_a_case_and_an_episode_say_whose_they_are(browser: Browser, memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    take_names_of_before(monkeypatch)
    recall = memory.acting(actor="ann <b>\u202e", channel="mcp").recall("dry some cup")
    case_id = memory.acting(actor="bob", channel="cli").reward(recall.episode_id, 1.0, solution="towel", source="user")
    for address in ("/cases", f"/case?id={case_id}", f"/episode?id={recall.episode_id}"):
        page = browser.get(address)
        assert "ann <b>" in text_of(page), address
        assert "ann <b>" not in page.text, address
        assert "\u202e" not in page.text, address
        assert "(mcp)" in text_of(page), address
    text = text_of(browser.get(f"/case?id={case_id}"))
    assert text.split("Trusted like")[1].startswith("user")
    assert "bob (cli)" in text  # who reported the outcome
    ids = [case.id for case in memory.cases.all(by_actor="")]
    assert "nobody named" in text_of(browser.get(f"/case?id={ids[0]}"))


def test_what_a_visitor_does_came_through_the_inspector(memory: CascadeMemory):
    episode_id = memory.acting(actor="agent 7", channel="mcp").review.propose("dry some cup", "fridge")
    with door(memory, edit=True) as made:
        browser = made.browser()
        page = browser.get(f"/episode?id={episode_id}")
        fields = {**form_of(page, "correct"), "solution": "towel"}
        assert browser.post("/do/correct", fields).status_code == 303
    (case,) = memory.cases.all(by_channel="inspector")
    assert (case.solution, case.actor, case.trust) == ("towel", "ann", 4)


def test_what_a_script_added_is_not_said_to_be_by_a_human(browser: Browser, memory: CascadeMemory):
    case_id = memory.add("dry some cup", "towel")
    listed = text_of(browser.get("/cases"))
    assert "human nobody named (python)" in " ".join(listed.split())
    shown = text_of(browser.get(f"/case?id={case_id}"))
    assert "by human" not in shown
    assert "it was added, with the source human" in shown


def test_a_weight_of_ten_leaves_room_for_those_below_one():
    drawn = weights("Weights", [("opening", 10.0, 10.0), ("words", 0.0, 0.5)])
    opening, zero, half = (float(x) for x in re.findall(r'class="(?:hollow|dot)" cx="([0-9.]+)"', drawn)[1:])
    assert 0.15 < (half - zero) / (opening - zero) < 0.3


def test_no_two_links_run_together(memory: CascadeMemory):
    episode_id = memory.review.propose("dry some cup", "fridge")
    memory.acting(actor="ann").review.correct(episode_id, "towel")
    with door(memory, edit=True) as made:
        browser = made.browser()
        assert "subject, case made" in " ".join(text_of(browser.get("/audit")).split())
        for page in ("/audit", "/cases", "/episodes", "/judge", "/warnings", "/health", f"/episode?id={episode_id}"):
            assert "</a><a" not in browser.get(page).text, page

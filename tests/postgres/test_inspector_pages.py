"""The inspector over a database: every page and every action, as a browser asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("starlette")

from inspecting import WEIRD, Browser, Door, door, form_of, links_of, text_of

from cascade_memory import CascadeMemory

TASK = "boil some water"


@pytest.fixture
def memory(new_database: Callable[[], str]) -> Iterator[CascadeMemory]:
    with CascadeMemory(new_database(), embedder="hashing", learn="inline") as opened:
        opened.add([(f"task {number:03}", f"solution {number}", {"user": "ann"}) for number in range(60)], progress=False)
        for number in range(30):
            recall = opened.recall(f"task {number:03}")
            opened.reward(recall.episode_id, float(number % 3 > 0), solution=f"solution {number}")
        yield opened


@pytest.fixture
def made(memory: CascadeMemory) -> Iterator[Door]:
    with door(memory, edit=True) as found:
        yield found


@pytest.fixture
def person(made: Door) -> Browser:
    return made.browser()


def submit(person: Browser, address: str, action: str, **fields: str) -> str:
    """Fill in a form of a page, and return what the page that follows says."""
    done = person.post(f"/do/{action}", {**form_of(person.get(address), action), **fields})
    assert done.status_code in (200, 303), text_of(done)
    return text_of(done if done.status_code == 200 else person.get(done.headers["location"]))


def test_every_page_and_every_link_on_it_is_answered(person: Browser, memory: CascadeMemory):
    memory.review.propose(TASK, "use the oven")
    memory.acting(actor="<b>ann</b>").cases.hide(next(iter(memory.cases.all())).id)
    todo = ["/cases", *(f"/cases?sort={sort}" for sort in ("oldest", "shown", "successes", "use")), "/health"]
    todo += ['/cases?where={"user": "ann"}', "/cases?q=TASK+05", "/cases?state=hidden", "/cases?source=host&sort=use&q=task"]
    seen: set[str] = set()
    kinds: dict[str, int] = {}
    while todo:
        address = todo.pop()
        kind = address.partition("?")[0]
        if address in seen or kinds.get(kind, 0) > 12 or kind.startswith("/static"):
            continue
        seen.add(address)
        kinds[kind] = kinds.get(kind, 0) + 1
        found = person.get(address)
        assert found.status_code in (200, 303), (address, text_of(found))
        assert "<b>ann" not in found.text
        todo += [one for one in links_of(found) if one.startswith("/")]
    assert {"/case", "/episode", "/episodes", "/judge", "/learning", "/audit", "/health", "/forget"} <= set(kinds)


@pytest.mark.parametrize("sort", ["newest", "oldest", "shown", "use"])
def test_pages_lead_through_all_cases_once(person: Browser, sort: str):
    seen: list[str] = []
    following = [f"/cases?sort={sort}"]
    while following:
        page = person.get(following[0])
        seen += links_of(page, "case")
        following = [one for one in links_of(page, "cases") if "after=" in one]
    assert len(seen) == len(set(seen)) == 60


@pytest.mark.parametrize(("address", "query"), WEIRD)
def test_a_weird_address_is_answered_with_a_sentence(person: Browser, address: str, query: dict[str, str]):
    found = person.ask("GET", address, params=query)
    assert found.status_code in (200, 303, 400, 404), found.text


def test_people_act_and_take_it_back(person: Browser, memory: CascadeMemory):
    episode_id = memory.review.propose(TASK, "use the oven")
    here = f"/episode?id={episode_id}"
    assert "You corrected" in submit(person, here, "correct", solution="use the kettle", note="so it is")
    assert memory.recall(TASK).cases[0].solution == "use the kettle"
    assert "taken back" in submit(person, "/audit", "undo")
    assert "You confirmed" in submit(person, here, "confirm")
    assert "taken back" in submit(person, "/audit", "undo")
    assert "You rejected" in submit(person, here, "reject")
    case_id = memory.add(TASK, "use the sun", metadata={"user": "bob"})
    there = f"/case?id={case_id}"
    for action in ("pin", "hide", "unpin", "unhide"):
        submit(person, there, action)
    assert "You corrected" in submit(person, there, "correct", solution="use the kettle")
    assert memory.cases.get(case_id).hidden
    assert "It is forgotten" in submit(person, f"/forget?what=case&id={case_id}", "forget")
    assert "It is forgotten" in submit(person, f"/forget?what=episode&id={episode_id}", "forget", purge="yes")
    kinds = [entry.action for entry in memory.review.audit() if entry.actor == "ann"]
    assert kinds[:4] == ["purge", "forget", "forget", "correct"]
    assert all(check.ok for check in memory.data.examine())

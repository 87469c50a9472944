"""The pages of warnings, and what people decide there: each decision is in the audit log, and can be taken back."""

from __future__ import annotations

import pytest
from inspecting import SAME, Browser, Door, door, form_of, links_of, mounted, text_of
from warned import CALL, MISTAKE, OTHER, TASK, about_to, fail, mistaken

from cascade_memory import CascadeMemory, FailureWarning, Step

AUDIT = "/audit"


def only(memory: CascadeMemory) -> FailureWarning:
    (found,) = memory.warnings.all()
    return found


@pytest.fixture
def person(memory: CascadeMemory):
    fail(memory)
    with door(memory, edit=True) as made:
        yield made.browser()


def opened(browser: Browser, warning: FailureWarning):
    return browser.get("/warning", params={"id": warning.id})


def decide(browser: Browser, warning: FailureWarning, action: str, **fields: str):
    """Send the form of a page, and open the page that follows."""
    done = browser.post(f"/do/{action}", {**form_of(opened(browser, warning), action), **fields})
    assert done.status_code == 303, text_of(done)
    return browser.get(done.headers["location"])


# -- looking -----------------------------------------------------------------------------------------------------------


def test_warnings_are_listed_with_what_came_of_them(memory: CascadeMemory):
    right = Step(tool="sql", arguments={"q": "SELECT name FROM t"}, observation="3 rows")
    memory.recall(TASK).reward(1.0, solution=[right])
    fail(memory, TASK, actor="ann")
    fail(memory, "list the names of all suppliers", source="human")
    memory.acting(actor="ann").warnings.restore(only(memory).id)
    for number in range(6):
        recall = memory.recall(f"{TASK} {number}")
        warned = memory.warnings.check(recall.episode_id, **CALL) is not None
        memory.reward(recall.episode_id, float(warned), solution=[right if warned else MISTAKE], source="env")
    known = only(memory)
    assert known.tally.warned
    with door(memory) as made:
        browser = made.browser()
        page = browser.get("/warnings")
        text = " ".join(text_of(page).split())
        for there in ("no such column: nme", "active", f"{known.times}×", "human", f"0 of {known.tally.warned}, 0 %"):
            assert there in text, there
        (link,) = links_of(page, "warning")
        text = " ".join(text_of(browser.get(link)).split())
        for there in (
            "SELECT nme FROM t",
            "no such column: nme",
            "SELECT name FROM t",
            known.query,
            "ann",
            "A tool call failed there",
        ):
            assert there in text, there
        assert f"the agent was warned {known.tally.warned} 0 of {known.tally.warned}, 0 % 1" in text


def test_lists_are_filtered_by_state_and_led_through_page_by_page(memory: CascadeMemory):
    for number in range(57):
        fail(memory, TASK, mistaken(f"col{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10]}"))
    retired = memory.warnings.all()[3]
    memory.acting(actor="ann").warnings.retire(retired.id)
    with door(memory) as made:
        browser = made.browser()
        first = browser.get("/warnings")
        (following,) = [one for one in links_of(first, "warnings") if "start=" in one]
        seen = links_of(first, "warning") + links_of(browser.get(following), "warning")
        assert len(seen) == len(set(seen)) == 57
        (link,) = links_of(browser.get("/warnings?state=retired"), "warning")
        assert retired.id in link
        assert len(links_of(browser.get("/warnings?state=active"), "warning")) == 50
        assert "No warning matches" in text_of(browser.get("/warnings?state=held"))
        for odd in ("-1", "x", "9" * 30, "٣"):
            assert browser.get("/warnings", params={"start": odd, "state": odd}).status_code == 200


def test_a_memory_without_warnings_says_when_one_is_written(browser: Browser):
    assert "no warnings yet" in text_of(browser.get("/warnings"))
    for one in ("nobody", "", "\0", "x" * 7_000):
        found = browser.get("/warning", params={"id": one})
        assert found.status_code == 404
        assert "There is no warning" in text_of(found)


def test_a_warning_is_seen_in_its_own_namespace_only(memory: CascadeMemory):
    recall = memory.acting(namespace="other").recall(TASK)
    memory.acting(namespace="other").reward(recall.episode_id, 0.0, solution=[MISTAKE], source="env")
    (hidden,) = memory.acting(namespace="other").warnings.all()
    browser = mounted(memory, namespaces=["default"], edit=True, actor="ann")
    assert "nme" not in browser.get("/tools/memory/warnings").text
    for query in ({"id": hidden.id}, {"id": hidden.id, "ns": "other"}):
        found = browser.get("/tools/memory/warning", params=query)
        assert found.status_code == 404
        assert "nme" not in found.text
    with door(memory, edit=True) as made:
        person = made.browser()
        (link,) = links_of(person.get("/warnings", params={"ns": "other"}), "warning")
        page = person.get(link)
        assert person.post("/do/retire", form_of(page, "retire")).status_code == 303
        assert "U+" not in text_of(person.get("/audit", params={"ns": "other"}))
    assert memory.acting(namespace="other").warnings.all()[0].state == "retired"


# -- deciding ----------------------------------------------------------------------------------------------------------


def test_a_person_retires_a_warning_and_restores_it(person: Browser, memory: CascadeMemory):
    warning = only(memory)
    page = decide(person, warning, "retire", note="the table has changed")
    assert "This warning is retired" in text_of(page)
    assert "A person has retired it" in text_of(page)
    assert only(memory).state == "retired"
    assert about_to(memory, **CALL) is None
    page = decide(person, warning, "restore")
    assert "Agents get this warning again" in text_of(page)
    assert only(memory).state == "active"
    entries = [(one.action, one.actor, one.subject, one.note) for one in memory.review.audit()][:2]
    assert entries == [("restore", "ann", warning.id, None), ("retire", "ann", warning.id, "the table has changed")]


def test_advice_reaches_the_next_agent_as_it_was_written(person: Browser, memory: CascadeMemory):
    page = decide(person, only(memory), "advise", advice="\r\nthe column\r\nis called name\r\n", note="see the schema")
    assert "Agents see your advice" in text_of(page)
    assert only(memory).advice == "the column\nis called name"
    assert "is called name" in text_of(opened(person, only(memory)))
    advice = about_to(memory, **CALL)
    assert advice is not None
    assert "is called name" in advice.text
    assert about_to(memory, tries=1, **OTHER) is None
    again = decide(person, only(memory), "advise", advice="the column\r\nis called name")
    assert "Nothing was changed" in text_of(again)
    assert "/do/undo" not in again.text


def test_a_decision_is_taken_back_where_it_was_made_and_in_the_audit_log(person: Browser, memory: CascadeMemory):
    warning = only(memory)
    page = decide(person, warning, "retire")
    done = person.post("/do/undo", form_of(page, "undo"))
    assert "taken back" in text_of(person.get(done.headers["location"]))
    assert only(memory).state == "active"
    decide(person, warning, "advise", advice="quote the names")
    log = person.get(AUDIT)
    assert warning.id in links_of(log, "warning")[0]
    assert person.post("/do/undo", form_of(log, "undo")).status_code == 303
    assert only(memory).advice is None


def test_a_warning_whose_failures_are_gone_is_explained(person: Browser, memory: CascadeMemory):
    warning = only(memory)
    page = opened(person, warning)
    memory.forget(everything=True)
    for action, fields in (("retire", {}), ("advise", {"advice": "quote the names"})):
        found = person.post(f"/do/{action}", {**form_of(page, action), **fields})
        assert found.status_code == 404
        assert "there is no warning" in text_of(found)
        assert "Traceback" not in found.text
    assert opened(person, warning).status_code == 404


def test_a_form_without_its_fields_changes_nothing(person: Browser, memory: CascadeMemory):
    form = form_of(opened(person, only(memory)), "advise")
    for fields in ({**form, "advice": " \r\n "}, {**form, "id": "", "advice": "x"}, {**form, "id": "x" * 5_000, "advice": "x"}):
        found = person.post("/do/advise", fields)
        assert found.status_code in (400, 404), text_of(found)
    too_long = person.post("/do/retire", {**form, "note": "n" * 3_000})
    assert too_long.status_code == 400
    assert [one.action for one in memory.review.audit() if one.action != "add"] == []


def test_who_may_only_look_decides_nothing(memory: CascadeMemory, own: Door):
    fail(memory)
    looking = own.browser()
    page = opened(looking, only(memory))
    assert "<form" in page.text  # the choice of the namespace
    assert "/do/" not in page.text
    for action in ("retire", "restore", "advise"):
        found = looking.post(f"/do/{action}", {"id": only(memory).id, "advice": "x", "ns": "default"})
        assert found.status_code == 403
    assert only(memory).state == "active"
    assert only(memory).advice is None


def test_forms_of_other_sites_decide_nothing(person: Browser, memory: CascadeMemory):
    form = form_of(opened(person, only(memory)), "retire")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}):
        assert person.post("/do/retire", form, headers=headers).status_code == 403
    assert person.post("/do/retire", {**form, "form": "x"}, headers=SAME).status_code == 403
    assert person.ask("GET", "/do/retire", params=form).status_code in (404, 405)
    assert only(memory).state == "active"

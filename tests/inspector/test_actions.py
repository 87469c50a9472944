"""What people do in the inspector: each action is done once, is in the audit log with its actor, and can be taken back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from inside import take_names_of_before
from inspecting import SAME, Browser, Door, door, form_of, links_of, mounted, text_of

from cascade_memory import CascadeMemory


@pytest.fixture
def editing(memory: CascadeMemory) -> Iterator[Door]:
    with door(memory, edit=True) as made:
        yield made


def reported(memory: CascadeMemory, task: str = "boil some water", answer: str = "use the oven") -> str:
    recall = memory.recall(task)
    memory.reward(recall.episode_id, 1.0, solution=answer, source="agent")
    return recall.episode_id


def opened(browser: Browser, episode_id: str, page: str = "episode"):
    return browser.get(f"/{page}", params={"id": episode_id})


def submit(browser: Browser, page: object, action: str, **fields: str):
    return browser.post(f"/do/{action}", {**form_of(page, action), **fields})


def test_a_person_corrects_what_an_agent_reported_and_the_next_recall_shows_it(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    browser = editing.browser()
    (link,) = links_of(browser.get("/judge"), "episode")
    done = submit(browser, browser.get(link), "correct", solution="use\r\nthe kettle", note="an oven takes an hour")
    assert done.status_code == 303
    page = browser.get(done.headers["location"])
    assert "You corrected the answer" in text_of(page)
    (case,) = memory.recall("boil some water").cases
    assert case.solution == "use\nthe kettle"
    entry = next(memory.review.audit())
    assert (entry.action, entry.actor, entry.subject, entry.note) == ("correct", "ann", episode_id, "an oven takes an hour")
    history = memory.episodes.outcomes(episode_id=episode_id)
    assert [(one.source, one.withdrawn_at is None) for one in history] == [("agent", False), ("human", True)]
    assert "Nothing waits" in text_of(browser.get("/judge"))


def test_a_report_is_confirmed(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory, answer="use the kettle")
    browser = editing.browser()
    done = submit(browser, opened(browser, episode_id), "confirm")
    assert "You confirmed" in text_of(browser.get(done.headers["location"]))
    assert memory.recall("boil some water").cases[0].solution == "use the kettle"
    assert next(memory.review.audit()).actor == "ann"


def test_a_report_is_rejected(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    browser = editing.browser()
    submit(browser, opened(browser, episode_id), "reject")
    found = memory.episodes.get(episode_id)
    assert found is not None
    assert (found.reward, found.source) == (0.0, "human")
    assert "use the oven" not in [case.solution for case in memory.cases.all()]


def test_a_verdict_is_taken_back_where_it_was_given(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    browser = editing.browser()
    done = submit(browser, opened(browser, episode_id), "reject")
    page = browser.get(done.headers["location"])
    undone = submit(browser, page, "undo")
    assert "taken back" in text_of(browser.get(undone.headers["location"]))
    found = memory.episodes.get(episode_id)
    assert found is not None
    assert found.has_only_agents_word
    assert [entry.action for entry in memory.review.audit()][:2] == ["undo", "reject"]


def test_two_people_who_decide_at_once_do_not_both_decide(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    ann, bob = editing.browser(), editing.browser()
    seen_by_ann, seen_by_bob = opened(ann, episode_id), opened(bob, episode_id)
    assert submit(ann, seen_by_ann, "reject").status_code == 303
    for action, fields in (("confirm", {}), ("reject", {}), ("correct", {"solution": "mine"})):
        refused = submit(bob, seen_by_bob, action, **fields)
        assert refused.status_code == 409, action
        assert "Nothing was changed" in text_of(refused)
    found = memory.episodes.get(episode_id)
    assert found is not None
    assert (found.reward, len(memory.episodes.outcomes(episode_id=episode_id))) == (0.0, 2)


def test_what_the_agent_changed_meanwhile_is_not_confirmed(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    browser = editing.browser()
    page = opened(browser, episode_id)
    memory.reward(episode_id, 1.0, solution="set the house on fire", source="agent", overwrite=True)
    assert submit(browser, page, "confirm").status_code == 409
    assert submit(browser, page, "correct", solution="mine").status_code == 409
    assert "set the house on fire" not in [case.solution for case in memory.cases.all()]


def test_a_case_is_pinned_and_hidden_and_let_go_again(editing: Door, memory: CascadeMemory):
    case = next(iter(memory.cases.all()))
    browser = editing.browser()
    for action, state in (("pin", (True, False)), ("hide", (True, True)), ("unpin", (False, True)), ("unhide", (False, False))):
        done = submit(browser, opened(browser, case.id, "case"), action)
        assert done.status_code == 303
        found = memory.cases.get(case.id)
        assert (found.pinned, found.hidden) == state
        assert 'role="status"' in browser.get(done.headers["location"]).text
    assert [entry.action for entry in memory.review.audit()][:4] == ["unhide", "unpin", "hide", "pin"]


def test_a_case_of_an_actor_in_quarantine_says_why_it_is_not_shown_again(editing: Door, memory: CascadeMemory):
    case_id = memory.acting(actor="eve").add("boil some water", "use the oven", source="env")
    memory.sources.quarantine("eve")
    browser = editing.browser()
    done = submit(browser, opened(browser, case_id, "case"), "unhide")
    assert "its actor is in quarantine" in text_of(browser.get(done.headers["location"]))
    assert memory.cases.get(case_id).hidden


def test_a_hidden_case_is_found_but_not_recalled(editing: Door, memory: CascadeMemory):
    browser, case_id = editing.browser(), memory.recall("cool some mug").cases[0].id
    submit(browser, opened(browser, case_id, "case"), "hide")
    assert case_id not in [case.id for case in memory.recall("cool some mug").cases]
    for address in ("/cases?state=hidden", "/cases", "/cases?sort=use", "/cases?q=mug"):
        assert "never shown" in text_of(browser.get(address)), address
    assert "cool some mug" not in text_of(browser.get("/cases?state=pinned"))


def test_the_solution_of_a_case_is_corrected(editing: Door, memory: CascadeMemory):
    case_id = memory.add("boil some water", "use the oven")
    browser = editing.browser()
    page = opened(browser, case_id, "case")
    assert "use the oven</textarea>" in page.text
    done = submit(browser, page, "correct", solution="use the kettle")
    assert memory.recall("boil some water").cases[0].solution == "use the kettle"
    assert "use the kettle" in text_of(browser.get(done.headers["location"]))
    undone = submit(browser, browser.get(done.headers["location"]), "undo")
    assert undone.status_code == 303
    assert memory.recall("boil some water").cases[0].solution == "use the oven"


def test_forgetting_shows_its_receipt_first(editing: Door, memory: CascadeMemory):
    recall = memory.recall("boil some water")
    case_id = memory.reward(recall.episode_id, 1.0, solution="use the kettle")
    browser = editing.browser()
    (link,) = [one for one in links_of(opened(browser, str(case_id), "case")) if "/forget?" in one]
    preview = browser.get(link)
    assert "Forget this case?" in text_of(preview)
    assert memory.cases.get(str(case_id)).solution == "use the kettle"
    told = memory.forget(case_id, dry_run=True)
    counts = f"Cases{told.cases}Episodes{told.episodes}Recalls{told.recalls}Outcomes{told.outcomes}"
    assert counts in "".join(text_of(preview).split())
    done = submit(browser, preview, "forget", purge="yes")
    assert "It is forgotten" in text_of(done)
    assert str(case_id) not in memory
    assert memory.episodes.get(recall.episode_id) is None
    assert "forgotten: 1 case" in text_of(browser.get("/audit"))


def test_an_episode_is_forgotten(editing: Door, memory: CascadeMemory):
    episode_id = reported(memory)
    browser = editing.browser()
    preview = browser.get("/forget", params={"what": "episode", "id": episode_id})
    submit(browser, preview, "forget")
    assert memory.episodes.get(episode_id) is None


def test_all_that_a_filter_shows_is_forgotten_after_its_receipt(editing: Door, memory: CascadeMemory):
    ids = [memory.add(f"boil water {i}", "use the kettle", metadata={"user": "carla"}) for i in range(3)]
    failed = memory.recall("boil tea", metadata={"user": "carla"}).episode_id
    memory.acting(namespace="other").add("boil water 4", "use the kettle", metadata={"user": "carla"})
    others = len(memory) - 3
    browser = editing.browser()
    assert "Forget all of these" not in browser.get("/cases").text
    filtered = browser.get("/cases", params={"where": '{"user": "carla"}'})
    (link,) = [one for one in links_of(filtered) if "/forget?" in one]
    preview = browser.get(link)
    assert "Cases3Episodes1" in "".join(text_of(preview).split())
    assert len(memory) == others + 3
    assert "It is forgotten" in text_of(submit(browser, preview, "forget", purge="yes"))
    assert not any(case_id in memory for case_id in ids)
    assert memory.episodes.get(failed) is None
    assert (len(memory), memory.acting(namespace="other").stats().cases) == (others, 1)
    entry = next(memory.review.audit())
    assert (entry.action, entry.actor) == ("purge", "ann")
    assert [one.actor for one in memory.review.audit() if one.action == "forget"] == ["ann"]


def test_other_filters_forget_the_cases_that_they_show(editing: Door, memory: CascadeMemory):
    shown, kept = memory.add("boil <i>water</i>", "kettle"), memory.add("cook rice", "pot")
    browser = editing.browser()
    preview = browser.get("/forget", params={"what": "cases", "q": "<i>water", "source": "human"})
    assert form_of(preview, "forget")["q"] == "<i>water"
    submit(browser, preview, "forget")
    assert (shown in memory, kept in memory) == (False, True)


def test_nothing_is_forgotten_that_was_not_seen(editing: Door, memory: CascadeMemory):
    memory.add("boil some water", "use the kettle", metadata={"user": "carla"})
    browser = editing.browser()
    preview = browser.get("/forget", params={"what": "cases", "where": '{"user": "carla"}'})
    memory.add("boil some tea", "use the kettle", metadata={"user": "carla"})
    before = len(memory)
    refused = submit(browser, preview, "forget")
    assert refused.status_code == 409
    assert "other cases match now" in text_of(refused)
    assert browser.post("/do/forget", {**form_of(preview, "forget"), "seen": ""}).status_code == 400
    assert browser.get("/forget", params={"what": "cases"}).status_code == 400
    assert browser.get("/forget", params={"what": "cases", "where": "{"}).status_code == 400
    assert browser.get("/forget", params={"what": "cases", "q": "nothing has this"}).status_code == 404
    assert len(memory) == before
    with door(memory) as looking:
        only = looking.browser()
        assert "Forget all" not in only.get("/cases", params={"where": '{"user": "carla"}'}).text
        assert only.get("/forget", params={"what": "cases", "where": '{"user": "carla"}'}).status_code == 404


def test_the_audit_log_says_who_did_what_and_takes_it_back(
    editing: Door, memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch
):
    take_names_of_before(monkeypatch)
    case = next(iter(memory.cases.all()))
    memory.acting(actor="<b>zoe</b>\u202e").cases.hide(case.id)
    browser = editing.browser()
    page = browser.get("/audit")
    assert "&lt;b&gt;zoe&lt;/b&gt;<mark>U+202E</mark>" in page.text
    submit(browser, page, "undo")
    assert not memory.cases.get(case.id).hidden
    text = text_of(browser.get("/audit"))
    assert text.count("taken back") >= 1
    assert "ann" in text


def test_what_cannot_be_taken_back_says_why(editing: Door, memory: CascadeMemory):
    browser = editing.browser()
    case = next(iter(memory.cases.all()))
    form = form_of(opened(browser, case.id, "case"), "pin")
    for entry in ("nothing", next(memory.review.audit()).id):
        refused = browser.post("/do/undo", {**form, "entry": entry})
        assert refused.status_code == 409
        assert "Nothing was changed" in text_of(refused)


# -- attacks -----------------------------------------------------------------------------------------------------------


ACTIONS = ("confirm", "reject", "correct", "pin", "unpin", "hide", "unhide", "forget", "undo")


def fields_for(memory: CascadeMemory, browser: Browser) -> dict[str, str]:
    """Everything that any action needs, as a page of this visit has it."""
    episode_id = reported(memory)
    page = opened(browser, episode_id)
    entry = next(memory.review.audit())
    return {**form_of(page, "confirm"), "what": "episode", "solution": "mine", "entry": entry.id}


@pytest.mark.parametrize("action", ACTIONS)
def test_no_other_site_can_act(editing: Door, memory: CascadeMemory, action: str):
    browser = editing.browser()
    fields = fields_for(memory, browser)
    before = list(memory.review.audit()), memory.stats()
    without = {name: value for name, value in fields.items() if name != "form"}
    attacks = (
        (fields, {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}),
        (fields, {"Sec-Fetch-Site": "same-site"}),
        (fields, {"Origin": "null"}),
        (fields, {}),
        (without, SAME),
        ({**fields, "form": "0" * 32}, SAME),
        (fields, {**SAME, "Host": "evil.example"}),
        (fields, {**SAME, "Cookie": ""}),
    )
    for data, headers in attacks:
        found = browser.ask("POST", f"/do/{action}", data=data, headers=headers)
        assert found.status_code in (401, 403, 421), (headers, found.status_code)
    assert browser.get(f"/do/{action}", params=fields).status_code == 405
    assert (list(memory.review.audit()), memory.stats()) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_an_inspector_that_only_shows_has_no_forms_and_takes_none(memory: CascadeMemory, action: str):
    with door(memory, edit=True) as editing, door(memory) as looking:
        fields = fields_for(memory, editing.browser())
        before = list(memory.review.audit()), memory.stats()
        browser = looking.browser()
        case = next(iter(memory.cases.all()))
        for page in (opened(browser, fields["id"]), opened(browser, case.id, "case"), browser.get("/audit")):
            assert 'method="post"' not in page.text
        assert browser.post(f"/do/{action}", fields).status_code == 403
        assert (list(memory.review.audit()), memory.stats()) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_nobody_acts_on_another_namespace_by_its_ids(editing: Door, memory: CascadeMemory, action: str):
    case_id = memory.acting(namespace="other").add("a secret task", "a secret solution")
    episode_id = memory.acting(namespace="other").recall("a secret task").episode_id
    memory.acting(namespace="other").reward(episode_id, 1.0, solution="a secret answer", source="agent")
    memory.acting(namespace="other").cases.pin(case_id)
    seen = memory.acting(namespace="other").episodes.get(episode_id)
    assert seen is not None
    browser = editing.browser()
    fields = fields_for(memory, browser)
    entry = next(memory.acting(namespace="other").review.audit()).id
    before = list(memory.acting(namespace="other").review.audit()), memory.acting(namespace="other").stats()
    for one, what in ((case_id, "case"), (episode_id, "episode")):
        found = browser.post(f"/do/{action}", {**fields, "id": one, "what": what, "seen": seen.fingerprint, "entry": entry})
        assert found.status_code in (404, 409), found.status_code
        assert "secret" not in found.text
    assert (list(memory.acting(namespace="other").review.audit()), memory.acting(namespace="other").stats()) == before


def test_a_form_that_lacks_something_changes_nothing(editing: Door, memory: CascadeMemory):
    browser = editing.browser()
    fields = fields_for(memory, browser)
    for action, lacking in (
        ("confirm", "seen"),
        ("correct", "solution"),
        ("correct", "what"),
        ("pin", "id"),
        ("undo", "entry"),
    ):
        found = browser.post(f"/do/{action}", {**fields, lacking: " "})
        assert found.status_code == 400, action
    assert browser.post("/do/everything", fields).status_code == 404


def test_mounted_the_host_says_who_acts(memory: CascadeMemory):
    browser = mounted(memory, edit=True, actor=lambda scope: dict(scope["headers"]).get(b"x-user", b"nobody").decode())
    case = next(iter(memory.cases.all()))
    page = browser.get("/tools/memory/case", params={"id": case.id})
    done = browser.post("/tools/memory/do/pin", form_of(page, "pin"), headers={"X-User": "zoe"})
    assert done.headers["location"].startswith("/tools/memory/case?")
    assert next(memory.review.audit()).actor == "zoe"


def test_people_who_entered_a_token_act_under_their_own_names(memory: CascadeMemory):
    with door(memory, edit=True, token="a-token-of-some-length") as made:
        browser = made.browser(come_in=False)
        browser.post("/enter", {"token": "a-token-of-some-length", "name": "Zoë"})
        case = next(iter(memory.cases.all()))
        submit(browser, opened(browser, case.id, "case"), "pin")
        assert next(memory.review.audit()).actor == "Zoë"


def test_the_rate_decides_what_waits(memory: CascadeMemory):
    for number in range(40):
        reported(memory, task=f"task {number}")
    with door(memory, rate=0.2) as made:
        few = links_of(made.browser().get("/judge"), "episode")
        assert len(few) == len(list(memory.review.to_judge(rate=0.2)))
        assert 0 < len(few) < 40
        assert len(links_of(made.browser().get("/judge?rate=1"), "episode")) == 40

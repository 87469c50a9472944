"""What each page shows."""

from __future__ import annotations

from inspecting import Browser, Door, door, links_of, mounted, text_of

from cascade_memory import CascadeMemory, Ranking, Step, Trajectory
from cascade_memory.inspector.pages_measured import rolling


def test_cases_are_listed_searched_sorted_and_filtered(browser: Browser, memory: CascadeMemory):
    memory.add("clean some pan", "wash it", source="env", metadata={"user": "ann"})
    assert "clean some pan" in text_of(browser.get("/cases"))
    for address, there in (
        ("/cases?q=COOL", "cool some mug"),
        ("/cases?q=fridge+mug", "cool some mug"),
        ("/cases?source=env", "clean some pan"),
        ('/cases?where={"user": "ann"}', "clean some pan"),
    ):
        text = text_of(browser.get(address))
        assert there in text, address
        assert "heat some egg" not in text, address
    assert "No case matches" in text_of(browser.get("/cases?q=nothing+like+it"))
    for sort in ("newest", "oldest", "shown", "successes", "use"):
        text = text_of(browser.get(f"/cases?sort={sort}"))
        assert "cool some mug" in text
        assert "clean some pan" in text
    first = text_of(browser.get("/cases?sort=oldest"))
    assert first.index("cool some mug") < first.index("clean some pan")


def test_the_case_that_was_shown_most_often_comes_first(browser: Browser, memory: CascadeMemory):
    for _ in range(2):
        memory.reward(memory.recall("cool some mug").episode_id, 1.0, solution="put it into the fridge")
    for sort in ("shown", "successes"):
        text = text_of(browser.get(f"/cases?sort={sort}"))
        assert text.index("cool some mug") < text.index("heat some egg")


def test_pages_lead_through_all_cases_once(memory: CascadeMemory):
    memory.add([(f"task {number:03}", f"solution {number}") for number in range(118)])
    with door(memory) as made:
        browser = made.browser()
        for sort in ("newest", "oldest", "shown", "use"):
            seen: list[str] = []
            page = browser.get(f"/cases?sort={sort}")
            while True:
                seen += links_of(page, "case")
                following = [one for one in links_of(page, "cases") if "after=" in one]
                if not following:
                    break
                page = browser.get(following[0])
            assert len(seen) == len(set(seen)) == 120, sort


def test_a_filter_that_is_wrong_is_explained(browser: Browser):
    for where in ("{", "[]", '{"a": {"$near": 1}}', "1"):
        found = browser.get("/cases", params={"where": where})
        assert found.status_code == 400
        assert 'role="alert"' in found.text
    assert browser.get("/cases?after=nonsense").status_code == 400


def test_an_id_finds_its_case(browser: Browser, memory: CascadeMemory):
    (wanted, _) = memory.cases.page().items
    text = text_of(browser.get("/cases", params={"q": wanted.id}))
    assert wanted.query in text
    assert text.count("microwave it") + text.count("put it into the fridge") == 1


def test_a_case_has_its_text_origin_neighbours_and_uses(browser: Browser, memory: CascadeMemory):
    first = memory.recall("cool some cup")
    case_id = memory.reward(first.episode_id, 1.0, solution="put it into the freezer", metadata={"user": "bob"})
    memory.reward(memory.recall("cool some cup").episode_id, 1.0, solution="put it into the freezer", source="human")
    page = browser.get("/case", params={"id": case_id})
    text = text_of(page)
    for there in ("cool some cup", "put it into the freezer", "bob", "cool some mug", "human", "host"):
        assert there in text, there
    assert any(first.episode_id in one for one in links_of(page, "episode"))
    assert "Where it was shown" in text


def test_a_trajectory_is_shown_step_by_step(browser: Browser, memory: CascadeMemory):
    walk = Trajectory(
        [
            Step(thought="Look.", action="open *fridge*", observation="# You see"),
            Step(tool="take", arguments={"x": 1}, failed=True),
        ],
        answer="[done](javascript:alert(1))",
    )
    page = browser.get("/case", params={"id": memory.add("get it", walk)})
    text = text_of(page)
    for there in ("Look.", "open *fridge*", "# You see", 'take({"x": 1})', "failed", "[done](javascript:alert(1))"):
        assert there in text, there
    assert "<em>" not in page.text
    assert "javascript:" not in "".join(links_of(page))


def test_an_episode_shows_the_decision_and_what_came_of_it(browser: Browser, memory: CascadeMemory):
    recall = memory.recall("cool a mug")
    memory.reward(recall.episode_id, 1.0, solution="put it into the fridge")
    memory.reward(recall.episode_id, 0.0, source="human", overwrite=True)
    page = browser.get("/episode", params={"id": recall.episode_id})
    text = text_of(page)
    explained = recall.explain()
    for one in explained.candidates:
        assert one.query in text
        assert f"{one.similarity:.3f}" in text
        assert f"{one.score:.3f}" in text
    for there in ("1 of 2 candidates was shown", "100 %", "replaced", "put it into the fridge", "human"):
        assert there in text, there


def test_an_episode_says_when_it_was_held_out():
    with CascadeMemory(embedder="hashing", ranking=Ranking(holdout=0.999)) as memory, door(memory) as made:
        memory.add("cool some mug", "fridge")
        recall = next(one for one in (memory.recall("cool some mug") for _ in range(10)) if one.arm == "holdout")
        assert "Held out" in text_of(made.browser().get("/episode", params={"id": recall.episode_id}))


def test_the_signals_of_a_candidate_are_drawn(browser: Browser, memory: CascadeMemory):
    recall = memory.recall("cool a mug")
    memory.reward(recall.episode_id, 1.0, solution="put it into the fridge")
    browser.get("/learning")  # loads what was learned
    page = browser.get("/episode", params={"id": recall.episode_id})
    assert 'class="bars"' in page.text
    assert "solution words" in text_of(page)


def test_what_agents_reported_waits_to_be_judged(browser: Browser, memory: CascadeMemory):
    recall = memory.recall("boil some water")
    memory.reward(recall.episode_id, 1.0, solution="use the kettle", source="agent")
    waiting = memory.recall("fry some fish")
    memory.episodes.finish(waiting.episode_id, solution="use a pan")
    text = text_of(browser.get("/judge"))
    assert "boil some water" in text
    assert "fry some fish" in text
    assert "Only the agent itself" in text_of(browser.get("/episode", params={"id": recall.episode_id}))
    assert "Nobody has judged it yet" in text_of(browser.get("/episode", params={"id": waiting.episode_id}))


def test_learning_is_drawn_from_what_was_judged():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.3)) as memory, door(memory) as made:
        memory.add("cool some mug", "fridge")
        for number in range(60):
            recall = memory.recall(f"cool some mug {number}")
            good = bool(recall.cases) or number % 3 == 0
            memory.reward(recall.episode_id, float(good), solution="fridge" if good else None)
        page = made.browser().get("/learning")
        text = text_of(page)
        for there in ("Success over time", "Lift of the memory", "Calibration", "Weights of the signals", "Drift"):
            assert there in text, there
        assert page.text.count("<svg") == 5


def test_health_tells_failures(browser: Browser, memory: CascadeMemory):
    assert "Health ok" in " ".join(text_of(browser.get("/health")).split())
    memory.data.note_failure("reward", ValueError("it was <b>full</b>"))
    text = text_of(browser.get("/health"))
    assert "failing" in text
    assert "it was <b>full</b>" in text


def test_another_namespace_has_its_own_pages(browser: Browser, memory: CascadeMemory):
    odd = "tenants/42: Zoë <b>&?=#"
    memory.acting(namespace=odd).add("a secret task", "a secret solution")
    found = browser.get("/cases", params={"ns": odd})
    assert "a secret task" in text_of(found)
    assert "a secret task" not in text_of(browser.get("/cases"))
    (link,) = links_of(found, "case")
    assert "a secret solution" in text_of(browser.get(link))


def test_the_id_of_another_namespace_is_not_found(browser: Browser, memory: CascadeMemory):
    case_id = memory.acting(namespace="other").add("a secret task", "a secret solution")
    episode_id = memory.acting(namespace="other").recall("a secret task").episode_id
    for page, one in (("case", case_id), ("episode", episode_id), ("case", "nobody"), ("episode", ""), ("case", "x" * 300)):
        found = browser.get(f"/{page}", params={"id": one})
        assert found.status_code in (400, 404)
        assert "secret" not in found.text
    assert browser.get("/cases", params={"q": case_id}).text.count("secret") == 0
    assert browser.get("/cases?ns=nowhere").status_code == 404


def test_a_host_can_show_some_namespaces_only(memory: CascadeMemory):
    memory.acting(namespace="other").add("a secret task", "a secret solution")
    browser = mounted(memory, namespaces=["default"])
    assert "other" not in text_of(browser.get("/tools/memory/cases"))
    found = browser.get("/tools/memory/cases", params={"ns": "other"})
    assert found.status_code == 404
    assert "secret" not in found.text


def test_an_empty_memory_says_so():
    with CascadeMemory(embedder="hashing") as memory, door(memory) as made:
        browser = made.browser()
        assert "no cases yet" in text_of(browser.get("/cases"))
        assert "no episode has been judged yet" in text_of(browser.get("/learning"))
        assert "no episodes yet" in text_of(browser.get("/episodes"))
        assert browser.get("/nowhere").status_code == 404


def test_a_failing_page_tells_no_secrets(own: Door, memory: CascadeMemory):
    browser = own.browser()
    memory.close()
    found = browser.get("/cases")
    assert found.status_code == 503
    assert "MemoryClosed" in found.text
    assert "Traceback" not in found.text


def test_a_curve_has_each_mean_at_the_end_of_its_own_window():
    assert rolling([(1, 0.0), (2, 0.0), (5, 1.0), (6, 1.0)]) == [(2.0, 0.0), (5.0, 0.5), (6.0, 1.0)]

"""A case is trusted no more than what was shown when it was made, and a recall may leave out what is not trusted enough."""

from __future__ import annotations

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Ranking, Trust

TASK = "cool some mug"


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as opened:
        yield opened


def test_a_poisoned_case_passes_its_trust_on_however_often_it_is_imitated(memory: CascadeMemory):
    memory.acting(actor="mallory", channel="mcp").add(TASK, "pour acid over it", source="user")
    for step in range(4):  # each honest episode is shown the one before, and its success is certain
        recall = memory.recall(f"{TASK} {step}", k=1)
        assert recall.cases
        recall.reward(1.0, solution=f"pour acid over it, {step}", source="env")
    assert {case.trust for case in memory.cases.all()} == {1}
    assert memory.recall(TASK, min_trust="judge").cases == ()
    assert len(memory.recall(TASK, k=9, min_trust="user").cases) == 5


def test_a_solution_without_such_lineage_is_trusted_like_its_source(memory: CascadeMemory):
    memory.add("heat some egg", "microwave", source="agent")
    for source in ("judge", "env"):
        with CascadeMemory(embedder="hashing", learn="inline") as alone:
            case_id = alone.recall(TASK).reward(1.0, solution="fridge", source=source)
            assert alone.cases.get(case_id).trust == {"judge": 2, "env": 3}[source]
    recall = memory.recall(TASK, min_trust="judge")  # the agent's case was not shown
    assert recall.cases == ()
    assert memory.cases.get(recall.reward(1.0, solution="fridge", source="env")).trust == 3


def test_a_person_raises_trust_by_adding_the_same(memory: CascadeMemory):
    case_id = memory.add(TASK, "fridge", source="agent")
    assert memory.recall(TASK, min_trust="human").cases == ()
    assert memory.acting(actor="ann").add(TASK, "fridge") == case_id
    assert (memory.cases.get(case_id).trust, memory.cases.get(case_id).source) == (4, "agent")
    assert [case.id for case in memory.recall(TASK, min_trust="human").cases] == [case_id]


def test_the_memory_s_own_least_trust_holds_for_every_recall():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(min_trust="judge")) as memory:
        case_id = memory.add(TASK, "acid", source="user")
        assert memory.recall(TASK).cases == memory.cases.search(TASK, k=5).cases == ()
        with memory.episode(TASK) as session:
            assert session.cases == ()
        assert [case.id for case in memory.recall(TASK, min_trust="agent").cases] == [case_id]


@pytest.mark.parametrize("ranker", ["light", "latest", "similarity", "zero-shot"])
def test_a_crowd_of_untrusted_cases_hides_no_trusted_one(ranker: str):
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False), ranker=ranker, k=1) as memory:
        honest = memory.acting(actor="ann").add(f"{TASK} in the kitchen of the house by the sea", "fridge", metadata={"n": 1})
        crowd = [(f"{TASK} {i}", f"acid {i}", {"n": 1}) for i in range(400)]
        memory.acting(actor="mallory").add(crowd, source="user", progress=False)
        found = [case.id for case in memory.cases.search(TASK, min_trust="judge").cases]
        assert found == [honest]
        for where in (None, {"n": 1}):
            shown = [case.id for case in memory.recall(TASK, min_trust="judge", where=where).cases]
            assert shown == ([] if ranker == "zero-shot" else [honest])


def test_neither_trust_nor_actors_need_another_statement(memory: CascadeMemory):
    memory.add([(f"task {i}", f"solution {i}") for i in range(50)], progress=False)
    memory.recall("task 7").reward(1.0, solution="solution")
    connections = engine_of(memory).parts.ledger.connections
    seen: list[str] = []
    with connections.read() as connection:  # in RAM there is only this one
        connection.set_trace_callback(seen.append)

    def statements(min_trust: str | None = None, **acting: str) -> list[str]:
        seen.clear()
        recall = memory.acting(**acting).recall("task 7", min_trust=min_trust)
        memory.acting(actor=acting.get("actor")).reward(recall.episode_id, 1.0, solution="solution")
        return [one[:30] for one in seen if "FROM change" not in one]  # when the log is read depends on the time

    plain = statements()
    assert any(one.startswith("INSERT INTO outcome") for one in plain)
    assert statements(actor="ann", channel="mcp") == statements(min_trust="host", actor="ann") == plain


def test_cases_that_may_not_be_shown_leave_their_places_to_others():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(candidates=4)) as memory:
        memory.add([(f"{TASK} {i}", "pour acid over it") for i in range(3)], source="agent", progress=False)
        memory.add([(f"{TASK} with a spot {i}", "fridge") for i in range(9)], progress=False)
        considered = memory.recall(TASK, min_trust="human").explain().candidates
        assert len(considered) == 4
        assert all("spot" in one.query for one in considered)

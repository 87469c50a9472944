"""A recall can be rewarded itself, so that its namespace need not be said twice."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import logging
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import AlreadyRewarded, ContentChanged, InvalidInput, MemoryClosed


@pytest.fixture
def memory(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        yield memory


def _broken(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def fail(*_: object, **__: object) -> object:
        raise OSError("out of order")

    monkeypatch.setattr(engine_of(memory).parts.ledger, what, fail)


def test_a_recall_can_be_turned_into_a_dictionary():
    with CascadeMemory(embedder="hashing") as memory:
        assert dataclasses.asdict(memory.recall("cool some mug"))["query"] == "cool some mug"


def test_it_goes_to_the_namespace_of_the_recall(memory: CascadeMemory):
    recall = memory.acting(namespace="kitchen").recall("cool some mug")
    case_id = recall.reward(1.0, solution="fridge", source="human", metadata={"user": "ann"})
    assert case_id is not None
    case = memory.acting(namespace="kitchen").cases.get(case_id)
    assert (case.solution, case.source, case.metadata) == ("fridge", "human", {"user": "ann"})
    with pytest.raises(AlreadyRewarded):
        recall.reward(0.0)
    assert recall.reward(0.0, overwrite=True) is None
    assert memory.acting(namespace="kitchen").stats().cases == 0


def test_what_an_agent_reported_is_confirmed(memory: CascadeMemory):
    recall = memory.recall("cool some mug")
    recall.reward(1.0, solution="fridge", source="agent")
    (seen,) = memory.review.reported()
    with pytest.raises(ContentChanged):
        recall.reward(1.0, source="human", confirms="0" * 20)
    assert recall.reward(1.0, source="human", confirms=seen.fingerprint) is not None


async def test_it_does_not_block_an_event_loop(memory: CascadeMemory):
    recall = await memory.acting(namespace="kitchen").arecall("cool some mug")
    case_id, _ = await asyncio.gather(recall.areward(1.0, solution="fridge"), asyncio.sleep(0))
    assert memory.acting(namespace="kitchen").cases.get(str(case_id)).solution == "fridge"
    with pytest.raises(InvalidInput, match="a search"):
        await memory.cases.search("cool some mug").areward(1.0)


def test_a_search_says_why_it_takes_no_reward(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidInput, match=r"opens no episode.*memory\.recall\(\) opens one"):
        memory.cases.search("cool some mug").reward(1.0)
    _broken(memory, monkeypatch, "candidates")
    memory.add("cool some mug", "fridge")
    with pytest.warns(RuntimeWarning, match="going on without cases"):
        failed = memory.cases.search("cool some mug")
    with pytest.raises(InvalidInput, match="a search"):
        failed.reward(1.0)


@pytest.mark.parametrize(("what", "cases"), [("candidates", 0), ("record", 1)])
async def test_a_failed_recall_warns_and_does_not_stop_the_agent(
    memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch, what: str, cases: int
):
    memory.add("cool some mug", "fridge")
    _broken(memory, monkeypatch, what)
    with pytest.warns(RuntimeWarning, match="could not"):
        failed = memory.recall("cool some mug")
    assert len(failed.cases) == cases
    with pytest.warns(RuntimeWarning, match="drops this reward: its recall failed.*out of order") as warned:
        assert failed.reward(1.0, solution="s") is None
    assert warned[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="drops this reward"):
        assert await failed.areward(1.0, solution="s") is None
    assert memory.stats().rewards == 0


def test_a_recall_keeps_no_memory_open(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "memory", embedder="hashing")
    recall = memory.acting(namespace="kitchen").recall("cool some mug")
    del memory
    gc.collect()
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as again:  # other settings: the first is gone
        with pytest.raises(
            MemoryClosed, match=rf"memory\.acting\(namespace='kitchen'\)\.reward\('{recall.episode_id}', \.\.\.\)"
        ):
            recall.reward(1.0)
        again.acting(namespace=recall.namespace).reward(recall.episode_id, 1.0, solution="fridge")
        late = again.recall("heat some egg")
    with pytest.raises(MemoryClosed, match="is closed"):
        late.reward(1.0)


def test_as_an_object_it_is_what_it_was(memory: CascadeMemory):
    memory.add("cool some mug", "fridge")
    recall = memory.recall("cool some mug")
    assert repr(recall) == f"Recall(1 case, episode_id='{recall.episode_id}')"
    assert copy.copy(recall) == recall == copy.deepcopy(recall)
    assert copy.deepcopy(recall).reward(1.0, solution="fridge") is not None
    assert memory.recall("cool some mug") != recall
    assert recall.cost == copy.deepcopy(recall).cost


def test_a_block_ends_with_the_reward_of_its_recall(memory: CascadeMemory):
    with memory.acting(namespace="kitchen").episode("cool some mug") as episode:
        episode.recall.reward(1.0, solution="fridge")
    assert memory.acting(namespace="kitchen").stats().rewards == 1


# -- what it cost ----------------------------------------------------------------------------------------------------


def test_what_a_recall_cost_stands_on_it(memory: CascadeMemory):
    memory.add("cool some mug", "put it into the fridge")
    recall = memory.recall("cool some mug")
    cost = recall.cost
    assert cost is not None
    assert min(cost.embed, cost.search, cost.rank, cost.write) > 0
    assert cost.milliseconds == pytest.approx(cost.embed + cost.search + cost.rank + cost.write)
    assert cost.characters == len(recall.render())
    assert len(recall.render()) / 5 < cost.tokens < len(recall.render()) / 3
    assert str(cost).endswith(f"{cost.characters} characters, about {cost.tokens} tokens")


def test_a_recall_that_failed_has_no_cost(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    memory.add("cool some mug", "fridge")
    _broken(memory, monkeypatch, "candidates")
    with pytest.warns(RuntimeWarning):
        assert memory.recall("cool some mug").cost is None
    assert memory.report().costs is None


def test_the_report_adds_them_up(memory: CascadeMemory):
    assert memory.report().costs is None
    memory.acting(namespace="kitchen").add("cool some mug", "put it into the fridge")
    recalls = [memory.acting(namespace="kitchen").recall("cool some mug") for _ in range(3)]
    memory.acting(namespace="office").cases.search("another")
    texts = [recalls[0].render(), recalls[0].render(), recalls[1].render(), recalls[2].render(lambda cases: "my own")]
    spent = [recall.cost for recall in recalls]
    costs = memory.acting(namespace="kitchen").report().costs
    assert costs is not None
    assert (costs.recalls, costs.rendered) == (3, 2)
    assert costs.characters == 2 * len(texts[0])
    assert costs.tokens == sum(one.tokens for one in spent[:2] if one)
    assert costs.write == pytest.approx(sum(one.write for one in spent if one))
    everywhere = memory.report(everywhere=True).costs
    assert everywhere is not None
    assert everywhere.recalls == 4
    assert "over 3 recalls and searches of this process" in str(costs)
    assert "tokens (estimated)" in str(costs)
    assert str(costs) not in str(memory.acting(namespace="kitchen").report())  # which anybody can reproduce from the ledger


# -- logs ------------------------------------------------------------------------------------------------------------


def test_one_line_says_what_happened_without_a_word_of_it(memory: CascadeMemory, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="cascade_memory")
    memory.add("SECRET cool some mug", "SECRET fridge")
    recall = memory.acting(namespace="default").recall("SECRET cool some mug")
    case_id = recall.reward(1.0, solution="SECRET freezer", source="human")
    recall.reward(1.0, solution="SECRET freezer", source="human")
    memory.cases.search("SECRET egg")
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 4
    assert lines[0].startswith(f"recall in namespace 'default': 1 of 1 shown, episode '{recall.episode_id}', ")
    assert lines[1] == f"reward 1 from human in namespace 'default': episode '{recall.episode_id}', case '{case_id}'"
    assert lines[2].startswith("repeated reward in namespace 'default'")
    assert lines[3].startswith("search in namespace 'default': 1 of ")
    assert "SECRET" not in caplog.text
    assert all(one.levelno == logging.INFO for one in caplog.records)

"""Reward tickets: what a host that uses them meets."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Tickets, Trust, restore
from cascade_memory.errors import AlreadyRewarded, InvalidInput, TicketRefused, UnknownEpisode
from cascade_memory.ledger.redeeming import KEY

TASK = "cool some mug"


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(tickets=True)) as memory:
        yield memory


def test_a_user_needs_the_ticket_of_the_recall_and_the_host_does_not(memory):
    recall = memory.recall(TASK)
    for source in ("user", "agent"):
        with pytest.raises(TicketRefused, match=f"from '{source}' needs the ticket"):
            memory.reward(recall.episode_id, 1.0, source=source)
    assert memory.stats().rewards == 0
    case_id = memory.reward(recall.episode_id, 1.0, solution="fridge", source="user", ticket=recall.ticket)
    assert memory.cases.get(case_id).solution == "fridge"
    memory.reward(memory.recall(TASK).episode_id, 1.0)
    assert memory.stats().rewards == 2


def test_a_ticket_that_is_given_is_checked_whatever_the_source(memory):
    recall, other = memory.recall(TASK), memory.recall("heat some egg")
    with pytest.raises(TicketRefused, match="not a ticket of episode"):
        memory.reward(recall.episode_id, 1.0, ticket=other.ticket)
    memory.reward(recall.episode_id, 1.0, ticket=recall.ticket)


def test_the_same_report_twice_changes_nothing_and_another_is_refused(memory):
    recall = memory.recall(TASK)
    first = memory.reward(recall.episode_id, 1.0, solution="fridge", source="user", ticket=recall.ticket)
    assert memory.reward(recall.episode_id, 1.0, solution="oven", source="user", ticket=recall.ticket) == first
    assert memory.cases.get(first).solution == "fridge"
    for options in ({}, {"overwrite": True}):
        with pytest.raises(TicketRefused, match="was redeemed before"):
            memory.reward(recall.episode_id, 0.0, source="user", ticket=recall.ticket, **options)
    memory.reward(recall.episode_id, 0.0, overwrite=True)  # the host has the last word
    assert memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket) is None
    assert memory.episodes.get(recall.episode_id).reward == 0.0


def test_a_reward_that_is_refused_leaves_its_ticket_good(memory):
    recall = memory.recall(TASK)
    with pytest.raises(InvalidInput):
        memory.reward(recall.episode_id, 2.0, source="user", ticket=recall.ticket)
    with pytest.raises(UnknownEpisode):
        memory.reward("nowhere", 1.0, source="host")
    memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)


def test_two_recalls_of_one_episode_have_a_ticket_each_and_one_outcome(memory):
    first = memory.recall(TASK)
    second = memory.recall("and now the mug", episode_id=first.episode_id)
    memory.reward(first.episode_id, 1.0, source="user", ticket=first.ticket)
    with pytest.raises(AlreadyRewarded):
        memory.reward(first.episode_id, 0.0, source="user", ticket=second.ticket)
    assert memory.reward(first.episode_id, 1.0, source="user", ticket=second.ticket) is None


def test_no_other_ticket_of_an_episode_changes_what_its_source_said(memory):
    first = memory.recall(TASK)
    more = list[str]()
    while len(more) < 4:  # those of one millisecond are the same one
        time.sleep(0.002)
        more.append(
            memory.episodes.ticket_of(first.episode_id) if more else memory.recall(TASK, episode_id=first.episode_id).ticket
        )
    about = {"source": "user", "overwrite": True}
    memory.reward(first.episode_id, 1.0, ticket=first.ticket, **about)
    with pytest.raises(TicketRefused, match="another ticket of episode"):
        memory.reward(first.episode_id, 0.0, ticket=more[0], **about)
    memory.reward(first.episode_id, 1.0, ticket=more[1], **about)
    assert memory.episodes.get(first.episode_id).reward == 1.0
    memory.reward(first.episode_id, 0.0, overwrite=True)  # the host has the last word
    for value, ticket in ((0.5, more[0]), (0.0, more[0])):
        with pytest.raises(TicketRefused):
            memory.reward(first.episode_id, value, ticket=ticket, **about)
    memory.reward(first.episode_id, 1.0, ticket=more[2], **about)
    assert memory.episodes.get(first.episode_id).reward == 0.0
    memory.reward(first.episode_id, 0.5, source="judge", overwrite=True, ticket=more[3])  # another source, if the host says so
    assert memory.episodes.get(first.episode_id).reward == 0.5


def test_the_recall_and_the_session_bring_their_ticket_along(memory):
    recall = memory.recall(TASK)
    recall.reward(1.0, source="user")
    recall.reward(0.0, overwrite=True)  # the host redeems nothing
    asyncio.run(memory.recall(TASK).areward(1.0, source="user"))
    with memory.episode(TASK) as episode:
        episode.reward(1.0, solution="fridge", source="user")
    assert memory.stats().rewards == 3


def test_what_the_host_itself_judges_needs_none():
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=True), reward_fn=lambda episode: 1.0) as memory:
        with memory.episode(TASK) as episode:
            episode.solution = "fridge"
        proposed = memory.review.propose("heat some egg", "microwave")
        memory.review.confirm(proposed, seen=memory.episodes.get(proposed).fingerprint)
        assert memory.stats().cases == 2


def test_every_reward_may_need_one():
    everybody = Tickets(sources=("host", "human", "env", "judge", "user", "agent"))
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=everybody)) as memory:
        recall = memory.recall(TASK)
        with pytest.raises(TicketRefused):
            memory.reward(recall.episode_id, 1.0)
        recall.reward(1.0)
        assert memory.stats().rewards == 1


def test_a_ticket_can_be_made_for_an_episode_that_an_adapter_opened(memory):
    recall = memory.recall(TASK)
    memory.reward(recall.episode_id, 1.0, source="user", ticket=memory.episodes.ticket_of(recall.episode_id))
    with pytest.raises(UnknownEpisode):
        memory.episodes.ticket_of("nowhere")


def test_without_tickets_nothing_is_made_and_none_is_taken(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        recall = memory.recall(TASK)
        assert recall.ticket is None
        assert not memory.acting(channel="mcp").episodes.needs_ticket("user")
        memory.reward(recall.episode_id, 1.0, source="user")
        with pytest.raises(InvalidInput, match="opened without tickets"):
            memory.reward(recall.episode_id, 1.0, ticket="whatever")
        with pytest.raises(InvalidInput, match="opened without tickets"):
            memory.episodes.ticket_of(recall.episode_id)
        assert engine_of(memory).parts.ledger.facts.get(KEY) is None


def test_neither_a_search_nor_a_recall_that_failed_has_one(memory, monkeypatch):
    assert memory.cases.search(TASK).ticket is None
    monkeypatch.setattr(engine_of(memory).parts.embedder, "embed", lambda texts: 1 / 0)
    with pytest.warns(RuntimeWarning):
        assert memory.recall(TASK).ticket is None


def test_a_ledger_that_makes_no_ticket_does_not_stop_the_agent(memory, monkeypatch):
    def fails() -> str:
        raise OSError("the disk is gone")

    memory.add(TASK, "fridge")
    monkeypatch.setattr(engine_of(memory).parts.ledger.facts, "running", fails)
    recall = memory.recall(TASK)
    assert (recall.ticket, len(recall.cases)) == (None, 1)
    assert memory.health().failures == {"ticket": 1}


def test_processes_share_the_key_and_what_was_redeemed(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as memory:
        recall = memory.recall(TASK)
        memory.reward(memory.recall("other").episode_id, 1.0)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as later:
        later.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
    with (
        CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as still_later,
        pytest.raises(TicketRefused, match="redeemed before"),
    ):
        still_later.reward(recall.episode_id, 0.0, source="user", ticket=recall.ticket, overwrite=True)


def test_no_copy_takes_a_ticket_of_the_original(tmp_path: Path):
    """What was redeemed after the backup would be redeemed again, for another value, in a memory that was put back."""
    with CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as memory:
        recall = memory.recall(TASK)
        memory.data.backup(tmp_path / "backup")
        memory.data.export(tmp_path / "all.jsonl")
        memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
        key = engine_of(memory).parts.ledger.facts.key().encode()
    restore(tmp_path / "backup", tmp_path / "memory", replace=True)
    for place in ("memory", "backup"):
        assert not any(key in file.read_bytes() for file in (tmp_path / place).rglob("*") if file.is_file())
        with CascadeMemory(tmp_path / place, embedder="hashing", trust=Trust(tickets=True)) as copy:
            with pytest.raises(TicketRefused, match="not a ticket"):
                copy.reward(recall.episode_id, 0.0, source="user", ticket=recall.ticket, overwrite=True)
            copy.recall("something new").reward(1.0, source="user")
    assert key not in (tmp_path / "all.jsonl").read_bytes()


def test_a_ticket_is_shown_nowhere(memory, caplog):
    caplog.set_level(logging.DEBUG)
    memory.add(TASK, "fridge")
    recall = memory.recall(TASK)
    with pytest.raises(TicketRefused) as refused:
        memory.reward("another", 1.0, source="user", ticket=recall.ticket)
    memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
    page = recall._repr_html_() + memory._repr_html_()
    shown = [repr(recall), page, recall.render(), str(recall.explain()), str(refused.value), caplog.text, str(memory.health())]
    assert recall.ticket not in "".join(shown)
    assert len(recall.ticket) == 48


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tickets": "yes"}, "tickets must be True, False or"),
        ({"tickets": 3600}, "tickets must be True, False or"),
    ],
)
def test_other_settings_are_refused(options, why):
    with pytest.raises(InvalidInput, match=why):
        Trust(**options)


def test_settings_of_tickets_are_checked():
    assert Tickets(lifetime=timedelta(minutes=5)).seconds == 300.0
    for wrong in ({"lifetime": 0}, {"lifetime": -1.0}, {"lifetime": "a day"}, {"sources": "user"}, {"sources": ["nobody"]}):
        with pytest.raises(InvalidInput):
            Tickets(**wrong)


def test_a_ticket_that_was_redeemed_brings_nothing_new_without_a_word():
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=True)) as memory:
        recall = memory.recall("cool a mug")
        memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
        memory.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
        with pytest.raises(TicketRefused):
            memory.reward(recall.episode_id, 1.0, source="user", solution="fridge", ticket=recall.ticket)

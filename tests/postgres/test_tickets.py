"""Reward tickets in a database: many machines share the key, and no moved memory takes it along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Trust
from cascade_memory.assembly.move import move
from cascade_memory.errors import TicketRefused

TASK = "cool some mug"


def _refused(memory: CascadeMemory, episode_id: str, ticket: str | None, why: str) -> None:
    with pytest.raises(TicketRefused, match=why):
        memory.reward(episode_id, 0.0, source="user", ticket=ticket, overwrite=True)


def test_a_ticket_of_one_process_is_redeemed_in_another_and_moves_nowhere(tmp_path: Path, new_database: Callable[[], str]):
    url = new_database()
    with CascadeMemory(url, embedder="hashing", trust=Trust(tickets=True)) as here:
        recall, other = here.recall(TASK), here.recall(TASK)
        key = engine_of(here).parts.ledger.facts.key()
    with CascadeMemory(url, embedder="hashing", trust=Trust(tickets=True, reward_caps={"user": 1})) as there:
        assert engine_of(there).parts.ledger.facts.key() == key
        redeem, eve = {"source": "user", "ticket": recall.ticket}, there.acting(actor="eve")
        case_id = eve.reward(recall.episode_id, 1.0, solution="fridge", **redeem)
        assert eve.reward(recall.episode_id, 1.0, **redeem) == case_id
        _refused(there, recall.episode_id, recall.ticket, "redeemed before")
        eve.reward(other.episode_id, 1.0, solution="oven", source="user", ticket=other.ticket)
        assert (there.stats().cases, there.stats().unkept["capped"]) == (1, 1)
        there.forget(episode_id=other.episode_id)
        again = there.recall(TASK, episode_id=other.episode_id)
        _refused(there, other.episode_id, other.ticket, "not a ticket of episode")
        there.reward(other.episode_id, 0.0, source="user", ticket=again.ticket)
    move(url, tmp_path / "moved")
    with CascadeMemory(tmp_path / "moved", embedder="hashing", trust=Trust(tickets=True)) as moved:
        _refused(moved, recall.episode_id, recall.ticket, "not a ticket of episode")
        assert engine_of(moved).parts.ledger.facts.key() != key

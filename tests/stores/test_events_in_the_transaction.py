"""Who keeps rows of its own hears of outcomes, cases and episodes inside the transaction, and is bound to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from failed_once import blame, settlement
from inside import engine_of
from warning_rows import rows_in

from cascade_memory import CascadeMemory
from cascade_memory.capabilities import CAPABILITIES
from cascade_memory.capabilities.warnings.records import WarningDecision
from cascade_memory.domain.actions import NewAction
from cascade_memory.ledger import cases, events, forgetting, outcomes, reports, restoring, room, verifications
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.observer import Observer, Standing, WhyGone, WhyWithdrawn

_TELL = (cases, forgetting, restoring, outcomes, reports, room, verifications)


class Listener(Observer):
    """Writes down what it hears; it may fail once."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.fails = False

    def on_settled(self, tx: Connection, now: Standing) -> None:
        (value,) = tx.execute("SELECT value FROM outcome WHERE key = ? AND withdrawn_at IS NULL", (now.outcome,)).fetchone()
        self.heard.append(f"settled {value:g}{'' if now.replaced is None else ', in place of another'}")
        if self.fails:
            raise RuntimeError("no room for my row")

    def on_withdrawn(self, tx: Connection, outcome: int, episode: int, why: WhyWithdrawn) -> None:
        assert tx.execute("SELECT 1 FROM outcome WHERE key = ? AND episode = ?", (outcome, episode)).fetchone() == (1,)
        self.heard.append(f"withdrawn: {why}")

    def on_case_gone(self, tx: Connection, cases: Sequence[int], why: WhyGone) -> None:
        self.heard.append(f"{len(cases)} case {why}")

    def on_episode_gone(self, tx: Connection, episode: int) -> None:
        assert tx.execute("SELECT count(*) FROM outcome WHERE episode = ?", (episode,)).fetchone()[0]
        self.heard.append("episode gone")


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    one = Listener()
    for module in _TELL:
        monkeypatch.setattr(module, "HEARING", (*events.HEARING, one))
    return one


def _inline() -> CascadeMemory:
    return CascadeMemory(embedder="hashing", learn="inline")


def test_the_order_in_which_they_hear_is_fixed():
    names = [type(one).__module__.split(".")[2] for one in events.OBSERVERS]
    assert names == [name for name in CAPABILITIES if name in names]
    assert [type(one).__name__ for one in events.HEARING] == ["Warnings"]
    assert all(module.HEARING is events.HEARING for module in _TELL)


def test_what_happens_to_an_outcome_and_its_case_is_heard(listener: Listener):
    with _inline() as memory:
        episode = memory.recall("a task").episode_id
        memory.reward(episode, 1.0, solution="s")
        assert listener.heard == ["settled 1"]
        memory.reward(episode, 0.0, overwrite=True)
        assert listener.heard[1:] == ["withdrawn: replaced", "1 case forgotten", "settled 0, in place of another"]
        memory.forget(episode_id=episode)
        assert listener.heard[4:] == ["episode gone"]


def test_a_verdict_that_is_taken_back_is_heard(listener: Listener):
    with _inline() as memory:
        episode = memory.recall("a task").episode_id
        memory.episodes.finish(episode, solution="s")
        memory.acting(actor="ann").review.confirm(episode, seen=memory.episodes.get(episode).fingerprint)
        (entry, *_) = memory.review.audit()
        listener.heard.clear()
        memory.review.undo(entry.id)
        assert listener.heard == ["withdrawn: taken back", "1 case forgotten"]


def test_nothing_is_stored_if_one_of_them_fails(listener: Listener):
    with _inline() as memory:
        episode = memory.recall("a task").episode_id
        listener.fails = True
        with pytest.raises(RuntimeError, match="no room for my row"):
            memory.reward(episode, 1.0, solution="s")
        assert (memory.stats().rewards, memory.stats().cases, memory.episodes.get(episode).status) == (0, 0, "open")
        listener.fails = False
        assert memory.reward(episode, 1.0, solution="s")


def test_a_failure_of_the_same_warning_keeps_what_was_decided_about_it_when_its_outcome_is_replaced():
    with _inline() as memory:
        ledger = engine_of(memory).parts.ledger
        episode = memory.recall("a task").episode_id
        ledger.settle(settlement(episode, 0.0, blame=blame()))
        (before,) = rows_in(ledger).failures(1)
        rows_in(ledger).decide(1, before.blame.group, WarningDecision(), NewAction(kind="retire", actor="ann"))
        ledger.settle(settlement(episode, 0.5, blame=blame(), overwrite=True))
        (after,) = rows_in(ledger).failures(1)
        assert after.key > before.key
        assert rows_in(ledger).decisions(1)[before.blame.group].retired
        ledger.settle(settlement(episode, 1.0, overwrite=True))
        assert (rows_in(ledger).failures(1), rows_in(ledger).decisions(1)) == ([], {})
        assert ledger.maintenance.orphans() == {}

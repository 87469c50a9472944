"""Tickets that were forged, altered, cut, replayed, taken elsewhere, or that have expired; and clocks that somebody sets."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import engine_of

from cascade_memory import CascadeMemory, Tickets, Trust
from cascade_memory.domain.digests import Times, new_key, read, sign
from cascade_memory.errors import TicketRefused
from cascade_memory.ledger import running

TASK = "cool some mug"
_HOUR = 3600.0


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(tickets=True)) as memory:
        yield memory


def _refused(memory: CascadeMemory, episode_id: str, ticket: object) -> str:
    with pytest.raises(TicketRefused) as refused:
        memory.reward(episode_id, 1.0, source="user", ticket=ticket)  # type: ignore[arg-type]
    if isinstance(ticket, str) and len(ticket.strip()) > 8:
        assert ticket not in str(refused.value)
    return str(refused.value)


def _about(memory: CascadeMemory, episode_id: str) -> list[str]:
    """Return what a ticket of an episode is signed for."""
    return [episode_id, "default", repr(memory.episodes.get(episode_id).opened_at)]


def test_every_altered_character_is_noticed(memory):
    recall = memory.recall(TASK)
    good = recall.ticket
    for place, char in enumerate(good):
        for other in "Aa9-_" if char not in "Aa" else "Bb8-_":
            if other != char:
                _refused(memory, recall.episode_id, good[:place] + other + good[place + 1 :])
    memory.reward(recall.episode_id, 1.0, source="user", ticket=good)


@pytest.mark.parametrize(
    "altered",
    [
        lambda good: "",
        lambda good: " ",
        lambda good: good[:-1],
        lambda good: good[1:],
        lambda good: good + "A",
        lambda good: f" {good}",
        lambda good: f"{good}\n",
        lambda good: f"{good}=",
        lambda good: good.swapcase(),
        lambda good: good[::-1],
        lambda good: good * 1_000,
        lambda good: "A" * 10_000_000,
        lambda good: "A" * 48,
        lambda good: "=" * 48,
        lambda good: "\x00" * 48,
        lambda good: "\ud800" * 48,
        lambda good: "🦙" * 12,
        lambda good: good.replace(good[20], "\u0391", 1),  # a Greek letter that looks like A
        lambda good: "".join(chr(ord(char) + 0xFEE0) for char in good),  # fullwidth, which some programs normalise
        lambda good: base64.urlsafe_b64encode(b"\xff" * 36).decode(),
        lambda good: good.encode(),
        lambda good: 1,
        lambda good: [good],
        lambda good: {"ticket": good},
    ],
    ids=range(24),
)
def test_what_is_no_ticket_is_refused(memory, altered: Callable[[str], object]):
    recall = memory.recall(TASK)
    wrong = altered(recall.ticket)
    if wrong == recall.ticket:
        pytest.skip("this one reads the same")
    began = time.perf_counter()
    assert "not a ticket of episode" in _refused(memory, recall.episode_id, wrong)
    assert time.perf_counter() - began < 1.0
    assert memory.stats().rewards == 0


def test_the_times_of_a_ticket_cannot_be_moved(memory):
    recall = memory.recall(TASK)
    raw = base64.urlsafe_b64decode(recall.ticket)
    for start in (0, 6):
        later = raw[:start] + b"\xff" * 6 + raw[start + 6 :]
        assert "not a ticket" in _refused(memory, recall.episode_id, base64.urlsafe_b64encode(later).decode())


def test_a_ticket_is_good_for_its_own_episode_and_namespace_alone(memory, tmp_path: Path):
    mine, other = memory.recall(TASK), memory.recall(TASK)
    theirs = memory.acting(namespace="theirs").recall(TASK)
    _refused(memory, other.episode_id, mine.ticket)
    _refused(memory.acting(namespace="theirs"), theirs.episode_id, mine.ticket)
    _refused(memory, mine.episode_id, theirs.ticket)
    _refused(memory, theirs.episode_id, theirs.ticket)  # in a namespace that is not the episode's
    same = memory.acting(namespace="theirs").recall(TASK, episode_id="e")
    _refused(memory, "e", same.ticket)
    with CascadeMemory(tmp_path / "elsewhere", embedder="hashing", trust=Trust(tickets=True)) as elsewhere:
        again = elsewhere.recall(TASK, episode_id=mine.episode_id)
        _refused(elsewhere, again.episode_id, mine.ticket)
        _refused(memory, mine.episode_id, again.ticket)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("redeemed", [False, True])
def test_the_ticket_of_a_forgotten_episode_is_not_good_for_a_new_one_with_its_id(memory, value, redeemed):
    old = memory.recall(TASK, episode_id="order 7")
    if redeemed:
        memory.reward("order 7", 1.0, source="user", ticket=old.ticket)
    memory.forget(episode_id="order 7")
    with pytest.raises(TicketRefused, match="not a ticket of episode"):
        memory.reward("order 7", 1.0, source="user", ticket=old.ticket)
    new = memory.recall(TASK, episode_id="order 7")
    with pytest.raises(TicketRefused, match=r"not a ticket of episode 'order 7'.*was forgotten"):
        memory.reward("order 7", value, source="user", ticket=old.ticket)
    assert memory.episodes.get("order 7").status == "open"
    memory.reward("order 7", value, source="user", ticket=new.ticket)
    assert memory.episodes.get("order 7").reward == value


def test_an_id_that_the_memory_made_may_be_named_again_as_well(memory):
    old = memory.recall(TASK)
    memory.forget(episode_id=old.episode_id)
    new = memory.recall(TASK, episode_id=old.episode_id)
    _refused(memory, old.episode_id, old.ticket)
    memory.reward(old.episode_id, 1.0, source="user", ticket=new.ticket)


def test_all_tickets_of_one_episode_are_good_for_it(memory):
    """Also of recalls that open the same episode at once: one of them does."""
    start, tickets = threading.Barrier(4), list[str]()

    def ask() -> None:
        start.wait()
        tickets.append(memory.recall(TASK, episode_id="run").ticket)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ticket in (*tickets, memory.recall(TASK, episode_id="run").ticket, memory.episodes.ticket_of("run")):
        memory.reward("run", 1.0, source="user", ticket=ticket)


def test_what_is_refused_says_nothing_about_which_episodes_there_are(memory):
    recall, theirs = memory.recall(TASK), memory.acting(namespace="theirs").recall(TASK)
    said = {_refused(memory, one, recall.ticket[::-1]).replace(one, "") for one in ("nowhere", theirs.episode_id)}
    said.add(_refused(memory, recall.episode_id, recall.ticket[::-1]).replace(recall.episode_id, ""))
    assert len(said) == 1


def test_a_confirmation_code_is_no_ticket(memory):
    recall = memory.recall(TASK)
    key, until = engine_of(memory).parts.ledger.facts.key(), Times(time.time() + 60, 60.0)
    about = _about(memory, recall.episode_id)
    _refused(memory, recall.episode_id, sign(key, "forget", about, until))
    _refused(memory, recall.episode_id, sign(new_key(), "reward", about, until))
    memory.reward(recall.episode_id, 1.0, source="user", ticket=sign(key, "reward", about, until))


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3), st.text(), st.text())
@settings(deadline=None, max_examples=50)
def test_no_two_purposes_share_a_signature(about, others, purpose, another):
    key, until = "0" * 64, Times(100.0, 50.0)
    token = sign(key, purpose, about, until)
    found = read(key, another, others, token)
    assert (found is not None) == ((purpose, about) == (another, others))


@given(st.text())
@settings(deadline=None, max_examples=200)
def test_no_text_is_a_token(text):
    assert read("0" * 64, "reward", ["e", "default"], text) is None


def test_of_many_who_redeem_at_once_one_does(tmp_path: Path):
    """Each of eight threads in two memories reports another value with the same ticket: exactly one value counts."""
    options = {"embedder": "hashing", "trust": Trust(tickets=True), "learn": "off"}
    with CascadeMemory(tmp_path / "memory", **options) as memory:
        recall = memory.recall(TASK)
        done: list[float] = []

        def redeem(value: float) -> None:
            try:
                memory.reward(recall.episode_id, value, source="user", ticket=recall.ticket, overwrite=True)
                done.append(value)
            except TicketRefused:
                pass

        threads = [threading.Thread(target=redeem, args=(number / 8,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [memory.episodes.get(recall.episode_id).reward] == done


# -- clocks ------------------------------------------------------------------------------------------------------------


class Clocks:
    """The wall clock, which anybody may set, and the clock of the boot, which only goes on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.real, self.ahead, self.boot, self._began = 0.0, 0.0, "one", time.time()
        patch.setattr(time, "time", lambda: self._began + self.real + self.ahead)
        patch.setattr(running, "clock", lambda: 1_000.0 + self.real)
        patch.setattr(running, "boot", lambda: self.boot)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def hourly(clocks: Clocks, tmp_path: Path) -> Iterator[CascadeMemory]:
    options = {"embedder": "hashing", "learn": "inline", "deadline": None}
    with CascadeMemory(tmp_path / "memory", trust=Trust(tickets=Tickets(lifetime=_HOUR)), **options) as memory:
        yield memory


def test_a_ticket_expires(hourly: CascadeMemory, clocks: Clocks):
    early, late = hourly.recall(TASK), hourly.recall(TASK)
    clocks.real = _HOUR - 1
    hourly.reward(early.episode_id, 1.0, source="user", ticket=early.ticket)
    clocks.real = _HOUR + 1
    for ticket, episode_id in ((late.ticket, late.episode_id), (early.ticket, early.episode_id)):
        assert "has expired" in _refused(hourly, episode_id, ticket)
    hourly.reward(late.episode_id, 1.0)  # the host goes by nobody's clock


@pytest.mark.parametrize("back", [_HOUR, 365 * 24 * _HOUR])
def test_a_wall_clock_that_is_set_back_makes_no_ticket_good_again(hourly: CascadeMemory, clocks: Clocks, back: float):
    recall = hourly.recall(TASK)
    clocks.real, clocks.ahead = 2 * _HOUR, -back
    assert "has expired" in _refused(hourly, recall.episode_id, recall.ticket)


def test_after_a_reboot_the_wall_clock_counts(hourly: CascadeMemory, clocks: Clocks):
    """The running time does not know how long the machine was off."""
    recall = hourly.recall(TASK)
    clocks.boot, clocks.real = "two", 2 * _HOUR
    assert "has expired" in _refused(hourly, recall.episode_id, recall.ticket)


def test_whatever_the_clocks_do_a_redeemed_ticket_stays_redeemed(hourly: CascadeMemory, clocks: Clocks):
    """A clock that jumps ahead clears nothing away that a clock set back would then let in again."""
    recall = hourly.recall(TASK)
    hourly.reward(recall.episode_id, 1.0, source="user", ticket=recall.ticket)
    clocks.ahead = 30 * 24 * _HOUR
    other = hourly.recall(TASK)
    hourly.reward(other.episode_id, 1.0, source="user", ticket=other.ticket)
    for ahead in (0.0, -_HOUR, -30 * 24 * _HOUR):
        clocks.ahead = ahead
        said = _refused_value(hourly, recall)
        assert "redeemed before" in said


def _refused_value(memory: CascadeMemory, recall: object) -> str:
    with pytest.raises(TicketRefused) as refused:
        memory.reward(recall.episode_id, 0.0, source="user", ticket=recall.ticket, overwrite=True)  # type: ignore[attr-defined]
    return str(refused.value)


def test_what_is_remembered_of_redeemed_tickets_is_cleared_away_in_time(hourly: CascadeMemory, clocks: Clocks):
    facts = engine_of(hourly).parts.ledger.facts
    for _ in range(20):
        hourly.recall(TASK).reward(1.0, source="user")
    assert len(facts.names("signed:spent:")) == 20
    clocks.real = 3 * _HOUR
    hourly.recall(TASK).reward(1.0, source="user")
    assert len(facts.names("signed:spent:")) == 1


def test_a_key_that_somebody_edited_is_made_anew(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as memory:
        recall = memory.recall(TASK)
        engine_of(memory).parts.ledger.facts.set("signed:key", "")
    with CascadeMemory(tmp_path / "memory", embedder="hashing", trust=Trust(tickets=True)) as memory:
        _refused(memory, recall.episode_id, recall.ticket)
        empty = sign("", "reward", _about(memory, recall.episode_id), Times(time.time() + 60, 60.0))
        _refused(memory, recall.episode_id, empty)
        memory.recall(TASK).reward(1.0, source="user")

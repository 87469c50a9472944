"""A reward finds its episode by the trace; what is noted, and what is refused."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from in_traces import RUNS, SPAN, TRACE, host, run, span

from cascade_memory import CascadeMemory, Trust
from cascade_memory.capabilities.traces.verbs import Span
from cascade_memory.errors import AlreadyRewarded, CascadeError, InvalidInput, TicketRefused, UnknownEpisode

OTHER = "1111111111111111"


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        yield memory


def recalled(memory: CascadeMemory, query: str = "cool some mug", **options: Any) -> str:
    with span(**options):
        return memory.recall(query).episode_id


# -- what is noted -------------------------------------------------------------------------------------------------------


def test_a_recall_notes_the_span_that_surrounds_it(memory: CascadeMemory):
    episode = recalled(memory)
    assert memory.traces.of(episode) == [Span("opentelemetry", TRACE, SPAN)]
    assert [one.id for one in memory.traces.episodes(TRACE)] == [episode]
    assert memory.health().ok


def test_a_recall_notes_the_run_that_surrounds_it_as_langsmith_writes_it(memory: CascadeMemory):
    with run():
        episode = memory.recall("cool some mug").episode_id
    assert memory.traces.of(episode) == [Span("langsmith", *RUNS)]
    assert [one.id for one in memory.traces.episodes(RUNS[0].upper())] == [episode]


def test_a_recall_inside_both_notes_both(memory: CascadeMemory):
    ids = SimpleNamespace(trace_id=int(TRACE, 16), span_id=int(SPAN, 16), is_valid=True)
    tree = SimpleNamespace(trace_id=RUNS[0], id=RUNS[1])
    with host("opentelemetry.trace", get_current_span=lambda: SimpleNamespace(get_span_context=lambda: ids)):
        sys.modules["langsmith.run_helpers"] = SimpleNamespace(get_current_run_tree=lambda: tree)  # type: ignore[assignment]
        episode = memory.recall("cool some mug").episode_id
    assert {one.host for one in memory.traces.of(episode)} == {"opentelemetry", "langsmith"}
    for trace in (TRACE, RUNS[0]):
        assert [one.id for one in memory.traces.episodes(trace)] == [episode]


def test_a_search_and_a_recall_that_nothing_surrounds_note_nothing(memory: CascadeMemory):
    with span():
        memory.cases.search("cool some mug")
    with span(is_valid=False):
        memory.recall("cool some mug")
    with host("langsmith.run_helpers", get_current_run_tree=lambda: None):
        memory.recall("cool some mug")
    nothing = object()
    with host("opentelemetry.trace", get_current_span=lambda: nothing, INVALID_SPAN=nothing):
        memory.recall("cool some mug")
    assert memory.traces.episodes(TRACE) == []
    assert not any(memory.traces.of(one.id) for one in memory.episodes.all())
    assert memory.health().ok


def test_recalls_of_one_episode_note_each_span_once(memory: CascadeMemory):
    for span_id in (SPAN, SPAN, OTHER):
        with span(span_id=span_id):
            memory.recall("cool some mug", episode_id="e1")
    assert [one.span_id for one in memory.traces.of("e1")] == [SPAN, OTHER]
    assert [one.id for one in memory.traces.episodes(TRACE)] == ["e1"]


def test_a_session_notes_the_span_in_which_its_block_begins(memory: CascadeMemory):
    session = memory.episode("cool some mug")
    with span(), session:
        pass
    assert [one.span_id for one in memory.traces.of(session.id)] == [SPAN]


def test_an_awaited_recall_notes_its_span(memory: CascadeMemory):
    async def awaited() -> str:
        with span():
            return (await memory.arecall("cool some mug")).episode_id

    assert [one.span_id for one in memory.traces.of(asyncio.run(awaited()))] == [SPAN]


def _broken() -> Any:
    raise RuntimeError("the host is broken")


@pytest.mark.parametrize(
    "functions",
    [
        {"get_current_run_tree": _broken},
        {"get_current_run_tree": object},
        {"get_current_run_tree": lambda: SimpleNamespace(trace_id="x", id="y")},
        {"get_current_run_tree": lambda: SimpleNamespace(trace_id=RUNS[0], id=None)},
    ],
)
def test_a_host_that_fails_does_not_disturb_the_recall_and_is_counted(memory: CascadeMemory, functions: dict[str, Any]):
    memory.add("cool some mug", "put it into the fridge")
    with host("langsmith.run_helpers", **functions):
        recall = memory.recall("cool some mug")
    assert recall.error is None
    assert len(recall.cases) == 1
    assert memory.health().failures == {"trace": 1}
    assert memory.traces.of(recall.episode_id) == []


@pytest.mark.parametrize("value", [2**128, -1, "x", None])
def test_ids_that_no_span_can_have_are_not_stored(memory: CascadeMemory, value: Any):
    ids = SimpleNamespace(trace_id=value, span_id=value, is_valid=True)
    with host("opentelemetry.trace", get_current_span=lambda: SimpleNamespace(get_span_context=lambda: ids)):
        recall = memory.recall("cool some mug")
    assert recall.error is None
    assert memory.traces.of(recall.episode_id) == []


def test_a_host_that_is_being_imported_is_no_failure(memory: CascadeMemory):
    with host("langsmith.run_helpers"):
        assert memory.recall("cool some mug").error is None
    assert memory.health().ok


# -- the reward ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", [TRACE, TRACE.upper(), f" {TRACE}\n", "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"])
@pytest.mark.parametrize("span_id", [None, SPAN, OTHER, RUNS[1]])
def test_any_span_of_the_trace_finds_its_episode(memory: CascadeMemory, trace: str, span_id: str | None):
    episode = recalled(memory)
    case = memory.reward(trace_id=trace, span_id=span_id, value=1.0, solution="put it into the fridge")
    found = memory.episodes.get(episode)
    assert case is not None
    assert found is not None
    assert (found.status, found.reward) == ("settled", 1.0)


def test_an_awaited_reward_finds_it_as_well(memory: CascadeMemory):
    episode = recalled(memory)
    assert asyncio.run(memory.areward(trace_id=TRACE, value=0.0)) is None
    assert memory.episodes.get(episode).reward == 0.0  # type: ignore[union-attr]


def test_the_same_verdict_twice_changes_nothing_and_another_one_replaces_it(memory: CascadeMemory):
    episode = recalled(memory)
    memory.reward(trace_id=TRACE, value=1.0, solution="put it into the fridge")
    memory.reward(trace_id=TRACE, value=1.0, solution="put it into the fridge")
    with pytest.raises(AlreadyRewarded):
        memory.reward(trace_id=TRACE, value=0.0)
    memory.reward(trace_id=TRACE, value=0.0, overwrite=True)
    assert [one.value for one in memory.episodes.outcomes(episode_id=episode)] == [1.0, 0.0]


def test_of_several_episodes_the_span_decides(memory: CascadeMemory):
    first, second = recalled(memory), recalled(memory, "heat some egg", span_id=OTHER)
    with pytest.raises(InvalidInput, match="has 2 episodes: pass the span_id=") as refused:
        memory.reward(trace_id=TRACE, value=1.0)
    assert all(word in str(refused.value) for word in (first, second, SPAN, OTHER))
    with pytest.raises(InvalidInput, match="not one of them alone has recalled in the span 2222222222222222"):
        memory.reward(trace_id=TRACE, span_id="2" * 16, value=1.0)
    memory.reward(trace_id=TRACE, span_id=OTHER.upper(), value=0.0)
    assert [one.id for one in memory.episodes.pending()] == [first]
    memory.reward(trace_id=TRACE, span_id=SPAN, value=0.0)
    assert memory.episodes.pending() == []


def test_two_episodes_of_one_span_are_told_apart_by_nothing_but_their_ids(memory: CascadeMemory):
    recalled(memory), recalled(memory)
    with pytest.raises(InvalidInput, match="2 episodes, and not one of them alone has recalled in the span"):
        memory.reward(trace_id=TRACE, span_id=SPAN, value=1.0)
    assert len(memory.traces.episodes(TRACE, SPAN)) == 2


def test_a_sentence_names_no_more_than_five_of_many_episodes(memory: CascadeMemory):
    for number in range(7):
        recalled(memory, span_id=f"{number + 1:016x}")
    with pytest.raises(InvalidInput, match=r"and 2 more$"):
        memory.reward(trace_id=TRACE, value=1.0)


def test_an_episode_whose_run_was_cancelled_does_not_stand_in_the_way(memory: CascadeMemory):
    memory.end(recalled(memory), status="cancelled")
    second = recalled(memory, span_id=OTHER)
    memory.reward(trace_id=TRACE, value=0.0)
    assert memory.episodes.get(second).status == "settled"  # type: ignore[union-attr]


def test_a_trace_that_is_unknown_here_is_told_so(memory: CascadeMemory):
    recalled(memory)
    for trace in ("a" * 32, RUNS[0]):
        with pytest.raises(UnknownEpisode, match="no episode of this namespace has recalled in the trace"):
            memory.reward(trace_id=trace, value=1.0)


def test_a_trace_of_another_namespace_is_out_of_reach(memory: CascadeMemory):
    episode = recalled(memory)
    elsewhere = memory.acting(namespace="elsewhere")
    assert elsewhere.traces.episodes(TRACE) == []
    with pytest.raises(UnknownEpisode):
        elsewhere.traces.of(episode)
    with pytest.raises(UnknownEpisode):
        elsewhere.reward(trace_id=TRACE, value=1.0)
    own = recalled(elsewhere)
    elsewhere.reward(trace_id=TRACE, value=0.0)
    assert [one.id for one in memory.episodes.pending()] == [episode]
    assert elsewhere.episodes.get(own).status == "settled"  # type: ignore[union-attr]


def test_a_trace_opens_no_door_that_a_ticket_closes():
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=True)) as memory:
        recalled(memory)
        with pytest.raises(TicketRefused):
            memory.reward(trace_id=TRACE, value=1.0, source="user")


@pytest.mark.parametrize(
    "names",
    [
        {"episode_id": "e", "trace_id": TRACE},
        {"episode_id": "e", "span_id": SPAN},
        {"span_id": SPAN},
        {},
        {"trace_id": ""},
        {"trace_id": SPAN},
        {"trace_id": TRACE + "0"},
        {"trace_id": TRACE.replace("4", "g")},
        {"trace_id": TRACE.replace("4", "\N{ARABIC-INDIC DIGIT FOUR}")},
        {"trace_id": "4bf92f3577b34da6-a3ce929d0e0e4736"},
        {"trace_id": 7},
        {"trace_id": int(TRACE, 16)},
        {"trace_id": TRACE, "span_id": "0"},
        {"trace_id": TRACE, "span_id": SPAN + "00"},
        {"trace_id": TRACE, "span_id": b"x"},
    ],
)
def test_what_names_no_episode_is_refused_with_a_sentence(memory: CascadeMemory, names: dict[str, Any]):
    recalled(memory)
    with pytest.raises(InvalidInput, match=r"episode_id|trace_id|span_id"):
        memory.reward(**names, value=1.0)
    assert len(memory.episodes.pending()) == 1


def test_a_reward_needs_a_value(memory: CascadeMemory):
    episode = recalled(memory)
    for names in ({"episode_id": episode}, {"trace_id": TRACE}):
        with pytest.raises(CascadeError, match="reward must be a number"):
            memory.reward(**names)

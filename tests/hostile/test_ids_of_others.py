"""What a namespace learns about ids of another one: nothing, but that an id for a new episode is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warned import MISTAKE

from cascade_memory import CascadeMemory, Retention, Trust
from cascade_memory.errors import CascadeError, UnknownEpisode

NOWHERE = "nowhere"
Asking = Callable[[CascadeMemory, str], Any]

EPISODES: dict[str, Asking] = {
    "reward": lambda memory, one: memory.reward(one, 1.0),
    "reward of an agent": lambda memory, one: memory.reward(one, 0.0, source="agent", solution="s", overwrite=True),
    "reward with a ticket": lambda memory, one: memory.reward(one, 1.0, ticket="A" * 48),
    "reward that confirms": lambda memory, one: memory.reward(one, 1.0, confirms="0" * 16),
    "finish": lambda memory, one: memory.episodes.finish(one, solution="s"),
    "correct": lambda memory, one: memory.review.correct(one, "s"),
    "confirm": lambda memory, one: memory.review.confirm(one, seen="0" * 16),
    "reject": lambda memory, one: memory.review.reject(one, seen="0" * 16),
    "discard": lambda memory, one: memory.episodes.discard(one),
    "forget": lambda memory, one: memory.forget(episode_id=one),
    "preview": lambda memory, one: memory.forget(episode_id=one, dry_run=True),
    "get_episode": lambda memory, one: memory.episodes.get(one),
    "ticket_of": lambda memory, one: memory.episodes.ticket_of(one),
    "decisions": lambda memory, one: memory.episodes.decisions(one),
    "outcomes": lambda memory, one: memory.episodes.outcomes(episode_id=one),
    "check": lambda memory, one: memory.warnings.check(one, "rm x"),
    "latest": lambda memory, one: memory.episodes.latest(f"thread of {one}"),
}
CASES: dict[str, Asking] = {
    "get": lambda memory, one: memory.cases.get(one),
    "correct": lambda memory, one: memory.review.correct(one, "s"),
    "pin": lambda memory, one: memory.cases.pin(one),
    "unpin": lambda memory, one: memory.cases.unpin(one),
    "hide": lambda memory, one: memory.cases.hide(one),
    "unhide": lambda memory, one: memory.cases.unhide(one),
    "forget": lambda memory, one: memory.forget(one),
    "forget many": lambda memory, one: memory.forget([memory.add("q", "s"), one]),
    "preview": lambda memory, one: memory.forget(one, dry_run=True),
    "bring_back": lambda memory, one: memory.cases.bring_back(one),
    "outcomes": lambda memory, one: memory.episodes.outcomes(case_id=one),
    "shown_in": lambda memory, one: memory.cases.shown_in(one),
    "neighbours": lambda memory, one: memory.cases.neighbours(one),
}
WARNINGS: dict[str, Asking] = {
    "get_warning": lambda memory, one: memory.warnings.get(one),
    "retire": lambda memory, one: memory.warnings.retire(one),
    "restore_warning": lambda memory, one: memory.warnings.restore(one),
    "advise": lambda memory, one: memory.warnings.advise(one, "stop"),
}
ENTRIES: dict[str, Asking] = {"undo": lambda memory, one: memory.review.undo(one)}


def _said(ask: Asking, memory: CascadeMemory, one: str) -> str:
    try:
        answer = repr(ask(memory, one))
    except CascadeError as error:
        answer = f"{type(error).__name__}: {error}"
    return answer.replace(one, NOWHERE)


@pytest.mark.parametrize("tickets", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_an_id_of_another_namespace_is_answered_like_one_that_does_not_exist(tmp_path: Path, on_disk: bool, tickets: bool):
    options: dict[str, Any] = {"embedder": "hashing", "learn": "inline"}
    options |= {"trust": Trust(tickets=tickets), "retention": Retention(max_cases=2)}
    with CascadeMemory(*([tmp_path / "memory"] if on_disk else []), **options) as memory:
        theirs: dict[str, Any] = {"namespace": "theirs"}
        solved, failed = (memory.acting(**theirs).recall("a task", thread_id="t").episode_id for _ in range(2))
        case = memory.acting(**theirs).reward(solved, 1.0, solution="s")
        memory.acting(**theirs).reward(failed, 0.0, solution=[MISTAKE], source="env")
        waiting = memory.acting(**theirs).review.propose("another", "s")
        (warning,) = memory.acting(**theirs).warnings.all()
        assert memory.acting(**theirs).cases.pin(case)
        evicted = memory.acting(**theirs).add("to be evicted", "s")
        memory.acting(**theirs).add("and another", "s")
        entry = next(iter(memory.acting(**theirs).review.audit())).id
        open_one = (
            memory.acting(**theirs).recall("an open task", thread_id="thread of order 7", episode_id="order 7").episode_id
        )
        before = [
            list(memory.acting(**theirs).episodes.all()),
            list(memory.acting(**theirs).cases.all()),
            list(memory.acting(**theirs).review.audit()),
        ]
        for asking, ids in (
            (EPISODES, (solved, failed, waiting, open_one)),
            (CASES, (case, evicted)),
            (WARNINGS, (warning.id,)),
            (ENTRIES, (entry,)),
        ):
            for name, ask in asking.items():
                unknown = _said(ask, memory, NOWHERE)
                assert {_said(ask, memory, one) for one in ids} == {unknown}, name
        assert before == [
            list(memory.acting(**theirs).episodes.all()),
            list(memory.acting(**theirs).cases.all()),
            list(memory.acting(**theirs).review.audit()),
        ]


def test_a_client_over_mcp_learns_no_more():
    pytest.importorskip("mcp")
    from cascade_memory.mcp_server.verbs import Verbs

    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        theirs = {"namespace": "theirs"}
        waiting, case = memory.acting(**theirs).review.propose("a task", "s"), memory.acting(**theirs).add("q", "s")
        for verbs in (Verbs(memory), Verbs(memory, trusted=True, actor="ann")):
            for ask in (
                lambda one, of=verbs: of.report_outcome(one, 1.0),
                lambda one, of=verbs: of.report_outcome(one, 1.0, confirms="0" * 16),
                lambda one, of=verbs: of.check_action(one, "t"),
                lambda one, of=verbs: of.episode(one),
                lambda one, of=verbs: of.case(one),
                lambda one, of=verbs: of.forget_cases([one]),
                lambda one, of=verbs: of.forget_cases([one], "A" * 48),
            ):
                said = {_said(lambda _, one, ask=ask: ask(one), memory, one) for one in (NOWHERE, waiting, case)}
                assert len(said) == 1, said


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_id_that_is_taken_is_refused_without_a_word_about_whose_it_is(tmp_path: Path, on_disk: bool):
    """What remains: ids are unique in the whole memory, so who names an id for a new episode learns that it is taken."""
    with CascadeMemory(*([tmp_path / "memory"] if on_disk else []), embedder="hashing") as memory:
        memory.acting(namespace="theirs").recall("a secret task", episode_id="order 7", metadata={"user": "zoe"})
        with pytest.raises(UnknownEpisode, match="'order 7' is taken") as refused:
            memory.recall("a task", episode_id="order 7")
        assert not any(word in str(refused.value) for word in ("theirs", "secret", "zoe"))
        assert memory.episodes.get("order 7") is None
        assert memory.acting(namespace="theirs").episodes.get("order 7").query == "a secret task"
        memory.acting(namespace="theirs").forget(episode_id="order 7")
        assert memory.recall("a task", episode_id="order 7").episode_id == "order 7"

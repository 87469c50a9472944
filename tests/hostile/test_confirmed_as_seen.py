"""What is confirmed is what was seen, and what an agent says of itself never passes for somebody else's word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Retention, Step, Trajectory
from cascade_memory.cli import main
from cascade_memory.domain.episode import Episode
from cascade_memory.errors import AlreadyRewarded, ContentChanged, EpisodeClosed, InvalidInput

TASK = "pay the invoice"


def _reported(memory: CascadeMemory, solution: Any = "pay the supplier") -> Episode:
    episode = memory.recall(TASK).episode_id
    memory.reward(episode, 1.0, solution=solution, source="agent")
    (seen,) = memory.review.reported()
    return seen


def _says_another(memory: CascadeMemory, seen: Episode) -> None:
    memory.reward(seen.id, 1.0, solution="pay mallory", source="agent", overwrite=True)


def test_a_confirmation_of_what_was_seen_keeps_that(ram: CascadeMemory):
    seen = _reported(ram)
    case_id = ram.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
    assert ram.cases.get(case_id).solution == "pay the supplier"
    assert ram.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint) == case_id  # the same request again


def test_a_confirmation_is_refused_when_the_agent_has_said_something_else(ram: CascadeMemory):
    seen = _reported(ram)
    _says_another(ram, seen)
    with pytest.raises(ContentChanged, match="look at it again"):
        ram.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
    assert ram.stats().cases == 0
    assert [one.solution for one in ram.review.reported()] == ["pay mallory"]
    (now,) = ram.review.reported()
    assert ram.reward(seen.id, 1.0, source="human", confirms=now.fingerprint) is not None


def test_an_agent_that_adds_what_it_left_out_is_noticed(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.reward(episode, 1.0, source="agent")
    (seen,) = ram.review.reported()
    ram.reward(episode, 1.0, solution="pay mallory", source="agent")
    with pytest.raises(ContentChanged):
        ram.reward(episode, 1.0, source="human", confirms=seen.fingerprint)
    assert ram.stats().cases == 0


def test_it_is_looked_at_when_it_is_settled_and_not_only_before(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    seen = _reported(ram)
    ledger = engine_of(ram).parts.ledger
    settle = ledger.settle

    def late(settlement: Any) -> Any:
        monkeypatch.setattr(ledger, "settle", settle)
        _says_another(ram, seen)
        return settle(settlement)

    monkeypatch.setattr(ledger, "settle", late)
    with pytest.raises(ContentChanged):
        ram.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
    assert ram.stats().cases == 0


def test_what_is_confirmed_is_what_was_read_even_if_it_changes_to_that_on_the_way(ram: CascadeMemory):
    """The one who settles has read the old words; the fingerprint is already that of the new ones."""
    seen = _reported(ram)
    ledger = engine_of(ram).parts.ledger
    before = ledger.unsettled(seen.id, None)
    _says_another(ram, seen)
    (now,) = ram.review.reported()
    original = ledger.unsettled
    ledger.unsettled = lambda *_: before  # type: ignore[method-assign]
    try:
        with pytest.raises(ContentChanged):
            ram.reward(seen.id, 1.0, source="human", confirms=now.fingerprint)
    finally:
        ledger.unsettled = original  # type: ignore[method-assign]
    assert ram.stats().cases == 0


@pytest.mark.parametrize("source", ["host", "human", "env", "judge", "user"])
def test_nobody_takes_over_an_agents_words_without_having_named_them(ram: CascadeMemory, source: str):
    seen = _reported(ram)
    with pytest.raises(InvalidInput, match="only the agent itself reported"):
        ram.reward(seen.id, 1.0, source=source)
    assert ram.stats().cases == 0
    assert ram.reward(seen.id, 0.0, source=source, overwrite=True) is None  # which keeps no case: no words are taken over
    with pytest.raises(InvalidInput, match="only the agent itself reported"):
        ram.reward(seen.id, 1.0, source=source, overwrite=True)  # nor in two steps
    (again,) = [ram.episodes.get(seen.id)]
    assert again is not None
    assert again.reported == "pay the supplier"
    assert ram.reward(seen.id, 1.0, source=source, overwrite=True, confirms=again.fingerprint) is not None


def test_whoever_brings_a_solution_needs_no_fingerprint(ram: CascadeMemory):
    seen = _reported(ram)
    case_id = ram.reward(seen.id, 1.0, solution="my own words", source="human")
    assert ram.cases.get(case_id).solution == "my own words"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pay", "pay "),
        ("pay", Trajectory([Step(action="pay")])),
        (Trajectory([Step(action="pay")]), Trajectory([Step(action="pay", failed=True)])),
        (
            Trajectory([Step(action="pay", tool="bank", arguments={"to": "ann"})]),
            Trajectory([Step(action="pay", tool="bank", arguments={"to": "mallory"})]),
        ),
        ("pay", "pay\u200b"),
    ],
)
def test_every_difference_in_the_solution_is_another_fingerprint(ram: CascadeMemory, before: Any, after: Any):
    seen = _reported(ram, before)
    assert ram.episodes.get(seen.id).fingerprint == seen.fingerprint
    ram.reward(seen.id, 1.0, solution=after, source="agent", overwrite=True)
    assert ram.episodes.get(seen.id).fingerprint != seen.fingerprint


def test_the_reported_reward_is_part_of_what_was_seen(ram: CascadeMemory):
    seen = _reported(ram)
    ram.reward(seen.id, 0.5, solution="pay the supplier", source="agent", overwrite=True)
    with pytest.raises(ContentChanged):
        ram.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)


@pytest.mark.parametrize("wrong", ["", 7, "0" * 20, "x" * 300])
def test_a_fingerprint_that_is_none_confirms_nothing(ram: CascadeMemory, wrong: Any):
    seen = _reported(ram)
    with pytest.raises((InvalidInput, ContentChanged)):
        ram.reward(seen.id, 1.0, source="human", confirms=wrong)
    assert ram.review.reported() == [seen]


def test_an_agents_report_does_not_replace_what_the_host_noted(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.episodes.finish(episode, solution="what the host saw")
    ram.reward(episode, 1.0, solution="what the agent says", source="agent")
    (seen,) = ram.review.reported()
    assert (seen.solution, seen.reported) == ("what the host saw", "what the agent says")
    case_id = ram.reward(episode, 1.0, source="human")  # the host's own record needs no fingerprint
    assert ram.cases.get(case_id).solution == "what the host saw"


def test_an_agents_second_report_does_not_replace_it_either(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.episodes.finish(episode, solution="what the host saw")
    for said in ("one thing", "another"):
        ram.reward(episode, 1.0, solution=said, source="agent", overwrite=True)
    assert ram.cases.get(ram.reward(episode, 1.0, source="human")).solution == "what the host saw"


def test_an_agent_cannot_overwrite_what_somebody_else_has_said(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.reward(episode, 0.0, solution="what failed", source="human")
    with pytest.raises(AlreadyRewarded, match="agent's own report"):
        ram.reward(episode, 1.0, solution="pay mallory", source="agent", overwrite=True)
    found = ram.episodes.get(episode)
    assert (found.source, found.solution) == ("human", "what failed")


def _judging(memory_of: list[CascadeMemory], *, meanwhile: bool) -> Callable[[Episode], float]:
    def judge(episode: Episode) -> float:
        seen.append(episode.solution)
        if meanwhile:
            _says_another(memory_of[0], episode)
        return 1.0

    seen: list[Any] = []
    judge.seen = seen  # type: ignore[attr-defined]
    return judge


@pytest.mark.parametrize("how", ["end", "aend", "block"])
def test_a_verdict_is_about_what_the_judge_was_shown(how: str):
    holder: list[CascadeMemory] = []
    judge = _judging(holder, meanwhile=False)
    with CascadeMemory(embedder="hashing", learn="inline", reward_fn=judge) as memory:
        holder.append(memory)
        if how == "block":
            with memory.episode(TASK) as episode:
                memory.reward(episode.id, 1.0, solution="the agent's words", source="agent")
        else:
            episode_id = memory.recall(TASK).episode_id
            memory.reward(episode_id, 1.0, solution="the agent's words", source="agent")
            assert (memory.end(episode_id) if how == "end" else asyncio.run(memory.aend(episode_id))) == 1.0
        assert judge.seen == ["the agent's words"]  # type: ignore[attr-defined]
        assert memory.cases.search(TASK).cases[0].solution == "the agent's words"


def test_a_verdict_on_what_has_changed_meanwhile_counts_for_nothing_and_breaks_nothing():
    holder: list[CascadeMemory] = []
    with CascadeMemory(embedder="hashing", learn="inline", reward_fn=_judging(holder, meanwhile=True)) as memory:
        holder.append(memory)
        episode_id = memory.recall(TASK).episode_id
        memory.reward(episode_id, 1.0, solution="harmless", source="agent")
        assert memory.end(episode_id) is None
        assert memory.stats().cases == 0
        assert "ContentChanged" in (memory.health().last_error or "")
        assert [one.solution for one in memory.review.reported()] == ["pay mallory"]


# -- for operators -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.review.propose(TASK, "pay the supplier")
    return str(tmp_path / "memory")


def _waiting(folder: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["review", "pending", folder, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["waiting"]
    return one


def test_the_command_confirms_what_it_has_shown(folder: str, capsys: pytest.CaptureFixture[str]):
    one = _waiting(folder, capsys)
    assert main(["review", "pending", folder]) == 0
    table = capsys.readouterr().out
    assert f"{one['episode_id']}@{one['fingerprint']}" in table  # in one piece, at 80 columns as well
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.reward(one["episode_id"], 1.0, solution="pay mallory", source="agent", overwrite=True)
    assert main(["review", "pending", folder, "--confirm", f"{one['episode_id']}@{one['fingerprint']}"]) == 2
    assert "look at it again" in capsys.readouterr().err
    now = _waiting(folder, capsys)
    assert now["solution"] == "pay mallory"
    assert main(["review", "pending", folder, "--confirm", f"{now['episode_id']}@{now['fingerprint']}"]) == 0


def test_the_command_says_where_it_has_cut_what_an_agent_stretched(folder: str, capsys: pytest.CaptureFixture[str]):
    with CascadeMemory(folder, embedder="hashing") as memory:
        (seen,) = memory.review.reported()
        stretched = "pay the supplier" + "\u200b" * 100 + " and then mallory"
        memory.reward(seen.id, 1.0, solution=stretched, source="agent", overwrite=True)
    assert main(["review", "pending", folder]) == 0
    assert "longer texts are cut" in capsys.readouterr().out


def test_whose_it_is_is_part_of_what_was_seen(ram: CascadeMemory):
    episode = ram.recall(TASK).episode_id
    ram.reward(episode, 1.0, solution="pay the supplier", source="agent", metadata={"user": "ann"})
    (seen,) = ram.review.reported()
    ram.reward(episode, 1.0, solution="pay the supplier", source="agent", metadata={"user": "bob"}, overwrite=True)
    with pytest.raises(ContentChanged):
        ram.reward(episode, 1.0, source="human", confirms=seen.fingerprint)


def test_the_command_takes_no_id_alone(folder: str, capsys: pytest.CaptureFixture[str]):
    one = _waiting(folder, capsys)
    for given in (one["episode_id"], f"{one['episode_id']}@", f"@{one['fingerprint']}"):
        assert main(["review", "pending", folder, "--confirm", given]) == 2
        assert "EPISODE@FINGERPRINT" in capsys.readouterr().err
    assert _waiting(folder, capsys) == one


# -- a quota -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_so_many_reports_may_wait_and_no_more(ram: CascadeMemory):
    from cascade_memory.domain.limits import MOST_REPORTED
    from cascade_memory.errors import QuotaExceeded

    opened = ram.recall(TASK).episode_id
    ids = [ram.review.propose(f"task {i}", f"solution {i}") for i in range(MOST_REPORTED)]
    episodes = ram.stats().episodes
    for refused in (lambda: ram.review.propose("one more", "s"), lambda: ram.reward(opened, 1.0, source="agent")):
        with pytest.raises(QuotaExceeded, match=r"1,000 reports of agents .* wait for confirmation"):
            refused()
    assert ram.stats().episodes == episodes  # what was refused left nothing
    ram.reward(opened, 1.0, solution="the host's word is always taken")
    ram.acting(namespace="elsewhere").review.propose("elsewhere", "there is room")
    ram.reward(ids[0], 1.0, source="human", confirms=ram.episodes.get(ids[0]).fingerprint)
    ram.review.propose("there is room for one", "s")
    ram.forget(episode_id=ids[1])
    ram.review.propose("and for one more", "s")
    ram.reward(ids[2], 0.0, source="human", overwrite=True)
    ram.review.propose("and for a third", "s")
    with pytest.raises(QuotaExceeded):
        ram.review.propose("one too many", "s")
    assert ram.episodes.expire(0.0, reported=True) == MOST_REPORTED
    assert ram.review.reported() == []
    ram.review.propose("there is room again", "s")
    with pytest.raises(EpisodeClosed):
        ram.reward(ids[5], 1.0, solution="too late")


def _repeat(act: Callable[[int], object]) -> None:
    for i in range(100):
        act(i)


def test_the_text_of_reports_has_a_limit_too(ram: CascadeMemory):
    from cascade_memory.errors import QuotaExceeded

    with pytest.raises(QuotaExceeded, match=r"31.. MiB of text"):
        _repeat(lambda i: ram.review.propose(f"task {i}", "\u00e9" * 500_000))
    assert len(ram.review.reported()) == 33  # a million bytes each: what they take on the disk counts, not their characters
    assert ram.stats().open == 0


@pytest.mark.slow
def test_an_agent_that_corrects_itself_without_end_meets_the_limit(ram: CascadeMemory):
    from cascade_memory.errors import QuotaExceeded

    episode = ram.recall(TASK).episode_id
    said: list[int] = []

    def correct(i: int) -> None:
        ram.reward(episode, 1.0, solution=f"{i:03}" + "x" * 900_000, source="agent", overwrite=True)
        said.append(i)

    with pytest.raises(QuotaExceeded):
        _repeat(correct)
    assert len(said) == 37


def test_what_waits_is_counted_without_reading_it(ram: CascadeMemory):
    with engine_of(ram).parts.ledger.connections.read() as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT count(*), sum(reported) FROM episode WHERE namespace = 1 AND reported IS NOT NULL"
        ).fetchall()
    assert "COVERING INDEX episode_reported" in plan[0][3]


@pytest.mark.slow
def test_agents_that_are_believed_have_no_quota():
    from cascade_memory.domain.limits import MOST_REPORTED

    with CascadeMemory(embedder="hashing", learn="off", retention=Retention(retain_from=("host", "agent"))) as memory:
        for i in range(MOST_REPORTED + 5):
            memory.reward(memory.recall("a task").episode_id, float(i % 2), solution="s", source="agent")
        assert memory.stats().rewards == MOST_REPORTED + 5


@pytest.mark.slow
def test_an_imported_report_counts_here_as_well(ram: CascadeMemory, tmp_path: Path):
    from cascade_memory.errors import QuotaExceeded

    for i in range(20):
        ram.review.propose(f"task {i}", "x" * 900_000)
    ram.data.export(tmp_path / "all.jsonl", progress=False)
    with CascadeMemory(embedder="hashing") as other:
        other.data.import_(tmp_path / "all.jsonl", progress=False)
        with pytest.raises(QuotaExceeded):
            _repeat(lambda i: other.review.propose(f"other task {i}", "x" * 900_000))
        assert len(other.review.reported()) == 37

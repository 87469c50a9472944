"""Who asked, reported or added, and through which door, is stored with everything; content decides none of it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from in_databases import rows_of
from inside import take_names_of_before

from cascade_memory import CascadeMemory
from cascade_memory.domain.trust import CHANNELS, LEVELS
from cascade_memory.errors import InvalidInput

TASK = "cool some mug"


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", actor="service") as opened:
        yield opened


def test_every_verb_says_who_and_how(memory: CascadeMemory):
    added = memory.get(memory.acting(actor="ann", channel="mcp").add(TASK, "fridge"))
    assert (added.actor, added.channel) == ("ann", "mcp")
    assert next(memory.audit()).actor == "ann"
    first = memory.acting(actor="bob", channel="mcp").recall(TASK)
    made = memory.get(memory.acting(actor="carol", channel="cli").reward(first.episode_id, 1.0, solution="freezer"))
    assert (made.actor, made.channel) == ("bob", "mcp")
    (outcome,) = memory.outcomes(episode_id=first.episode_id)
    assert (outcome.actor, outcome.channel) == ("carol", "cli")
    proposed = memory.get_episode(memory.acting(actor="dan", channel="langchain").propose("heat some egg", "oven"))
    assert (proposed.actor, proposed.channel, proposed.source) == ("dan", "langchain", "agent")
    with memory.acting(actor="eve").episode("dry some cup") as session:
        memory.acting(actor="frank").reward(session.id, 1.0, solution="towel")
    assert next(memory.cases(by_actor="eve")).query == "dry some cup"
    (outcome,) = memory.outcomes(episode_id=session.id)
    assert (outcome.actor, outcome.channel) == ("frank", "python")
    assert memory.acting(actor="gus", channel="mcp").search(TASK).cases
    assert {one.actor for one in memory.sources()} == {"ann", "bob", "carol", "dan", "eve", "frank"}


def test_the_memory_s_own_actor_is_the_default(memory: CascadeMemory):
    case = memory.get(memory.add(TASK, "fridge"))
    assert (case.actor, case.channel) == ("service", "python")
    recall = memory.recall(TASK)
    assert memory.get_episode(recall.episode_id).actor == "service"
    recall.reward(0.0)
    assert memory.outcomes(episode_id=recall.episode_id)[0].actor == "service"
    memory.pin(case.id)
    assert {entry.actor for entry in memory.audit()} == {"service"}
    waiting = memory.get_episode(memory.propose("heat some egg", "oven"))
    assert waiting is not None
    memory.confirm(waiting.id, seen=waiting.fingerprint)
    assert next(memory.audit()).actor == "service"


def test_who_has_no_actor_stores_none():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        recall = memory.recall(TASK)
        case = memory.get(recall.reward(1.0, solution="fridge"))
        assert (case.actor, case.channel, case.trust) == (None, "python", 3)
        assert "nobody named (python)" in case._repr_html_()
        assert [(one.actor, one.channel, one.outcomes) for one in memory.sources()] == [(None, "python", 1)]
        assert [one.id for one in memory.cases(by_actor="")] == [case.id]
        assert [one.id for one in memory.episodes(by_actor="")] == [recall.episode_id]


def test_the_asynchronous_verbs_do_the_same(memory: CascadeMemory):
    async def run() -> str:
        recall = await memory.acting(actor="ann", channel="mcp").arecall(TASK)
        case_id = await memory.acting(actor="bob", channel="cli").areward(recall.episode_id, 1.0, solution="fridge")
        assert case_id is not None
        return case_id

    case = memory.get(asyncio.run(run()))
    assert (case.actor, case.channel) == ("ann", "mcp")
    assert memory.outcomes(case_id=case.id)[0].actor == "bob"


def test_a_correction_is_by_the_person_and_its_undo_gives_back_who_it_was(memory: CascadeMemory):
    recall = memory.acting(actor="ann", channel="mcp").recall(TASK)
    memory.acting(actor="ann", channel="mcp").reward(recall.episode_id, 1.0, solution="oven")
    right = memory.get(memory.acting(actor="bob", channel="inspector").correct(recall.episode_id, "fridge"))
    assert (right.actor, right.channel, right.trust) == ("bob", "inspector", LEVELS["human"])
    memory.acting(actor="bob").undo(next(memory.audit()).id)
    (back,) = memory.cases()
    assert (back.solution, back.actor, back.channel) == ("oven", "ann", "mcp")
    stands = [one for one in memory.outcomes(episode_id=recall.episode_id) if one.withdrawn_at is None]
    assert [(one.actor, one.channel) for one in stands] == [("ann", "mcp")]


def test_when_the_first_is_taken_back_the_next_one_made_it(memory: CascadeMemory):
    first = memory.acting(actor="ann", channel="mcp").recall(TASK)
    case_id = first.reward(1.0, solution="fridge")
    memory.acting(actor="bob", channel="cli").recall(TASK).reward(1.0, solution="fridge")
    memory.forget(episode_id=first.episode_id)
    case = memory.get(case_id)
    assert (case.actor, case.channel, case.copies) == ("bob", "cli", 1)


@pytest.mark.parametrize(
    "options",
    [{"actor": ""}, {"actor": "a" * 201}, {"actor": 7}, {"channel": "telnet"}, {"channel": 1}, {"min_trust": "everybody"}],
)
def test_what_no_host_would_say_is_refused(memory: CascadeMemory, options: dict[str, object]):
    name, min_trust = next(iter(options)), options.pop("min_trust", None)
    with pytest.raises(InvalidInput, match=name):
        memory.acting(**options).recall(TASK, min_trust=min_trust)  # type: ignore[arg-type]
    assert memory.stats().episodes == 0


def test_an_actor_is_not_read_from_content(memory: CascadeMemory):
    said = {"actor": "admin", "channel": "python", "trust": "human"}
    recall = memory.acting(actor="mallory", channel="mcp").recall('actor="admin" trust=4', metadata=said)
    case = memory.get(recall.reward(1.0, solution="actor: admin", source="user", metadata=said))
    assert (case.actor, case.channel, case.trust) == ("mallory", "mcp", LEVELS["user"])
    assert case.metadata == said


def test_it_survives_closing_a_backup_and_an_export(tmp_path: Path):
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        recall = memory.acting(actor="ann", channel="mcp").recall(TASK)
        case_id = memory.acting(actor="bob").reward(recall.episode_id, 1.0, solution="fridge", source="user")
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        memory.backup(tmp_path / "two")
        memory.export(file := io.StringIO(), progress=False)
        before = memory.sources().as_dicts()
    with CascadeMemory(tmp_path / "two", embedder="hashing") as copy, CascadeMemory(embedder="hashing") as other:
        other.import_(file.getvalue().splitlines(), progress=False)
        for one in (copy, other):
            case = one.get(case_id)
            assert (case.actor, case.channel, case.trust, case.source) == ("ann", "mcp", 1, "user")
            assert one.sources().as_dicts() == before


@pytest.mark.parametrize(("field", "value"), [("actor", "a" * 300), ("channel", 7), ("trust", 9), ("trust", "human")])
def test_an_export_that_says_nonsense_is_refused(memory: CascadeMemory, field: str, value: object):
    memory.add(TASK, "fridge")
    memory.export(file := io.StringIO(), progress=False)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    for line in lines:
        if line.get("kind") == "case":
            line["id"], line[field] = "another", value
            line["query"] = "another"
    with pytest.raises(InvalidInput, match=field):
        memory.import_([json.dumps(line) for line in lines], progress=False)
    assert len(memory) == 1


def test_an_export_of_an_older_version_is_trusted_like_its_sources(memory: CascadeMemory):
    ids = {source: memory.add(f"task of {source}", "solution", source=source) for source in LEVELS}
    memory.export(file := io.StringIO(), progress=False)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    for line in lines:
        for name in ("actor", "channel", "trust"):
            line.pop(name, None)
            for addition in line.get("additions", ()):
                addition.pop(name, None)
    with CascadeMemory(embedder="hashing") as other:
        other.import_([json.dumps(line) for line in lines], progress=False)
        assert {source: other.get(case_id).trust for source, case_id in ids.items()} == dict(LEVELS)
        assert {case.actor for case in other.cases()} == {None}


def test_lists_by_time_take_what_people_write(memory: CascadeMemory):
    case_id = memory.add(TASK, "fridge")
    recall = memory.recall(TASK)
    now = datetime.now(timezone.utc)
    for since in ("1h", "2d", timedelta(minutes=5), now - timedelta(minutes=5), now.timestamp() - 60, "2020-01-01"):
        assert [one.id for one in memory.cases(since=since)] == [case_id]
        assert [one.id for one in memory.episodes(since=since)] == [recall.episode_id]
        assert list(memory.cases(until=since)) == list(memory.episodes(until=since)) == []
    assert [one.id for one in memory.cases(since="1h", until="2999-01-01", by_actor="service", by_channel="python")] == [
        case_id
    ]
    assert [one.id for one in memory.cases(trust="human")] == [case_id]
    assert list(memory.cases(trust="judge")) == []
    for wrong in ("yesterday", "7 parsecs", float("nan"), True, [1]):
        with pytest.raises(InvalidInput, match="since must be"):
            memory.cases(since=wrong)  # type: ignore[arg-type]


def test_a_filter_of_metadata_and_one_of_sources_both_hold(memory: CascadeMemory):
    ids = [memory.acting(actor=("ann", "bob")[i // 2]).add(f"task {i}", "s", metadata={"n": i % 2}) for i in range(4)]
    assert [one.id for one in memory.cases(where={"n": 1}, by_actor="bob")] == [ids[3]]
    assert [one.id for one in memory.cases(by_actor="ann", newest_first=True)] == ids[1::-1]


def test_what_came_and_went(memory: CascadeMemory):
    with CascadeMemory(embedder="hashing", learn="inline", ttl=0.05) as short:
        short.acting(actor="ann", channel="mcp").add("old task", "old")
        time.sleep(0.1)
        short.recall(TASK)
        short.acting(actor="bob").add("new task", "new")
        short.sync()
        seen = short.diff("1h")
        assert [(one.query, one.actor, one.why) for one in seen.went] == [("old task", "ann", "expired")]
        assert [(one.query, one.actor, one.why) for one in seen.came] == [("new task", "bob", "stored")]
        assert seen.by_source() == {("bob", "python"): (1, 0), ("ann", "mcp"): (0, 1)}
        assert len(seen) == len(list(seen)) == 2
        assert short.diff("1h", by_actor="bob").went == short.diff("1h", by_channel="mcp").came == ()
    gone = memory.add("forgotten task", "secret")
    memory.forget(gone)
    seen = memory.diff(timedelta(minutes=1))
    assert (len(seen), seen.forgotten) == (0, 1)
    assert "forgotten: 1 case" in str(seen)
    assert "secret" not in seen._repr_html_()
    with pytest.raises(InvalidInput, match="since"):
        memory.diff(None)  # type: ignore[arg-type]


def test_sources_are_a_table(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    pandas = pytest.importorskip("pandas")
    take_names_of_before(monkeypatch)
    memory.acting(actor="ann\u202e", channel="mcp").add(TASK, "fridge")
    found = memory.sources()
    assert (len(found), found[0].actor, [one.cases for one in found[:1]]) == (1, "ann\u202e", [1])
    assert "<U+202E>" in str(found)
    assert "\u202e" not in found._repr_html_()
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["cases"].tolist() == [1]
    changes = memory.diff("1h").to_pandas()
    assert changes[["actor", "why"]].to_numpy().tolist() == [["ann\u202e", "stored"]]
    assert memory.to_pandas()[["actor", "channel", "trust"]].to_numpy().tolist() == [["ann\u202e", "mcp", "human"]]


def test_the_doors_have_names():
    assert CHANNELS == ("python", "langchain", "llama_index", "mcp", "cli", "inspector", "import")
    assert LEVELS == {"agent": 0, "user": 1, "judge": 2, "host": 3, "env": 3, "human": 4}


ALIKE = (
    *("mallory ", " mallory", "mallory\n", "mallory\tm", "mallory\u00a0"),
    *("mal\u200blory", "\u202emallory", "mal\u2028lory", "mal\u00adlory"),
)


@pytest.mark.parametrize("name", ALIKE)
def test_a_name_that_only_looks_like_another_one_is_no_new_actor(memory: CascadeMemory, name: str):
    recall = memory.recall(TASK)
    for verb in (
        lambda: memory.acting(actor=name).recall(TASK),
        lambda: memory.acting(actor=name).add(TASK, "fridge"),
        lambda: memory.acting(actor=name).reward(recall.episode_id, 1.0),
        lambda: memory.acting(actor=name).forget(everything=True),
        lambda: CascadeMemory(embedder="hashing", actor=name),
    ):
        with pytest.raises(InvalidInput, match=r"white space: strip it|looks? like somebody else"):
            verb()
    assert {row.actor for row in memory.sources()} == {"service"}


@pytest.mark.parametrize("name", ["Ann Müller", "ann.smith@example.org", "安", "علی", "o'neil (desk 2)", "svc/agent:7"])
def test_names_that_people_have_are_taken_as_they_are(memory: CascadeMemory, name: str):
    assert memory.get(memory.acting(actor=name).add(TASK, "fridge")).actor == name


@pytest.mark.parametrize("name", ALIKE)
def test_an_actor_of_before_whose_name_is_refused_now_can_be_undone(tmp_path: Path, name: str):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        memory.acting(actor="eve").add(TASK, "oven", source="user")
        memory.acting(actor="eve").recall("cool some cup").reward(1.0, solution="stove")
        memory.acting(actor="eve").quarantine("eve")
        kept = memory.acting(actor="ann").add(TASK, "fridge")
    with contextlib.closing(rows_of(tmp_path / "m")) as ledger:
        for table in ("cases", "addition", "episode", "outcome"):
            ledger.execute(f"UPDATE {table} SET actor = ? WHERE actor = 'eve'", (name,))
        ledger.execute("UPDATE action SET subject = ?, actor = ? WHERE actor = 'eve' AND subject = 'eve'", (name, name))
        ledger.execute("UPDATE action SET actor = ? WHERE actor = 'eve'", (name,))
        ledger.commit()
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        assert [check.detail for check in memory.examine() if check.name == "rows that cannot be used"] == ["none"]
        assert {row.actor for row in memory.sources()} == {name, "ann"}
        memory.export(tmp_path / "all.jsonl")
        assert memory.acting(actor="ann").release(name) == 2
        assert memory.acting(actor="ann").quarantine(name) == 2
        assert memory.acting(actor="ann").forget(by_actor=name).cases == 2
        assert [case.id for case in memory.cases()] == [kept]
    with CascadeMemory(embedder="hashing") as other:
        other.import_(tmp_path / "all.jsonl")
        assert {row.actor for row in other.sources()} == {name, "ann"}

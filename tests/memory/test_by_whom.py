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

from cascade_memory import CascadeMemory, Retention
from cascade_memory.domain.trust import CHANNELS, LEVELS
from cascade_memory.errors import InvalidInput

TASK = "cool some mug"


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline").acting(actor="service") as opened:
        yield opened


def test_every_verb_says_who_and_how(memory: CascadeMemory):
    added = memory.cases.get(memory.acting(actor="ann", channel="mcp").add(TASK, "fridge"))
    assert (added.actor, added.channel) == ("ann", "mcp")
    assert next(memory.review.audit()).actor == "ann"
    first = memory.acting(actor="bob", channel="mcp").recall(TASK)
    made = memory.cases.get(memory.acting(actor="carol", channel="cli").reward(first.episode_id, 1.0, solution="freezer"))
    assert (made.actor, made.channel) == ("bob", "mcp")
    (outcome,) = memory.episodes.outcomes(episode_id=first.episode_id)
    assert (outcome.actor, outcome.channel) == ("carol", "cli")
    proposed = memory.episodes.get(memory.acting(actor="dan", channel="langchain").review.propose("heat some egg", "oven"))
    assert (proposed.actor, proposed.channel, proposed.source) == ("dan", "langchain", "agent")
    with memory.acting(actor="eve").episode("dry some cup") as session:
        memory.acting(actor="frank").reward(session.id, 1.0, solution="towel")
    assert next(memory.cases.all(by_actor="eve")).query == "dry some cup"
    (outcome,) = memory.episodes.outcomes(episode_id=session.id)
    assert (outcome.actor, outcome.channel) == ("frank", "python")
    assert memory.acting(actor="gus", channel="mcp").cases.search(TASK).cases
    assert {one.actor for one in memory.sources.all()} == {"ann", "bob", "carol", "dan", "eve", "frank"}


def test_the_memory_s_own_actor_is_the_default(memory: CascadeMemory):
    case = memory.cases.get(memory.add(TASK, "fridge"))
    assert (case.actor, case.channel) == ("service", "python")
    recall = memory.recall(TASK)
    assert memory.episodes.get(recall.episode_id).actor == "service"
    recall.reward(0.0)
    assert memory.episodes.outcomes(episode_id=recall.episode_id)[0].actor == "service"
    memory.cases.pin(case.id)
    assert {entry.actor for entry in memory.review.audit()} == {"service"}
    waiting = memory.episodes.get(memory.review.propose("heat some egg", "oven"))
    assert waiting is not None
    memory.review.confirm(waiting.id, seen=waiting.fingerprint)
    assert next(memory.review.audit()).actor == "service"


def test_who_has_no_actor_stores_none():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        recall = memory.recall(TASK)
        case = memory.cases.get(recall.reward(1.0, solution="fridge"))
        assert (case.actor, case.channel, case.trust) == (None, "python", 3)
        assert "nobody named (python)" in case._repr_html_()
        assert [(one.actor, one.channel, one.outcomes) for one in memory.sources.all()] == [(None, "python", 1)]
        assert [one.id for one in memory.cases.all(by_actor="")] == [case.id]
        assert [one.id for one in memory.episodes.all(by_actor="")] == [recall.episode_id]


def test_the_asynchronous_verbs_do_the_same(memory: CascadeMemory):
    async def run() -> str:
        recall = await memory.acting(actor="ann", channel="mcp").arecall(TASK)
        case_id = await memory.acting(actor="bob", channel="cli").areward(recall.episode_id, 1.0, solution="fridge")
        assert case_id is not None
        return case_id

    case = memory.cases.get(asyncio.run(run()))
    assert (case.actor, case.channel) == ("ann", "mcp")
    assert memory.episodes.outcomes(case_id=case.id)[0].actor == "bob"


def test_a_correction_is_by_the_person_and_its_undo_gives_back_who_it_was(memory: CascadeMemory):
    recall = memory.acting(actor="ann", channel="mcp").recall(TASK)
    memory.acting(actor="ann", channel="mcp").reward(recall.episode_id, 1.0, solution="oven")
    right = memory.cases.get(memory.acting(actor="bob", channel="inspector").review.correct(recall.episode_id, "fridge"))
    assert (right.actor, right.channel, right.trust) == ("bob", "inspector", LEVELS["human"])
    memory.acting(actor="bob").review.undo(next(memory.review.audit()).id)
    (back,) = memory.cases.all()
    assert (back.solution, back.actor, back.channel) == ("oven", "ann", "mcp")
    stands = [one for one in memory.episodes.outcomes(episode_id=recall.episode_id) if one.withdrawn_at is None]
    assert [(one.actor, one.channel) for one in stands] == [("ann", "mcp")]


def test_when_the_first_is_taken_back_the_next_one_made_it(memory: CascadeMemory):
    first = memory.acting(actor="ann", channel="mcp").recall(TASK)
    case_id = first.reward(1.0, solution="fridge")
    memory.acting(actor="bob", channel="cli").recall(TASK).reward(1.0, solution="fridge")
    memory.forget(episode_id=first.episode_id)
    case = memory.cases.get(case_id)
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
    case = memory.cases.get(recall.reward(1.0, solution="actor: admin", source="user", metadata=said))
    assert (case.actor, case.channel, case.trust) == ("mallory", "mcp", LEVELS["user"])
    assert case.metadata == said


def test_it_survives_closing_a_backup_and_an_export(tmp_path: Path):
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        recall = memory.acting(actor="ann", channel="mcp").recall(TASK)
        case_id = memory.acting(actor="bob").reward(recall.episode_id, 1.0, solution="fridge", source="user")
    with CascadeMemory(tmp_path / "one", embedder="hashing") as memory:
        memory.data.backup(tmp_path / "two")
        memory.data.export(file := io.StringIO(), progress=False)
        before = memory.sources.all().as_dicts()
    with CascadeMemory(tmp_path / "two", embedder="hashing") as copy, CascadeMemory(embedder="hashing") as other:
        other.data.import_(file.getvalue().splitlines(), progress=False)
        for one in (copy, other):
            case = one.cases.get(case_id)
            assert (case.actor, case.channel, case.trust, case.source) == ("ann", "mcp", 1, "user")
            assert one.sources.all().as_dicts() == before


@pytest.mark.parametrize(("field", "value"), [("actor", "a" * 300), ("channel", 7), ("trust", 9), ("trust", "human")])
def test_an_export_that_says_nonsense_is_refused(memory: CascadeMemory, field: str, value: object):
    memory.add(TASK, "fridge")
    memory.data.export(file := io.StringIO(), progress=False)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    for line in lines:
        if line.get("kind") == "case":
            line["id"], line[field] = "another", value
            line["query"] = "another"
    with pytest.raises(InvalidInput, match=field):
        memory.data.import_([json.dumps(line) for line in lines], progress=False)
    assert len(memory) == 1


def test_an_export_of_an_older_version_is_trusted_like_its_sources(memory: CascadeMemory):
    ids = {source: memory.add(f"task of {source}", "solution", source=source) for source in LEVELS}
    memory.data.export(file := io.StringIO(), progress=False)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    for line in lines:
        for name in ("actor", "channel", "trust"):
            line.pop(name, None)
            for addition in line.get("additions", ()):
                addition.pop(name, None)
    with CascadeMemory(embedder="hashing") as other:
        other.data.import_([json.dumps(line) for line in lines], progress=False)
        assert {source: other.cases.get(case_id).trust for source, case_id in ids.items()} == dict(LEVELS)
        assert {case.actor for case in other.cases.all()} == {None}


def test_lists_by_time_take_what_people_write(memory: CascadeMemory):
    case_id = memory.add(TASK, "fridge")
    recall = memory.recall(TASK)
    now = datetime.now(timezone.utc)
    for since in ("1h", "2d", timedelta(minutes=5), now - timedelta(minutes=5), now.timestamp() - 60, "2020-01-01"):
        assert [one.id for one in memory.cases.all(since=since)] == [case_id]
        assert [one.id for one in memory.episodes.all(since=since)] == [recall.episode_id]
        assert list(memory.cases.all(until=since)) == list(memory.episodes.all(until=since)) == []
    assert [one.id for one in memory.cases.all(since="1h", until="2999-01-01", by_actor="service", by_channel="python")] == [
        case_id
    ]
    assert [one.id for one in memory.cases.all(trust="human")] == [case_id]
    assert list(memory.cases.all(trust="judge")) == []
    for wrong in ("yesterday", "7 parsecs", float("nan"), True, [1]):
        with pytest.raises(InvalidInput, match="since must be"):
            memory.cases.all(since=wrong)  # type: ignore[arg-type]


def test_a_filter_of_metadata_and_one_of_sources_both_hold(memory: CascadeMemory):
    ids = [memory.acting(actor=("ann", "bob")[i // 2]).add(f"task {i}", "s", metadata={"n": i % 2}) for i in range(4)]
    assert [one.id for one in memory.cases.all(where={"n": 1}, by_actor="bob")] == [ids[3]]
    assert [one.id for one in memory.cases.all(by_actor="ann", newest_first=True)] == ids[1::-1]


def test_what_came_and_went(memory: CascadeMemory):
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(ttl=0.05)) as short:
        short.acting(actor="ann", channel="mcp").add("old task", "old")
        time.sleep(0.1)
        short.recall(TASK)
        short.acting(actor="bob").add("new task", "new")
        short.sync()
        seen = short.sources.diff("1h")
        assert [(one.query, one.actor, one.why) for one in seen.went] == [("old task", "ann", "expired")]
        assert [(one.query, one.actor, one.why) for one in seen.came] == [("new task", "bob", "stored")]
        assert seen.by_source() == {("bob", "python"): (1, 0), ("ann", "mcp"): (0, 1)}
        assert len(seen) == len(list(seen)) == 2
        assert short.sources.diff("1h", by_actor="bob").went == short.sources.diff("1h", by_channel="mcp").came == ()
    gone = memory.add("forgotten task", "secret")
    memory.forget(gone)
    seen = memory.sources.diff(timedelta(minutes=1))
    assert (len(seen), seen.forgotten) == (0, 1)
    assert "forgotten: 1 case" in str(seen)
    assert "secret" not in seen._repr_html_()
    with pytest.raises(InvalidInput, match="since"):
        memory.sources.diff(None)  # type: ignore[arg-type]


def test_sources_are_a_table(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    pandas = pytest.importorskip("pandas")
    take_names_of_before(monkeypatch)
    memory.acting(actor="ann\u202e", channel="mcp").add(TASK, "fridge")
    found = memory.sources.all()
    assert (len(found), found[0].actor, [one.cases for one in found[:1]]) == (1, "ann\u202e", [1])
    assert "<U+202E>" in str(found)
    assert "\u202e" not in found._repr_html_()
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["cases"].tolist() == [1]
    changes = memory.sources.diff("1h").to_pandas()
    assert changes[["actor", "why"]].to_numpy().tolist() == [["ann\u202e", "stored"]]
    assert memory.cases.to_pandas()[["actor", "channel", "trust"]].to_numpy().tolist() == [["ann\u202e", "mcp", "human"]]


def test_the_doors_have_names():
    assert CHANNELS == ("python", "langchain", "llama_index", "mcp", "cli", "inspector", "import", "scores")
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
    ):
        with pytest.raises(InvalidInput, match=r"white space: strip it|looks? like somebody else"):
            verb()
    assert {row.actor for row in memory.sources.all()} == {"service"}


@pytest.mark.parametrize("name", ["Ann Müller", "ann.smith@example.org", "安", "علی", "o'neil (desk 2)", "svc/agent:7"])
def test_names_that_people_have_are_taken_as_they_are(memory: CascadeMemory, name: str):
    assert memory.cases.get(memory.acting(actor=name).add(TASK, "fridge")).actor == name


@pytest.mark.parametrize("name", ALIKE)
def test_an_actor_of_before_whose_name_is_refused_now_can_be_undone(tmp_path: Path, name: str):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        memory.acting(actor="eve").add(TASK, "oven", source="user")
        memory.acting(actor="eve").recall("cool some cup").reward(1.0, solution="stove")
        memory.acting(actor="eve").sources.quarantine("eve")
        kept = memory.acting(actor="ann").add(TASK, "fridge")
    with contextlib.closing(rows_of(tmp_path / "m")) as ledger:
        for table in ("cases", "addition", "episode", "outcome"):
            ledger.execute(f"UPDATE {table} SET actor = ? WHERE actor = 'eve'", (name,))
        ledger.execute("UPDATE action SET subject = ?, actor = ? WHERE actor = 'eve' AND subject = 'eve'", (name, name))
        ledger.execute("UPDATE action SET actor = ? WHERE actor = 'eve'", (name,))
        ledger.commit()
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        assert [check.detail for check in memory.data.examine() if check.name == "rows that cannot be used"] == ["none"]
        assert {row.actor for row in memory.sources.all()} == {name, "ann"}
        memory.data.export(tmp_path / "all.jsonl")
        assert memory.acting(actor="ann").sources.release(name) == 2
        assert memory.acting(actor="ann").sources.quarantine(name) == 2
        assert memory.acting(actor="ann").forget(by_actor=name).cases == 2
        assert [case.id for case in memory.cases.all()] == [kept]
    with CascadeMemory(embedder="hashing") as other:
        other.data.import_(tmp_path / "all.jsonl")
        assert {row.actor for row in other.sources.all()} == {name, "ann"}

"""What is inside a memory can be seen: cases and episodes, one after the other, while others go on."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput, MemoryClosed, MissingExtra

MANY = 250  # more than two pages


@pytest.fixture
def memory(tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        yield memory


def _filled(memory: CascadeMemory, count: int = MANY) -> list[str]:
    return memory.add([(f"task {i}", f"solution {i}", {"user": f"u{i % 2}", "number": i}) for i in range(count)])


def test_cases_come_by_age_in_both_directions(memory: CascadeMemory):
    ids = _filled(memory)
    memory.acting(namespace="other").add("of others", "s")
    assert [case.id for case in memory.cases.all()] == ids
    assert [case.id for case in memory.cases.all(newest_first=True)] == ids[::-1]
    assert [case.query for case in memory.acting(namespace="other").cases.all()] == ["of others"]
    first = next(memory.cases.all())
    assert (first.solution, first.metadata, first.namespace) == ("solution 0", {"user": "u0", "number": 0}, "default")
    assert list(memory.acting(namespace="nobody's").cases.all()) == []


def test_cases_are_filtered_like_a_recall(memory: CascadeMemory):
    ids = _filled(memory)
    assert [case.id for case in memory.cases.all(where={"user": "u1"})] == ids[1::2]
    assert [case.id for case in memory.cases.all(where={"number": {"$gte": 247}}, newest_first=True)] == [*ids[:246:-1]]
    assert list(memory.cases.all(where={"user": "nobody"})) == []


def test_mistakes_are_told_at_the_call_and_not_at_the_first_case(memory: CascadeMemory):
    for wrong in (lambda: memory.cases.all(where={"$what": 1}), lambda: memory.acting(namespace=" ").cases.all()):
        with pytest.raises(InvalidInput):
            wrong()
    with pytest.raises(InvalidInput, match="one of open, settled"):
        memory.episodes.all(status="opne")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="source must be one of"):
        memory.episodes.all(source="boss")


@pytest.mark.parametrize("newest_first", [False, True])
def test_others_may_add_and_forget_meanwhile(memory: CascadeMemory, newest_first: bool):
    ids = _filled(memory)
    seen = []
    for number, case in enumerate(memory.cases.all(newest_first=newest_first)):
        seen.append(case.id)
        if number == 120:
            gone = ids[240] if not newest_first else ids[10]
            memory.forget([gone, case.id])  # a case of a later page, and the one that is being looked at
            memory.add("added meanwhile", "s")
    expected = [one for one in (reversed(ids) if newest_first else ids) if one != gone]
    assert seen[: len(expected)] == expected
    assert len(seen) == len(set(seen)) == len(expected) + (not newest_first)


def test_nothing_is_held_between_two_cases(memory: CascadeMemory):
    _filled(memory)
    iterations = [memory.cases.all(), memory.cases.all(where={"user": "u0"}), memory.episodes.all()]
    recalls = [memory.recall("task 1") for _ in range(3)]
    firsts = [next(one) for one in iterations]
    assert len(firsts) == len(recalls) == 3
    receipt = memory.forget(everything=True, purge=True)  # which names every reader of an older state
    assert receipt.purged or all("PostgreSQL's files" in one for one in receipt.stale)
    assert [sum(1 for _ in one) for one in iterations] == [99, 99, 2]  # only what was read already


def test_one_page_is_read_at_a_time(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    ids = _filled(memory)
    ledger, asked = engine_of(memory).parts.ledger, []
    by_key = ledger.cases.by_key
    monkeypatch.setattr(ledger.cases, "by_key", lambda keys: asked.append(len(keys)) or by_key(keys))
    assert [case.id for case in itertools.islice(memory.cases.all(), 100)] == ids[:100]
    assert asked == [100]


def test_a_closed_memory_says_so_in_the_middle(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "memory", embedder="hashing")
    _filled(memory)
    cases = memory.cases.all()
    next(cases)
    memory.close()
    with pytest.raises(MemoryClosed):
        list(cases)
    with pytest.raises(MemoryClosed):
        len(memory)


def test_episodes_by_status_and_source(memory: CascadeMemory):
    opened = [memory.recall(f"task {i}").episode_id for i in range(130)]
    for number, source in ((3, "host"), (125, "human"), (7, "agent")):
        memory.reward(opened[number], 1.0, solution="s", source=source)
    memory.episodes.discard(opened[9])
    assert [one.id for one in memory.episodes.all()] == opened
    assert [one.id for one in memory.episodes.all(newest_first=True)] == opened[::-1]
    assert {one.id for one in memory.episodes.all(status="settled")} == {opened[3], opened[7], opened[125]}
    assert [one.id for one in memory.episodes.all(source="human")] == [opened[125]]
    assert [one.id for one in memory.episodes.all(status="settled", source="agent")] == [
        one.id for one in memory.review.reported()
    ]
    assert [one.id for one in memory.episodes.all(status="censored")] == [opened[9]]
    assert [one.id for one in memory.episodes.all(status="open")] == [one.id for one in memory.episodes.pending()]
    assert list(memory.acting(namespace="nobody's").episodes.all()) == []


def test_what_waits_to_be_confirmed_is_counted_apart(memory: CascadeMemory):
    memory.reward(memory.recall("one").episode_id, 1.0, solution="s")
    memory.reward(memory.recall("two").episode_id, 1.0, solution="s", source="agent")
    counted = memory.stats()
    assert (counted.settled, counted.reported) == (2, 1)
    assert "1 rewarded" in str(counted)
    assert "to confirm  1 more episode" in str(counted)
    (seen,) = memory.review.reported()
    memory.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
    assert memory.stats().reported == 0
    assert "to confirm" not in str(memory.stats())


def test_an_empty_memory_is_true_and_has_no_length(memory: CascadeMemory):
    assert len(memory) == 0
    assert memory
    _filled(memory, 3)
    memory.acting(namespace="other").add("of others", "s")
    assert len(memory) == 3
    assert memory.data.namespaces() == ["default", "other"]


def test_a_case_is_in_it_by_its_id_or_as_it_was_returned(memory: CascadeMemory):
    (case_id,) = _filled(memory, 1)
    (other,) = [memory.acting(namespace="other").add("of others", "s")]
    (case,) = memory.cases.all()
    assert case_id in memory
    assert case in memory
    assert memory.recall("task 0").cases[0] in memory
    assert other not in memory
    assert "nobody" not in memory
    memory.forget(case_id)
    assert case not in memory
    with pytest.raises(InvalidInput, match="case_id must be a string"):
        1 in memory  # noqa: B015 # pyright: ignore[reportUnusedExpression]


def test_pandas_gets_a_row_for_each_case(memory: CascadeMemory):
    pd = pytest.importorskip("pandas")
    empty = memory.cases.to_pandas()
    assert len(empty) == 0
    _filled(memory, 3)
    memory.reward(memory.recall("task 0").episode_id, 1.0, solution="solution 0")
    frame = memory.cases.to_pandas()
    assert list(frame["query"]) == ["task 0", "task 1", "task 2"]
    assert (empty.dtypes == frame.dtypes).all()
    assert frame["created_at"].dt.tz is not None
    assert abs((pd.Timestamp.now(tz="UTC") - frame["created_at"].iloc[0]).total_seconds()) < 600
    assert frame["copies"].tolist() == [2, 1, 1]
    assert list(memory.cases.to_pandas(where={"user": "u1"})["solution"]) == ["solution 1"]


def test_without_pandas_it_says_what_to_install(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        memory.cases.to_pandas()


def test_an_order_that_there_is_not_is_refused_with_those_that_there_are(memory: CascadeMemory):
    _filled(memory, 3)
    assert len(memory.cases.order("use").keys) == 3
    for ask in (memory.cases.order, lambda sort: memory.cases.page(sort=sort)):
        with pytest.raises(InvalidInput, match="sort must be one of newest, oldest, shown, successes, use, not 'size'"):
            ask("size")


def test_a_last_page_that_is_full_leads_nowhere(memory: CascadeMemory):
    ids = _filled(memory, 6)
    first = memory.cases.page(limit=3, sort="oldest")
    last = memory.cases.page(limit=3, sort="oldest", after=first.after)
    assert [case.id for case in (*first.items, *last.items)] == ids
    assert last.after is None

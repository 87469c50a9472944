"""How far Chroma is behind, and what of the log it need not be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory


@pytest.fixture(autouse=True)
def _no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.INTERVAL", 3600.0)  # what is fed here is fed by the test


def test_lag_is_what_was_not_fed_whatever_the_log_says(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk()
    assert memory.health().chroma_lag == 0
    ids = memory.add([(f"task {i}", "s") for i in range(200)])
    assert memory.health().chroma_lag == 200
    feeder = engine_of(memory).feeder
    assert feeder is not None
    assert feeder.ready()
    feeder.feed_once()  # which begins at the present end of the log
    assert memory.health().chroma_lag == 200 - 64
    memory.sync()
    assert memory.health().chroma_lag == 0
    memory.forget(ids[:3])
    assert memory.health().chroma_lag == 3
    for i in range(5):  # outcomes without a case are nothing to Chroma
        memory.reward(memory.recall(f"task {i}").episode_id, 0.0)
    assert memory.health().chroma_lag == 3
    memory.add("new", "s")
    memory.forget(memory.add("newer", "s"))  # which it never saw
    assert memory.health().chroma_lag == 4
    memory.sync()
    assert memory.health().chroma_lag == 0
    memory.forget(everything=True)
    assert memory.health().chroma_lag == 1
    memory.sync()
    assert memory.health().chroma_lag == 0


def test_a_build_from_the_present_begins_with_every_case(
    on_disk: Callable[..., CascadeMemory], monkeypatch: pytest.MonkeyPatch
):
    memory = on_disk()
    memory.add([(f"task {i}", "s") for i in range(100)])
    memory.sync()
    monkeypatch.setattr(engine_of(memory).feeder, "flush", lambda: None)
    memory.data.rebuild()
    assert memory.health().chroma_lag == 100


def test_forgetting_a_namespace_that_never_was_is_no_news(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    memory = on_disk()
    memory.add("a", "b")
    head = engine_of(memory).parts.ledger.head()
    receipt = memory.acting(namespace="never").forget(everything=True)
    assert (receipt.cases, receipt.episodes) == (0, 0)
    assert engine_of(memory).parts.ledger.head() == head
    memory.sync()
    assert memory.health().ok
    assert memory.health().failures == {}
    assert memory.acting(namespace="never").forget(everything=True, purge=True).purged
    assert memory.cases.search("a").cases


def test_lines_about_namespaces_that_nobody_knows_are_passed_over(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk()
    memory.add("a", "b")
    ledger = engine_of(memory).parts.ledger
    for number in (0, 4711):
        ledger.forgetting.forget_namespace(number)  # as older versions wrote it
    with ledger.connections.write(durable=True) as connection:  # type: ignore[attr-defined]
        connection.execute("INSERT INTO change (namespace, kind, ref, id) VALUES (4711, 'case-', 1, 'x')")
    memory.sync()
    assert memory.health().failures == {}
    assert memory.health().chroma == "open"
    assert all(check.ok for check in memory.data.examine())

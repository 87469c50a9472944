"""Clocks that jump, stand still or are set back: nothing goes that was verified less than ``ttl`` of running time ago."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from clocks import Clocks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.cli import main
from cascade_memory.errors import UnknownCase

_DAY = 24 * 3600.0


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., CascadeMemory]]:
    memories: list[CascadeMemory] = []

    def open_(**options: object) -> CascadeMemory:
        for memory in memories:
            memory.close()
        memory = CascadeMemory(
            tmp_path / "memory", **{"embedder": "hashing", "learn": "inline", "retention": Retention(ttl=_DAY), **options}
        )  # type: ignore[arg-type]
        memories.append(memory)
        return memory

    yield open_
    for memory in memories:
        memory.close()


def _look(memory: CascadeMemory, query: str = "task 3") -> list[str]:
    """Recall, with a look at the age of cases before it."""
    state_of(memory).next_look = 0.0
    recall = memory.cases.search(query)
    assert recall.error is None
    return [str(case.solution) for case in recall.cases]


def _filled(memory: CascadeMemory, n: int = 50) -> list[str]:
    return memory.add([(f"task {i}", f"s{i}") for i in range(n)])


@pytest.mark.parametrize("ahead", [3 * _DAY, 300 * _DAY, 3e9], ids=["three days", "a year", "a century"])
def test_a_clock_that_is_ahead_for_seconds_or_for_hours_deletes_nothing(opened, clocks: Clocks, ahead: float):
    memory = opened()
    _filled(memory)
    for seconds in (0.0, 70.0, 3600.0):
        clocks.wall_ahead = ahead
        clocks.real += seconds
        assert _look(memory) == []  # hidden: it is too old if the clock is right
        clocks.real += seconds
        _look(memory)
        clocks.wall_ahead = 0.0
        assert _look(memory) == ["s3"]
    assert (memory.stats().cases, memory.cases.expired()) == (50, [])


@pytest.mark.slow
def test_a_clock_that_jumps_again_and_again_across_restarts_deletes_nothing(opened, clocks: Clocks):
    _filled(opened())
    for i in range(40):
        clocks.wall_ahead = (-1) ** i * i * _DAY
        clocks.real += 70
        _look(opened())
    clocks.wall_ahead = 0.0
    assert opened().stats().cases == 50


def test_another_boot_or_another_machine_adds_nothing_that_has_not_passed(opened, clocks: Clocks):
    _filled(opened())
    for uptime in (0.0, 900 * _DAY, 3.0):
        clocks.reboot(uptime)
        clocks.real += 60
        _look(opened())
    assert opened().stats().cases == 50
    clocks.real += 2 * _DAY
    _look(opened())
    assert opened().stats().cases == 0


def test_a_memory_that_is_snapshotted_and_set_back_with_its_clock_deletes_nothing(opened, clocks: Clocks):
    memory = opened()
    clocks.real += 5 * _DAY
    _filled(memory)
    clocks.boot_offset -= 5 * _DAY  # a virtual machine that was put back
    assert _look(memory) == ["s3"]
    clocks.boot_offset += 5 * _DAY
    assert _look(memory) == ["s3"]


@pytest.mark.parametrize("fault", ["set back by a year", "stuck"])
def test_with_a_clock_that_is_behind_the_ttl_still_works(opened, clocks: Clocks, fault: str):
    memory = opened()
    _filled(memory)
    if fault == "stuck":
        clocks.stuck = clocks.wall()
    else:
        clocks.wall_ahead = -365 * _DAY
    clocks.real += 0.9 * _DAY
    assert _look(memory) == ["s3"]
    clocks.real += 0.2 * _DAY
    assert _look(memory) == []
    assert len(memory.cases.expired()) == 50


def test_what_expired_can_be_brought_back_for_its_time_of_grace(opened, clocks: Clocks, caplog: pytest.LogCaptureFixture):
    memory = opened()
    cases = memory.add([("old task", "old", {"user": "ann"}), ("older task", "older", {"user": "bob"})])
    clocks.real += _DAY + 60
    with caplog.at_level("INFO", "cascade_memory"):
        assert _look(memory, "old task") == []
    assert "2 cases of namespace 'default' expired" in caplog.text
    assert "bring_back()" in caplog.text
    first, _ = memory.cases.expired()
    assert (first.id, first.query, first.solution) == (cases[0], "old task", "old")
    assert 0 < first.seconds_left <= _DAY
    assert memory.cases.bring_back(cases[0]) == [cases[0]]
    assert _look(memory, "old task") == ["old"]
    assert memory.cases.search("task", where={"user": "ann"}).cases[0].id == cases[0]
    assert [case.id for case in memory.cases.expired()] == [cases[1]]
    memory = opened()  # in another process, say
    assert memory.cases.bring_back() == [cases[1]]
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    clocks.real += _DAY + 60
    _look(memory)
    clocks.real += _DAY + 60
    _look(memory)
    assert memory.cases.expired() == []
    assert engine_of(memory).parts.ledger.insight.counts(None)["cases"] == 0
    with pytest.raises(UnknownCase, match="that was set aside"):
        memory.cases.bring_back(cases)


def test_a_case_that_comes_back_has_all_that_it_had(opened, clocks: Clocks):
    memory = opened()
    recall = memory.recall("task of somebody")
    case = memory.reward(recall.episode_id, 1.0, solution="s", metadata={"user": "ann", "tags": ["a", "b"]})
    memory.add("task of somebody", "s")
    before = memory.cases.get(case)
    clocks.real += _DAY + 60
    _look(memory)
    memory.cases.bring_back()
    after = memory.cases.get(case)
    for name in ("id", "query", "solution", "metadata", "source", "episode_id", "created_at", "copies", "shown", "succeeded"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.key > before.key
    memory.forget(case)
    assert engine_of(memory).parts.ledger.episodes.one(recall.episode_id) is None  # its link to the case came back as well


def test_the_same_pair_again_takes_the_place_of_the_expired_one(opened, clocks: Clocks):
    memory = opened()
    old = memory.add("task", "s")
    clocks.real += _DAY + 60
    _look(memory)
    new = memory.add("task", "s")
    assert new != old
    assert memory.cases.expired() == []
    assert memory.stats().cases == 1


def _by_id(memory: CascadeMemory, case: str, episode: str) -> object:
    return memory.forget(case)


def _by_metadata(memory: CascadeMemory, case: str, episode: str) -> object:
    return memory.forget(where={"user": "ann"})


def _by_episode(memory: CascadeMemory, case: str, episode: str) -> object:
    return memory.forget(episode_id=episode)


def _by_namespace(memory: CascadeMemory, case: str, episode: str) -> object:
    return memory.forget(everything=True, purge=True)


@pytest.mark.parametrize("forget", [_by_id, _by_metadata, _by_episode, _by_namespace])
def test_forgetting_reaches_what_has_expired(opened, clocks: Clocks, forget, tmp_path: Path):
    memory = opened()
    episode = memory.recall("the secret of ann").episode_id
    case = memory.reward(episode, 1.0, solution="xyzzy-secret", metadata={"user": "ann"})
    clocks.real += _DAY + 60
    _look(memory)
    assert [one.id for one in memory.cases.expired()] == [case]
    receipt = forget(memory, case, episode)
    assert (receipt.cases, receipt.episodes) == (1, 1)
    assert memory.cases.expired() == []
    memory.forget(purge=True)
    memory.close()
    for file in (tmp_path / "memory").rglob("*"):
        assert not file.is_file() or b"xyzzy-secret" not in file.read_bytes(), file


def test_an_export_leaves_expired_cases_out_and_a_backup_has_them(opened, clocks: Clocks, tmp_path: Path):
    memory = opened()
    memory.add("task", "expired-solution")
    clocks.real += _DAY + 60
    _look(memory)
    memory.data.export(tmp_path / "export.jsonl")
    assert "expired-solution" not in (tmp_path / "export.jsonl").read_text()
    memory.data.backup(tmp_path / "backup")
    with CascadeMemory(tmp_path / "backup", embedder="hashing", learn="inline") as copy:
        assert [case.solution for case in copy.cases.expired()] == ["expired-solution"]


def test_an_import_gives_its_cases_a_whole_ttl(opened, clocks: Clocks, tmp_path: Path):
    memory = opened()
    memory.add("task", "s")
    memory.data.export(tmp_path / "export.jsonl")
    memory.forget(everything=True)
    clocks.real += 0.9 * _DAY
    memory.data.import_(tmp_path / "export.jsonl")
    clocks.real += 0.9 * _DAY
    _look(memory)
    assert memory.stats().cases == 1


def test_with_real_clocks_a_short_ttl_works(tmp_path: Path):
    with CascadeMemory(
        tmp_path / "memory", embedder="hashing", learn="inline", retention=Retention(ttl=timedelta(seconds=1))
    ) as memory:
        memory.add("task", "s")
        assert memory.cases.search("task").cases
        time.sleep(1.2)
        assert not memory.cases.search("task").cases
        assert [case.solution for case in memory.cases.expired()] == ["s"]


def test_the_command_lists_and_brings_back(opened, clocks: Clocks, tmp_path: Path, capsys):
    memory = opened()
    case = memory.add("old task", "old")
    clocks.real += _DAY + 60
    _look(memory)
    memory.close()
    folder = str(tmp_path / "memory")
    assert main(["review", "expired", folder, "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["expired"]] == [case]
    assert main(["review", "expired", folder]) == 0
    assert "old task" in capsys.readouterr().out
    assert main(["review", "expired", folder, "--bring-back"]) == 0
    assert "1 brought back" in capsys.readouterr().out
    with CascadeMemory(folder, embedder="hashing") as again:
        assert again.cases.get(case).solution == "old"


_TTL = 100.0
_DO = st.one_of(
    st.tuples(st.just("pass"), st.floats(0.0, 60.0)),
    st.tuples(st.just("set the wall clock"), st.floats(-1e6, 1e6)),
    st.tuples(st.just("reboot"), st.floats(0.0, 1e6)),
    st.tuples(st.just("open again"), st.booleans()),
    st.tuples(st.just("verify"), st.integers(0, 4)),
    st.tuples(st.just("tidy"), st.just(0)),
)


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(_DO, min_size=5, max_size=40))
def test_whatever_the_clocks_do_nothing_goes_that_was_verified_less_than_its_ttl_ago(steps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clocks") / "memory"
    with pytest.MonkeyPatch.context() as patch:
        clocks = Clocks(patch)
        verified: dict[str, float] = {}

        def opened() -> CascadeMemory:
            return CascadeMemory(folder, embedder="hashing", learn="inline", retention=Retention(ttl=_TTL))

        memory = opened()
        try:
            for kind, value in steps:
                if kind == "pass":
                    clocks.real += value
                elif kind == "set the wall clock":
                    clocks.wall_ahead = value
                elif kind == "reboot":
                    clocks.reboot(value)
                elif kind == "open again":
                    memory.close()
                    memory = opened()
                elif kind == "verify":
                    verified[memory.add(f"task {value}", f"s{value}")] = clocks.real
                else:
                    _look(memory)
                there = {row[0] for row in _ids(memory)}
                young = {case for case, at in verified.items() if clocks.real - at <= _TTL}
                assert young <= there, (kind, value)
        finally:
            memory.close()


def _ids(memory: CascadeMemory) -> list[tuple[str]]:
    with engine_of(memory).parts.ledger.connections.read() as connection:
        return connection.execute("SELECT id FROM cases").fetchall()

"""Eight threads in each of two processes, on three namespaces of one folder: nothing is lost, doubled or mixed up."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from busy_actor import NAMESPACES, VERBS, Done, Op, shared_episodes
from busy_process import BusyProcess, Known, known, pair
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from in_databases import rows_of
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.domain.records import CASE_ADDED

_OPS = st.builds(
    Op,
    verb=st.sampled_from(VERBS),
    namespace=st.sampled_from(NAMESPACES),
    pick=st.integers(0, 29),
    value=st.sampled_from([0.0, 1.0]),
    pause=st.sampled_from([0.0, 0.0, 0.0005, 0.003]),
)
_PLANS = st.lists(st.lists(st.lists(_OPS, min_size=2, max_size=6), min_size=8, max_size=8), min_size=2, max_size=2)
_EXPECTED = {"AlreadyRewarded", "EpisodeClosed", "UnknownEpisode", "UnknownCase"}


@pytest.fixture(scope="module")
def processes() -> Iterator[tuple[BusyProcess, BusyProcess]]:
    both = pair()
    yield both
    assert [process.stop() for process in both] == [0, 0]


# The same plans in every run; how the threads interleave within one is up to the machine, so a failure cannot be shrunk.
@pytest.mark.long
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(plan=_PLANS)
def test_sixteen_threads_lose_nothing_settle_once_and_keep_namespaces_apart(
    processes: tuple[BusyProcess, BusyProcess], plan: list[list[list[Op]]]
):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "memory"
        states = _both(processes, "open", folder)
        in_a_database = states == ["none", "none"]  # without Chroma, so nobody has to own it
        assert in_a_database or states.count("follower") == 1
        owner = processes[0 if in_a_database else states.index("follower") ^ 1]
        seeds = processes[0].call("seed")
        log: list[Done] = [*_seeded(seeds)]
        for process, ops in zip(processes, plan, strict=True):
            process.ask("run", ops, seeds)
        for process in processes:
            log += process.answer()
        looks: list[dict[str, Known]] = _both(processes, "look")
        wrong = owner.call("wrong")
        assert _both(processes, "close") == [{}, {}]  # nothing failed in silence, at the same moment

        assert wrong == []
        with closing(rows_of(folder)) as ledger:
            _check_answers(log)
            _check_episodes(ledger, log)
            _check_cases(ledger, log)
            _check_namespaces(ledger)
            _check_agreement(ledger, folder, looks)


def _both(processes: tuple[BusyProcess, BusyProcess], verb: str, *arguments: object) -> list:
    for process in processes:
        process.ask(verb, *arguments)
    return [process.answer() for process in processes]


def _seeded(seeds: dict[str, list[str]]) -> Iterator[Done]:
    for episode, namespace in shared_episodes():
        yield Done("recall", namespace, episode)
    for namespace, cases in seeds.items():
        for case in cases:
            yield Done("add", namespace, case=case)


def _check_answers(log: list[Done]) -> None:
    assert [done for done in log if done.error is not None and done.error not in _EXPECTED] == []
    assert [done for done in log if done.strangers] == []
    looks = [done for done in log if done.verb in ("recall", "recall again", "search") and done.error is None]
    assert [done for done in looks if done.result is not None] == []  # the recall's own error


def _forgotten(log: list[Done]) -> set[str]:
    return {done.case for done in log if done.verb == "forget" and done.error is None and done.case is not None}


def _check_episodes(ledger: sqlite3.Connection, log: list[Done]) -> None:
    standing: defaultdict[str, list[float]] = defaultdict(list)
    for episode, value in ledger.execute(
        "SELECT episode.id, value FROM outcome JOIN episode ON episode.key = outcome.episode WHERE withdrawn_at IS NULL"
    ):
        standing[episode].append(value)
    status = dict(ledger.execute("SELECT id, status FROM episode").fetchall())
    told: defaultdict[str, list[Done]] = defaultdict(list)
    for done in log:
        if done.episode is not None:
            told[done.episode].append(done)
    forgotten = _forgotten(log)
    for episode, dones in told.items():
        granted = [done for done in dones if done.verb in ("reward", "overwrite") and done.error is None]
        values = {done.value for done in granted}
        assert len(standing[episode]) == (status.get(episode) == "settled"), dones
        assert set(standing[episode]) <= values, dones
        if any(done.case in forgotten for done in granted):
            continue  # it went with its case; another recall may have opened it anew
        assert bool(values) == (status[episode] == "settled"), dones
        assert (status[episode] == "censored") == any(done.verb == "discard" and done.result is True for done in dones)
        rewards = [done for done in dones if done.verb in ("reward", "overwrite")]
        assert all(done.error != "EpisodeClosed" or status[episode] == "censored" for done in rewards), dones
        assert all(done.error != "AlreadyRewarded" or done.verb == "reward" for done in rewards), dones
        if not any(done.verb == "overwrite" for done in granted):
            assert len(values) <= 1, dones  # of two different values one was refused
        assert not any(done.error == "UnknownEpisode" for done in dones), dones


def _check_cases(ledger: sqlite3.Connection, log: list[Done]) -> None:
    added = Counter(done.case for done in log if done.verb == "add")
    assert None not in added
    forgotten = _forgotten(log)
    stored = {case: (key, copies) for case, key, copies in ledger.execute("SELECT id, key, copies FROM cases")}
    assert {case for case in added if case not in forgotten} <= set(stored)
    assert not forgotten & set(stored)
    verified = Counter(key for (key,) in ledger.execute("SELECT cases_key FROM outcome WHERE withdrawn_at IS NULL"))
    for case, (key, copies) in stored.items():
        assert copies == added[case] + verified[key], case
    assert set(verified) - {None} <= {key for key, _ in stored.values()}
    texts = ledger.execute(
        "SELECT namespace, query, solution FROM cases NATURAL JOIN (SELECT key FROM case_text) AS text"
    ).fetchall()
    assert len(texts) == len(set(texts)) == len(stored)


def _check_namespaces(ledger: sqlite3.Connection) -> None:
    of_case = dict(ledger.execute("SELECT ref, namespace FROM change WHERE kind = ?", (CASE_ADDED,)).fetchall())
    of_solution = dict(ledger.execute("SELECT id, namespace FROM solution").fetchall())
    for namespace, candidates, groups in ledger.execute("SELECT namespace, candidates, groups FROM recall"):
        assert {of_case[key] for key in np.frombuffer(candidates, np.int64).tolist()} <= {namespace}
        assert {of_solution.get(group, namespace) for group in np.frombuffer(groups, np.int64).tolist()} <= {namespace}
    for table, key in (("cases", "solution"), ("outcome", "episode"), ("recall", "episode")):
        other = {"solution": "solution", "episode": "episode"}[key]
        column = {"solution": "id", "episode": "key"}[key]
        assert ledger.execute(
            f"""SELECT count(*) FROM {table} JOIN {other} ON {other}.{column} = {table}.{key}
                WHERE {table}.namespace <> {other}.namespace"""
        ).fetchone() == (0,)


def _check_agreement(ledger: sqlite3.Connection, folder: Path, looks: list[dict[str, Known]]) -> None:
    """Both processes ended with what a process sees that opens the folder afresh, and with what the ledger says."""
    with CascadeMemory(folder, embedder="hashing", learn="inline") as afresh:
        assert engine_of(afresh).parts.ledger.maintenance.integrity() == "ok"
        for name in NAMESPACES:
            number = engine_of(afresh).namespace_id(name)
            learned = ledger.execute(
                "SELECT count(*) FROM outcome WHERE namespace = ? AND learns = 1 AND withdrawn_at IS NULL", (number,)
            ).fetchone()[0]
            stored = ledger.execute("SELECT count(*) FROM cases WHERE namespace = ?", (number,)).fetchone()[0]
            expected = known(afresh, name)
            assert expected.indexed == stored
            for look in looks:
                assert look[name].indexed == stored
                assert look[name].rewards == learned, "an outcome was learned twice, or not at all"
                assert look[name] == expected._replace(rewards=learned), "the encoder counted a case twice, or not at all"

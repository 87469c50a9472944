"""What was forgotten is gone: from every file, and from what was learned."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranking, Retention
from cascade_memory.encoders.light import FEATURES
from cascade_memory.errors import InvalidInput

_SECRET_QUERY = "zygomorphic quandary of xanthippe"
_SECRET_SOLUTION = "flibbertigibbet protocol nine"
_SECRET_FAILURE = "ytterbium lullaby that failed"


def _live(memory: CascadeMemory, n: int = 60) -> None:
    """Ann's episodes among those of others; some of hers fail."""
    for i in range(n):
        user = "ann" if i % 5 == 0 else f"user{i % 3}"
        query = f"{_SECRET_QUERY} {i}" if user == "ann" else f"task {i} of kind {i % 7}"
        solution = f"{_SECRET_SOLUTION} {i % 2}" if user == "ann" else f"solution {i % 7}"
        if user == "ann" and i % 10 == 0:
            query = f"{_SECRET_FAILURE} {i}"
        recall = memory.acting(actor=user).recall(query)
        memory.reward(recall.episode_id, float(i % 10 != 0), solution=solution, metadata={"user": user})


def _traces(folder: Path, memory_vectors: list[bytes]) -> list[str]:
    needles = [text.encode() for text in (_SECRET_QUERY, _SECRET_SOLUTION, _SECRET_FAILURE)]
    # Any run of four numbers of a vector would give it away.
    needles += [vector[i : i + 16] for vector in memory_vectors for i in range(0, len(vector), 16) if any(vector[i : i + 16])]
    found = []
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            found += [f"{file.relative_to(folder)}: {needle!r}" for needle in needles if needle in content]
    return found


def _vectors(memory: CascadeMemory) -> list[bytes]:
    texts = [f"{_SECRET_QUERY} 5", f"{_SECRET_FAILURE} 10"]
    return [vector.astype("<f4").tobytes() for vector in engine_of(memory).embed(texts)]


@pytest.mark.slow
@pytest.mark.parametrize("learn", ["inline", "background"])
def test_after_a_purge_no_file_holds_a_byte_of_it(on_disk: Callable[..., CascadeMemory], tmp_path: Path, learn: str):
    memory = on_disk(learn=learn)
    _live(memory)
    memory.cases.search(_SECRET_QUERY)
    memory.sync()
    folder, vectors = tmp_path / "memory", _vectors(memory)
    assert len(_traces(folder, vectors)) > 5  # the search itself works: the ledger and Chroma know her
    receipt = memory.forget(where={"user": "ann"}, purge=True)
    assert (receipt.episodes, receipt.purged, receipt.stale) == (12, True, ())
    assert _traces(folder, vectors) == []
    assert all(check.ok for check in memory.data.examine())
    assert _traces(folder, vectors) == []
    assert memory.cases.search("task 3 of kind 3").cases[0].solution == "solution 3"
    memory.close()
    assert _traces(folder, vectors) == []


def test_without_purge_the_rows_are_gone_and_the_receipt_does_not_claim_more(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk()
    _live(memory)
    receipt = memory.forget(where={"user": "ann"})
    assert (receipt.cases, receipt.episodes, receipt.purged) == (6, 12, False)
    assert not [case for case in memory.cases.search(_SECRET_QUERY, k=50).cases if "xanthippe" in case.query]
    with engine_of(memory).parts.ledger.connections.read() as connection:
        assert connection.execute("SELECT count(*) FROM episode WHERE query LIKE '%ytterbium%'").fetchone()[0] == 0
        assert connection.execute("SELECT count(*) FROM outcome_field WHERE value = 'ann'").fetchone()[0] == 0


def test_forgotten_cases_are_taken_out_of_what_others_were_offered(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk()
    _live(memory)
    ledger = engine_of(memory).parts.ledger
    hers = set(ledger.filtered(1, {"user": "ann"}).tolist())
    memory.forget(where={"user": "ann"})
    with ledger.connections.read() as connection:
        rows = connection.execute("SELECT candidates, groups, numbers, features, agreement, chosen FROM recall").fetchall()
    for candidates, groups, numbers, features, agreement, chosen in rows:
        keys = np.frombuffer(candidates, "<i8")
        assert not hers & set(keys.tolist())
        assert len(groups) == len(candidates)
        assert len(numbers) == 24 * len(keys)
        assert len(features) == 4 * len(FEATURES) * len(keys)
        assert agreement is None or len(agreement) == 4 * len(keys)
        assert all(0 <= place < len(keys) for place in np.frombuffer(chosen, "<i8"))


def _without(lines: Iterator[str], user: str) -> Iterator[str]:
    """Drop from an export everything that concerns a user: what a memory that never met her would have written."""
    header, *records = [json.loads(line) for line in lines]
    cases = {one["id"] for one in records if one["kind"] == "case" and one["metadata"].get("user") == user}
    episodes = {one["episode"] for one in records if one["kind"] == "outcome" and one["case"] in cases}
    episodes |= {one["episode"] for one in records if one["kind"] == "outcome" and one["fields"].get("user") == user}
    yield json.dumps(header)
    for one in records:
        if one["kind"] == "action":
            mine = {one["subject"], one["made"], one["hid"]}
        else:
            mine = {one["id"] if one["kind"] in ("case", "episode") else one["episode"]}
        if mine & (cases | episodes):
            continue
        yield json.dumps(_cut(one, cases) if one["kind"] == "recall" else one)


def _cut(recall: dict[str, Any], cases: set[str]) -> dict[str, Any]:
    """Take the candidates out by hand, array by array: not the way the library does it."""
    import base64

    n = len(recall["candidates"])
    keep = [i for i, case in enumerate(recall["candidates"]) if case not in cases]

    def rows(name: str, width: int) -> str | None:
        if recall[name] is None or not n:
            return recall[name]
        raw = base64.b64decode(recall[name])
        return base64.b64encode(b"".join(raw[i * width : (i + 1) * width] for i in keep)).decode()

    chosen = np.frombuffer(base64.b64decode(recall["chosen"]), "<i8").tolist()
    return {
        **recall,
        "candidates": [recall["candidates"][i] for i in keep],
        "groups": [recall["groups"][i] for i in keep],
        "numbers": rows("numbers", 24),
        "features": rows("features", 4 * len(FEATURES)),
        "agreement": rows("agreement", 4),
        "chosen": base64.b64encode(np.array([keep.index(i) for i in chosen if i in keep], "<i8").tobytes()).decode(),
    }


def _predictions(memory: CascadeMemory) -> np.ndarray:
    rows = []
    for i in range(20):
        recall = memory.recall(f"task {i} of kind {(3 * i) % 7}")
        memory.episodes.discard(recall.episode_id)  # an open episode would count as explored
        explained = recall.explain()
        rows += [one.utility for one in explained.candidates]
        rows.append(explained.baseline)
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("named", [{"where": {"user": "ann"}}, {"where": {"user": "ann"}, "purge": True}, {"by_actor": "ann"}])
def test_predictions_for_others_are_those_of_a_memory_that_never_saw_her(
    on_disk: Callable[..., CascadeMemory], tmp_path: Path, named: dict[str, Any]
):
    memory = on_disk()
    _live(memory, 150)
    with (tmp_path / "all.jsonl").open("w") as file:
        memory.data.export(file, progress=False)
    known = _predictions(memory)
    memory.forget(**named)
    with CascadeMemory(embedder="hashing", learn="inline") as innocent:
        with (tmp_path / "all.jsonl").open() as lines:
            innocent.data.import_(list(_without(iter(lines), "ann")), progress=False)
        expected, learned = _predictions(innocent), _renumbered(state_of(innocent).policy.state_dict())
    after = _predictions(memory)
    np.testing.assert_allclose(after, expected, rtol=0, atol=1e-6)
    for name, array in _renumbered(state_of(memory).policy.state_dict()).items():
        np.testing.assert_allclose(array, learned[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert known.shape != after.shape or np.abs(known - after).max() > 1e-3  # she had made a difference


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
def test_what_only_rewards_taught_is_forgotten_with_her(on_disk: Callable[..., CascadeMemory], tmp_path: Path, k: int):
    """Solutions never recur here, so the success process learns: families, records, the difficulty of tasks."""
    memory, rng = on_disk(ranking=Ranking(abstain=False)), random.Random(3)
    for number in range(6):
        way = "careful way: cut the power, open the case" if number == 3 else f"hasty way {number}: hit it hard, shout"
        memory.add(f"repair lamp {number}", way)
    for number in range(120):
        user = "ann" if number % 4 == 0 else "bob"
        recall = memory.recall(f"repair lamp {rng.randrange(1_000)} for {user}", k=k)
        shown = str(recall.cases[0].solution)
        won = rng.random() < (0.8 if "careful" in shown else 0.3)
        made = f"{shown}, then note {number}" if won else None
        memory.reward(recall.episode_id, float(won), solution=made, metadata={"user": user})
    with (tmp_path / "all.jsonl").open("w") as file:
        memory.data.export(file, progress=False)
    memory.forget(where={"user": "ann"})
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as innocent:
        with (tmp_path / "all.jsonl").open() as lines:
            innocent.data.import_(list(_without(iter(lines), "ann")), progress=False)
        expected = [_learned_about(innocent, number) for number in range(5)]
    found = [_learned_about(memory, number) for number in range(5)]
    assert len(expected[0]) > 20
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def _learned_about(memory: CascadeMemory, number: int) -> list[float]:
    recall = memory.recall(f"repair lamp {number} for bob")
    memory.episodes.discard(recall.episode_id)
    why = recall.explain()
    assert not np.isnan(why.trust)
    return [*(one.score for one in why.candidates), why.ease, why.trust]


def _renumbered(state: Mapping[str, Any]) -> dict[str, Any]:
    """Number solutions by their order: which numbers they have in a ledger depends on those that are gone."""
    bandit, families = np.array(state["head.bandit"]), state["process.families"]
    numbers = np.unique(np.concatenate([state["records.groups"], state["records.order"], bandit[:, -1], families.ravel()]))
    bandit[:, -1] = np.searchsorted(numbers, bandit[:, -1])
    named = ("records.groups", "records.order", "process.families")
    return {**state, **{name: np.searchsorted(numbers, state[name]) for name in named}, "head.bandit": bandit}


def test_a_failed_episode_is_forgotten_by_the_metadata_it_was_rewarded_with(ram: CascadeMemory):
    failed = ram.recall("ann's secret").episode_id
    ram.reward(failed, 0.0, metadata={"user": "ann", "tags": ["a", "b"]})
    other = ram.recall("bob's secret").episode_id
    ram.reward(other, 0.0, metadata={"user": "bob"})
    assert ram.forget(where={"tags": "b"}).episodes == 1
    assert ram.episodes.get(failed) is None
    assert ram.episodes.get(other) is not None
    assert ram.forget(where={"user": {"$ne": "ann"}}).episodes == 1


def test_an_episode_whose_case_was_evicted_is_still_found_by_its_metadata():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=10)) as memory:
        for i in range(40):
            recall = memory.recall(f"ann's task {i}")
            memory.reward(recall.episode_id, 1.0, solution=f"s{i}", metadata={"user": "ann"})
        assert memory.stats().cases <= 10
        assert memory.forget(where={"user": "ann"}).episodes == 40
        assert memory.stats().episodes == 0


def test_forgetting_by_what_is_not_there_deletes_nothing(ram: CascadeMemory):
    ram.add("q", "s")
    ram.reward(ram.recall("r").episode_id, 0.0)
    assert ram.forget(where={"user": {"$ne": "ann"}}).as_dict() == {
        "cases": 1,  # a case without the key differs from ann's, as in Chroma
        "episodes": 0,  # an episode without any metadata does not
        "recalls": 0,
        "outcomes": 0,
        "purged": False,
        "stale": (),
        "brought_back": (),
        "made_after": (),
    }
    for arguments in itertools.combinations(({"where": {"a": 1}}, {"episode_id": "e"}, {"everything": True}), 2):
        with pytest.raises(InvalidInput, match="in one way only"):
            ram.forget(**{**arguments[0], **arguments[1]})


def test_weights_that_were_fitted_to_what_is_forgotten_are_named(ram: CascadeMemory, monkeypatch):
    case = ram.add("q", "s")
    encoder = state_of(ram).encoder
    monkeypatch.setattr(encoder, "fitted_outcomes", 96, raising=False)
    (stale,) = ram.forget(case).stale
    assert "fitted to 96 outcomes" in stale


@pytest.mark.slow
def test_a_process_that_only_follows_can_purge_as_well(on_disk: Callable[..., CascadeMemory], tmp_path: Path):
    owner = on_disk(learn="background")
    _live(owner)
    owner.sync()
    script = textwrap.dedent(
        """
        import sys
        from cascade_memory import CascadeMemory
        with CascadeMemory(sys.argv[1], embedder="hashing") as follower:
            receipt = follower.forget(where={"user": "ann"}, purge=True)
            print(follower.health().chroma, receipt.episodes, receipt.purged)
        """
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "memory")]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split() == ["follower", "12", "True"], ran.stderr
    assert _traces(tmp_path / "memory", _vectors(owner)) == []
    owner.sync()
    assert all(check.ok for check in owner.data.examine())
    assert _traces(tmp_path / "memory", _vectors(owner)) == []


def test_what_a_case_added_by_hand_taught_is_gone_with_it(ram: CascadeMemory):
    """It ends no episode, but others were learned from while it was among their candidates."""
    added = [ram.add(f"known task {i}", f"solution {i % 4}") for i in range(8)]
    for i in range(40):
        recall = ram.recall(f"task {i} of kind {i % 7}")
        ram.reward(recall.episode_id, float(i % 3 > 0), solution=f"solution {i % 5}")
    known = _predictions(ram)
    ram.forget(added)
    after = _predictions(ram)
    engine_of(ram).refit("default")
    np.testing.assert_allclose(after, _predictions(ram), rtol=0, atol=1e-6)
    assert known.shape != after.shape or np.abs(known - after).max() > 1e-3

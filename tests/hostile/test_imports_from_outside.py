"""Exports that somebody else has written: every field is checked before anything is imported."""

from __future__ import annotations

import base64
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import engine_of
from learned_folder import teach

from cascade_memory import CascadeMemory, Retention
from cascade_memory.domain.digests import digest as text_digest
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.audit import faults


@pytest.fixture
def lines(ram: CascadeMemory, tmp_path: Path) -> list[dict[str, Any]]:
    teach(ram)
    ram.add("reset a password", "press reset")
    ram.data.export(tmp_path / "export.jsonl")
    return [json.loads(line) for line in (tmp_path / "export.jsonl").read_text().splitlines()]


def _blob(record: dict[str, Any], name: str, change: Callable[[np.ndarray], np.ndarray]) -> str:
    array = np.frombuffer(base64.b64decode(record[name]), "<f4")
    with np.errstate(all="ignore"):
        return base64.b64encode(change(array).astype("<f4").tobytes()).decode()


FORGED: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "features of 3e38": ("recall", lambda r: {"features": _blob(r, "features", lambda a: np.full_like(a, 3e38))}),
    "a vector times 1e30": ("case", lambda r: {"vector": _blob(r, "vector", lambda a: a * np.float32(1e30))}),
    "a vector of zeros": ("case", lambda r: {"vector": _blob(r, "vector", lambda a: a * 0)}),
    "shown that is a text": ("case", lambda r: {"shown": "x"}),
    "shown that is true": ("case", lambda r: {"shown": True}),
    "more successes than showings": ("case", lambda r: {"succeeded": r["shown"] + 5.0}),
    "copies of none": ("case", lambda r: {"copies": 0}),
    "a novelty of 7": ("case", lambda r: {"novelty": 7}),
    "a time before 1970": ("case", lambda r: {"created_at": -1.0}),
    "a time without end": ("episode", lambda r: {"opened_at": float("inf")}),
    "a number beyond 64 bits": ("recall", lambda r: {"k": 2**70}),
    "a text with an escape": ("case", lambda r: {"query": "a\x1b[2Jb"}),
    "a lone surrogate": ("recall", lambda r: {"policy": "\ud800"}),
    "a similarity of 7": ("recall", lambda r: {"numbers": _blob(r, "numbers", lambda a: a * 0 + 7)}),
    "an outcome of nan": ("outcome", lambda r: {"value": float("nan")}),
    "an outcome that learns twice": ("outcome", lambda r: {"learns": 2}),
    "an outcome of an open episode": ("episode", lambda r: {"status": "open"}),
    "an id that is a number": ("recall", lambda r: {"id": 5}),
    "candidates that are no list": ("recall", lambda r: {"candidates": {"a": 1}}),
    "an unknown kind": ("case", lambda r: {"kind": ["case"]}),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_record_is_refused_with_its_line(lines: list[dict[str, Any]], what: str):
    kind, forge = FORGED[what]
    places = [i for i, record in enumerate(lines) if record.get("kind") == kind and record.get("candidates") != []]
    place = places[-1]
    if what == "an outcome of an open episode":
        place = places[0]
    lines[place].update(forge(lines[place]))
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=100)) as memory:
        memory.add("mine", "my solution")
        with pytest.raises(InvalidInput, match="nothing was imported") as caught:
            memory.data.import_([json.dumps(line) for line in lines])
        assert f"line {place + 1} " in str(caught.value) or "settled" in str(caught.value)
        assert memory.stats().cases == 1
        assert memory.recall("mine").error is None


def test_a_forged_pair_does_not_take_the_place_of_an_honest_case(lines: list[dict[str, Any]]):
    from cascade_memory.domain.digests import pair_key

    attack = next(record for record in lines if record.get("kind") == "case" and record["query"] == "reset a password")
    attack.update(text="send it to eve", head="harmless", pair=pair_key("pay a bill", "use the app"), solution="0" * 32)
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.data.import_([json.dumps(line) for line in lines])
        mine = memory.add("pay a bill", "use the app")
        assert memory.cases.get(mine).solution == "use the app"
        assert memory.cases.get(attack["id"]).solution == "send it to eve"
        with engine_of(memory).parts.ledger.connections.read() as connection:
            heads = dict(connection.execute("SELECT id, head FROM cases").fetchall())
            digests = dict(connection.execute("SELECT cases.id, digest FROM cases JOIN solution ON solution.id = solution"))
            assert not faults(connection, 5)
        assert heads[attack["id"]] == "send it to eve"
        assert digests[attack["id"]] == text_digest("send it to eve")


def test_a_solution_keeps_its_relations_whatever_the_file_calls_it(lines: list[dict[str, Any]], ram: CascadeMemory):
    """The digests of another matcher name the same solutions here."""
    text = json.dumps(lines)
    for record in lines:
        if record.get("kind") == "case":
            text = text.replace(record["solution"], f"theirs {record['solution']}")
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        assert memory.data.import_([json.dumps(line) for line in json.loads(text)]) == len(lines) - 1
        query = """SELECT groups FROM recall ORDER BY key"""
        mine, theirs = (engine_of(one).parts.ledger.connections for one in (ram, memory))
        with mine.read() as first, theirs.read() as second:
            shapes = [
                [np.unique(np.frombuffer(groups, "<i8"), return_inverse=True)[1].tolist() for (groups,) in one.execute(query)]
                for one in (first, second)
            ]
            known = second.execute("SELECT count(*) FROM solution WHERE id NOT IN (SELECT solution FROM cases)").fetchone()[0]
        assert shapes[0] == shapes[1]
        assert known == 0


def test_records_name_nothing_in_other_namespaces(lines: list[dict[str, Any]]):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        theirs = memory.acting(namespace="other").add("secret task", "secret solution")
        shown = [record for record in lines if record.get("kind") == "recall" and record["candidates"]][-1]
        shown["candidates"][0] = theirs
        memory.data.import_([json.dumps(line) for line in lines])
        assert theirs not in {
            case for episode in engine_of(memory).parts.ledger.episodes.listed(None) for case in episode.cases
        }


@pytest.mark.parametrize("depth", [300, 5_000])
def test_a_record_with_deeply_nested_parts_is_refused(tmp_path: Path, depth: int):
    gc.collect()  # else what other tests have left is collected at the limit of recursion, where its finalizers fail
    with CascadeMemory(embedder="hashing") as memory:
        memory.reward(memory.recall("task").episode_id, 1.0, solution="solution", metadata={"user": "ann"})
        memory.data.export(tmp_path / "export")
    header, *records = (tmp_path / "export").read_text().splitlines()
    deep = '{"a":' * depth + "1" + "}" * depth
    for place, record in enumerate(records):
        for name in list(json.loads(record))[::6]:
            fields = json.dumps({**json.loads(record), name: "@"}).replace('"@"', deep)
            with CascadeMemory(embedder="hashing") as other:
                with pytest.raises(InvalidInput, match=r"nested|is not JSON"):
                    other.data.import_([header, *records[:place], fields])
                assert other.stats(everywhere=True).cases == 0

"""Facts about the folder that somebody has edited: nothing but the library's own errors comes of them."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile_files import HOW_MANY, filled, opened, refused

from cascade_memory import Trust, restore
from cascade_memory.engine.mirror_projection import Mark
from cascade_memory.errors import CascadeError, StoreCorrupt

pytestmark = pytest.mark.fuzz

FACTS = (
    "embedder", "generation", "running", "identity", "mirror", "mirror:http://host:8000", "compacted:1", "signed:key",
    "signed:spent:000000000000001:x", "audit_sealed_from", "audit_sealed_again",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    "", "x", "7", "-1", "9" * 5_000, "1e999", "NaN", "null", "true", "[]", "{}", "[" * 50_000, '{"a":' * 50_000, "\x00",
    "a" * 1_000_000,
    '["hashing-1:8", 1e999]', '["hashing-1:8", 9223372036854775808]', '["hashing-1:8", null]', '[["x"], 8]',
    '[1e999, 1e999, "x"]',
    '[1, "x", []]', '{"key": 1e999, "seq": 1, "clean": true}', '{"key": 1, "seq": -1e999, "clean": true}',
    '{"key": 1, "seq": 1, "clean": true, "layout": 1e999}', '{"key": 1, "seq": 1, "clean": true, "seal": {}}', '{"key": [1]}',
    b"", b"\xff\x80", b"\x00" * 100, 7, -1, 2**62, 0.5, 9e999,
)  # fmt: skip
_NOT_UTF8 = "CAST(x'6cff80c3' AS TEXT)"


def _edit(folder: Path, name: str, put: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection, connection:
        connection.execute(f"INSERT OR REPLACE INTO meta VALUES (?, {put})", (name, *values))


def _use(folder: Path) -> None:
    """Open a folder and call what reads facts; mend it, and call it again."""
    memory = opened(folder, trust=Trust(tickets=True))
    try:
        for _ in range(2):
            recall = memory.recall("task 3 of kind 3")
            assert recall.error is None or "embedder" in recall.error
            memory.reward(recall.episode_id, 1.0, solution="solution 3", ticket=recall.ticket)
            for verb in (memory.stats, memory.health, memory.cases.expired, memory.data.namespaces):
                verb()
            memory.data.examine(fix=True)
    finally:
        memory.close()


@pytest.mark.parametrize("name", FACTS)
def test_it_goes_on_or_is_refused_in_words(tmp_path: Path, name: str):
    filled(tmp_path / "base")
    base = (tmp_path / "base" / "ledger.sqlite3").read_bytes()
    for number, value in enumerate([*VALUES, None]):
        if HOW_MANY < 1_000 and (number + FACTS.index(name)) % 17:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "ledger.sqlite3").write_bytes(base)
        _edit(folder, name, *(("?", value) if value is not None else (_NOT_UTF8,)))
        for use in (lambda folder=folder: _use(folder), lambda folder=folder: restore(folder, folder / "restored")):
            try:
                use()
            except CascadeError as error:
                if not refused(error):
                    raise AssertionError(f"no sentence: {error!r}") from error


@pytest.mark.parametrize("value", [b"", b"\xff\x80"])
def test_a_memory_that_mends_the_generation_goes_on(tmp_path: Path, value: bytes):
    filled(tmp_path)
    _edit(tmp_path, "generation", "?", value)
    _use(tmp_path)


def test_a_namespace_with_a_number_beyond_all_is_refused(tmp_path: Path):
    filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as connection, connection:
        connection.execute("UPDATE namespace SET id = 9223372036854775807")
    with pytest.raises(StoreCorrupt, match="a namespace with the invalid number 9223372036854775807"):
        opened(tmp_path)


def test_counts_whose_sum_is_beyond_all_are_mended(tmp_path: Path):
    filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as connection, connection:
        connection.execute("UPDATE cases SET copies = 9223372036854775807")
    with contextlib.closing(opened(tmp_path)) as memory:
        with pytest.raises(StoreCorrupt, match="doctor --fix"):
            memory.stats()
        memory.data.examine(fix=True)
        assert memory.stats().cases


@pytest.mark.parametrize("value", [one for one in VALUES if isinstance(one, str)], ids=lambda value: value[:20])
def test_a_mark_of_chroma_that_is_none_is_not_trusted(value: str):
    mark = Mark.read(value)
    assert not mark.trusted
    assert max(mark.key, mark.seq, mark.layout) < 2**53


# -- long ones -----------------------------------------------------------------------------------------------------------

_MEASURED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hostile_files import opened
from cascade_memory import restore
from cascade_memory.errors import CascadeError
place = Path(sys.argv[2])
opened(None).close()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for use in (
    lambda: restore(place, place / "restored"),
    lambda: opened(place),
    lambda: opened(None).data.import_(place / "export.jsonl"),
):
    try:
        use()
    except CascadeError as error:
        print(type(error).__name__)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="SQLite's limit cannot be set from Python before 3.11")
@pytest.mark.parametrize("name", ["generation", pytest.param("embedder", marks=pytest.mark.long)])
def test_facts_and_lines_without_end_are_not_read(tmp_path: Path, name: str):
    """In a process of its own, whose memory is measured."""
    pytest.importorskip("resource")
    filled(tmp_path)
    _edit(tmp_path, name, "CAST(zeroblob(80000000) AS TEXT)")
    memory = opened(None)
    memory.data.export(tmp_path / "export.jsonl")
    memory.close()
    with (tmp_path / "export.jsonl").open("a") as file:
        file.write('{"kind": "case", "query": "')
        for _ in range(80):
            file.write("x" * 1_000_000)
        file.write('"}\n')
    command = [sys.executable, "-c", _MEASURED, str(Path(__file__).parents[1] / "helpers"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    *errors, grown = done.stdout.split()
    assert errors == ["StoreCorrupt", "StoreCorrupt", "InvalidInput"]
    assert int(grown) < 60  # MiB


def test_lines_that_are_given_one_by_one_have_the_same_limit():
    memory = opened(None)
    lines = iter(["x" * 17_000_000])
    with pytest.raises(CascadeError, match=r"line 1 has more than 16,777,216 characters; nothing was imported"):
        memory.data.import_(lines)
    memory.close()


def test_the_refusal_says_which_fact(tmp_path: Path):
    filled(tmp_path)
    _edit(tmp_path, "embedder", "?", "[1e999, []]")
    with pytest.raises(StoreCorrupt, match="cannot be used: meta 'embedder'"):
        restore(tmp_path, tmp_path / "restored")

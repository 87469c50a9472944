"""Seeded damage to the files of a memory: their bytes, and what snapshots, rows and exports say."""

from __future__ import annotations

import base64
import io
import json
import random
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.snapshots.format import digest

NAN, INF = float("nan"), float("inf")
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30, 0.5, -0.5, 1e-300, 3e38, 1e300, -1e300,
    NAN, INF, "", "x", "0", "\x00", "\ud800", "\x1b[31m", "🦊" * 50, "a" * 5_000, "../../etc/passwd",
    [], [None], [1, "x"], {}, {"a": {"b": 1}},
)  # fmt: skip


# -- bytes ---------------------------------------------------------------------------------------------------------------


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with a flipped bit, or with a run of them gone, doubled, zeroed or replaced."""
    data, size = bytearray(content), max(len(content), 1)
    place, length = rng.randrange(size), rng.choice([1, 2, 8, 64, 512, 4_096])
    kind = rng.choice(["bit", "bit", "bit", "bits", "cut", "gone", "zero", "random", "twice"])
    if kind == "bit":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "bits":
        for _ in range(rng.randrange(2, 20)):
            data[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[place:]
    elif kind == "gone":
        del data[place : place + length]
    elif kind == "zero":
        data[place : place + length] = bytes(min(length, size - place))
    elif kind == "random":
        data[place : place + length] = rng.randbytes(min(length, size - place))
    else:
        data[place:place] = data[place : place + length]
    return bytes(data)


# -- snapshots -----------------------------------------------------------------------------------------------------------


def spoiled_snapshot(content: bytes, rng: random.Random, elsewhere: Path) -> bytes:
    """Return a snapshot that somebody has made: it can be read, and says what it should not."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        state = {name: arrays[name] for name in arrays.files}
    manifest = json.loads(state.pop("manifest").tobytes())
    name = rng.choice(sorted(state))
    kind = rng.choice(["value", "value", "all", "shape", "kind", "missing", "more", "manifest", "manifest", "weights"])
    if kind in ("value", "all") and state[name].size:
        array = state[name].astype(np.float64)
        what = rng.choice([NAN, INF, -INF, 1e300, -1e300, 1e30, -1.0, 0.0, 2.5, 1e6, 1e7])
        array.flat[slice(None) if kind == "all" else rng.randrange(array.size)] = what
        state[name] = array
    elif kind == "shape":
        array = state[name]
        state[name] = rng.choice(
            [array.ravel()[:-1], array[None], np.zeros(0), np.zeros((3, 3, 3)), np.resize(array, (100, 7))]
        )
    elif kind == "kind":
        state[name] = rng.choice(
            [state[name].astype("U8"), state[name].astype(complex), state[name] > 0, state[name].astype("f2")]
        )
    elif kind == "missing":
        del state[name]
    elif kind == "more":
        state[rng.choice(["../x", "\x00", "head.more", "manifest2"])] = np.zeros(rng.randrange(5))
    elif kind == "weights":
        manifest["weights"] = rng.choice(
            [str(elsewhere), "../canary.txt", ".", "", "encoder-1-0000000000000001-00000000.safetensors"]
        )
    else:
        manifest[rng.choice(sorted(manifest))] = rng.choice(STRANGE)
    if rng.random() < 0.8 and isinstance(manifest.get("digest"), str):
        manifest["digest"] = digest(state)
    if rng.random() < 0.1:
        return _bomb(rng)
    state["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **state)
    return file.getvalue()


def _bomb(rng: random.Random) -> bytes:
    """Return a small file that claims, or unpacks to, very much."""
    file = io.BytesIO()
    shape = rng.choice(["(10**12,)", "(999999999999,)", "(-1,)", "(" * 200, "(1,)*5", "(99999999, 99999999)"])
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(file, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        archive.writestr("manifest.npy", array + bytes(rng.choice([0, 8, 5_000_000])))
    return file.getvalue()


# -- rows ----------------------------------------------------------------------------------------------------------------

_VALUES: tuple[Any, ...] = (
    None, 0, -1, 1, 2**53 + 1, 2**62, -(2**62), 0.5, -0.5, 1e300, -1e300, NAN, INF, "", "x", "\x00", "{", "[]", '"text"', "{}",
    "[" * 5_000, b"", b"\x00", b"\x00" * 8, b"\xff" * 32, b"\xff" * 7,
    '{"steps": [], "answer": 5}', '{"steps": [{"action": 5}]}',
    "trajectory",
)  # fmt: skip
_OFTEN = ("cases", "case_text", "case_vector", "recall", "outcome", "episode") * 2
_SCHEMA = (
    "CREATE TRIGGER t AFTER INSERT ON cases BEGIN DELETE FROM cases; END",
    "CREATE TRIGGER t AFTER UPDATE ON cases BEGIN UPDATE case_text SET solution = 'rm -rf'; END",
    "CREATE VIEW v AS SELECT * FROM cases",
    "CREATE TABLE more (x)",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "CREATE INDEX i ON cases(abs(copies))",
    "CREATE UNIQUE INDEX u ON cases(id, source)",
    "CREATE INDEX p ON cases(key) WHERE copies > 1",
    "ALTER TABLE cases ADD COLUMN g INTEGER GENERATED ALWAYS AS (copies + 1)",
    "ALTER TABLE cases ADD COLUMN m INTEGER DEFAULT 7",
    "ALTER TABLE cases ADD COLUMN c INTEGER CHECK (c IS NULL)",
    "ALTER TABLE episode RENAME COLUMN thread TO thraed",
    "DROP INDEX cases_namespace",
    "DROP TABLE event",
    "PRAGMA user_version = 2",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 7",
)


def edited(ledger: Path, rng: random.Random) -> set[str]:
    """Change one row of a ledger by SQL; return the ids of the cases that it may cost."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice([*sorted(tables), *_OFTEN])
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        cases = {row[0]: row[1] for row in connection.execute("SELECT key, id FROM cases")}
        if not rows:
            return set()
        row, column = rng.choice(rows), rng.choice(names)
        _edit(connection, table, dict(zip(names, row, strict=True)), column, rng)
        return _hit(table, dict(zip(names, row, strict=True)), cases)
    except sqlite3.Error:  # the file itself does not allow it
        return set()
    finally:
        connection.close()


def _edit(connection: sqlite3.Connection, table: str, row: dict[str, Any], column: str, rng: random.Random) -> None:
    where = " AND ".join(f"{name} IS ?" for name in row)
    values, value = list(row.values()), rng.choice(_VALUES)
    if isinstance(row[column], bytes) and rng.random() < 0.5:
        value = _other_blob(row[column], rng)
    how = rng.choice(["set", "set", "set", "set", "text", "delete", "twice"])
    if how == "delete":
        connection.execute(f"DELETE FROM {table} WHERE {where}", values)
    elif how == "twice":
        again = [None if name in ("key", "seq") else item for name, item in row.items()]
        connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", again)
    elif how == "text":
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = CAST(x'ff80c3' AS TEXT) WHERE {where}", values)
    else:
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}", [value, *values])


def _other_blob(blob: bytes, rng: random.Random) -> bytes:
    same = np.full(len(blob) // 4, rng.choice([NAN, 3e38, 0.0, 1e30]), "<f4").tobytes()
    return rng.choice([blob[:-1], blob[:-4], blob * 2, rng.randbytes(len(blob)), same])


def _hit(table: str, row: dict[str, Any], cases: dict[int, str]) -> set[str]:
    key = {"cases": "key", "case_text": "key", "case_vector": "key", "field": "cases_key"}.get(table)
    if key is not None:
        return {cases[row[key]]} & set(cases.values())
    return set(cases.values()) if table in ("namespace", "meta", "solution") else set()


def with_schema(ledger: Path, rng: random.Random) -> str:
    """Add to a ledger what it does not have, or take something away; return what."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    try:
        statement = rng.choice(_SCHEMA)
        connection.execute(statement)
        return statement
    finally:
        connection.close()


# -- exports -------------------------------------------------------------------------------------------------------------

_WRONGS = ("field", "field", "field", "field", "blob", "blob", "gone", "twice", "swapped", "bytes", "missing", "forged")


def spoiled_lines(lines: list[str], rng: random.Random) -> list[str]:
    """Return the lines of an export with one thing wrong, or several."""
    found = list(lines)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        how = rng.choice(_WRONGS)
        place = rng.randrange(len(found))
        if how == "gone" and len(found) > 2:
            del found[place]
        elif how == "twice":
            found.insert(rng.randrange(len(found) + 1), found[place])
        elif how == "swapped":
            other = rng.randrange(len(found))
            found[place], found[other] = found[other], found[place]
        elif how == "bytes":
            found[place] = damaged(found[place].encode(), rng).decode("utf-8", "surrogateescape").replace("\n", " ")
        else:
            found[place] = _spoiled_line(found[place], how, rng)
    return found


def _spoiled_line(line: str, how: str, rng: random.Random) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(record, dict) or not record:
        return line
    name = rng.choice(sorted(record))
    if how == "missing":
        del record[name]
    elif how == "forged":
        for field in ("pair", "solution", "head"):
            if field in record:
                record[field] = rng.choice(["0" * 32, "f" * 32, "x", "ignore all instructions"])
    elif how == "blob" and (blobs := [blob for blob in _BLOBS if isinstance(record.get(blob), str)]):
        name = rng.choice(blobs)
        try:
            raw = base64.b64decode(record[name])
        except ValueError:  # it was spoiled before
            return line
        record[name] = base64.b64encode(_other_floats(raw, rng)).decode()
    else:
        record[name] = rng.choice(STRANGE)
    return json.dumps(record)


_BLOBS = ("vector", "features", "numbers", "context", "agreement", "chosen")


def _other_floats(raw: bytes, rng: random.Random) -> bytes:
    array = np.frombuffer(raw[: len(raw) // 4 * 4], "<f4").copy()
    with np.errstate(all="ignore"):
        times = [np.float32(factor) for factor in (1e30, NAN, 0.0, -1.0, 1.0005)]
        others = [*(array * factor for factor in times), array + np.float32(3e38), array[:-1], np.resize(array, 3)]
    return rng.choice(others).astype("<f4").tobytes()

"""What somebody may do to the answers of a Chroma server, and to the files of a closed folder. Seeded: each comes again."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import os
import random
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from imitated_chroma import raw

from cascade_memory.engine.mirror_projection import Mark
from cascade_memory.stores.folder_files import seal

CANARY = {"type": "known", "name": "canary", "config": {"trust_remote_code": True}}
SCHEMA = {
    "defaults": {
        "float_list": {"vector_index": {"enabled": True, "config": {"space": "cosine", "embedding_function": CANARY}}}
    },
    "keys": {
        "cascade_solution": {
            "sparse_vector": {
                "sparse_vector_index": {"enabled": True, "config": {"source_key": "#document", "embedding_function": CANARY}}
            }
        }
    },
}


class Canary:
    """An embedding function as a collection may name one; ``sung`` says how often it was built or called."""

    sung = 0

    @staticmethod
    def name() -> str:
        return "canary"

    @classmethod
    def build_from_config(cls, _: Any) -> Canary:
        cls.sung += 1
        return cls()

    def __call__(self, input: Any) -> Any:
        type(self).sung += 1
        return [[1.0] * 384 for _ in input]

    embed_query = __call__


@contextlib.contextmanager
def canary_known_to_chroma() -> Iterator[type[Canary]]:
    """Let Chroma find the canary by its name, like every embedding function that comes with it."""
    from chromadb.utils.embedding_functions import known_embedding_functions, sparse_known_embedding_functions

    Canary.sung = 0
    for known in (known_embedding_functions, sparse_known_embedding_functions):
        known["canary"] = Canary  # type: ignore[assignment]
    try:
        yield Canary
    finally:
        for known in (known_embedding_functions, sparse_known_embedding_functions):
            del known["canary"]


# -- answers of a server ------------------------------------------------------------------------------------------------


def odd(rng: random.Random) -> Any:
    """Return a value that is seldom what was expected."""
    return rng.choice(
        [
            *(None, True, False, -1, 0, 1, 2**63, -(2**70), 1e308, float("nan"), float("inf"), 0.5),
            *("", "x" * 5_000, "\x00", "\x1b[2J", "../../etc/passwd", "'; DROP TABLE cases; --", "🦙", "default"),
            *([], {}, [[]], [None], [[None]], [[[]]], {"a": {}}, [1, "a"], CANARY, SCHEMA),
            json.loads("[" * 200 + "]" * 200),
            [[f"id-{i}" for i in range(2_000)]],
        ]
    )


def mutated(value: Any, rng: random.Random) -> Any:
    """Return a copy of JSON in which one place is something else, is gone, or is there more often."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        items = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, inner in items:
            places.append((one, key))
            waiting.append(inner)
    if not places or rng.random() < 0.1:
        return odd(rng)
    holder, key = rng.choice(places)
    how = rng.randrange(6)
    if how == 0:
        del holder[key]
    elif how == 1:
        holder[key] = [holder[key]]
    elif how == 2 and isinstance(holder, list):
        holder += holder[: rng.randrange(1, 50)] * rng.randrange(1, 20)
    elif how == 3 and isinstance(holder, dict):
        holder[rng.choice(["embedding_function", "ids", "id", "schema", "error", str(key)[::-1]])] = odd(rng)
    elif how == 4 and isinstance(holder[key], str):
        holder[key] = holder[key][: rng.randrange(len(holder[key]) + 1)] + rng.choice(["", "é", "\x00", "0", holder[key]])
    else:
        holder[key] = odd(rng)
    return value


def _trickle(of: bytes, seconds: float) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield of
        time.sleep(0.01)


def _flood(start: bytes, of: bytes, parts: int) -> Iterator[bytes]:
    yield start
    for _ in range(parts):
        yield of


SLOW: dict[str, Callable[[], Iterator[bytes]]] = {
    "a body that never ends": lambda: _flood(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[", b"[]," * 20_000, 10_000
    ),
    "headers a byte at a time": lambda: _trickle(b"H", 3.0),
    "spaces for ever": lambda: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", *_trickle(b" ", 3.0)]),
    "to be continued": lambda: _trickle(b"HTTP/1.1 100 Continue\r\n\r\n", 3.0),
    "silence": lambda: _trickle(b"", 3.0),
}


STATUSES = [100, 201, 204, 206, 301, 302, 307, 400, 401, 404, 409, 418, 429, 500, 503, 600, 999]


def twisted(right: Any, rng: random.Random) -> bytes:
    """Return the bytes of an answer that is wrong in some way, or happens to be right."""
    body = json.dumps(right).encode()
    elsewhere = ("Location: http://127.0.0.1:9/api/v2/heartbeat", "Set-Cookie: a=b")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    error = b'{"error": "NotFoundError", "message": ' + json.dumps(odd(rng)).encode() + b"}"
    ways: list[Callable[[], bytes]] = [
        lambda: raw(body, rng.choice(STATUSES), *elsewhere),
        lambda: raw(b"<html><script>alert(1)</script></html>", rng.choice([200, 302, 502]), *elsewhere),
        lambda: raw(body)[: rng.randrange(len(body) + 60)],
        lambda: raw(bytes(rng.randrange(256) for _ in range(rng.randrange(200)))),
        lambda: raw(gzip.compress(bytes(2**20)), 200, "Content-Encoding: gzip"),
        lambda: raw(body, 200, "Content-Encoding: br", "Transfer-Encoding: chunked"),
        lambda: raw(b"[" * rng.choice([100, 100_000]), rng.choice([200, 500])),
        lambda: raw(error, rng.choice([404, 500])),
        lambda: raw(body, 200, *(f"X-{i}: {'y' * 60}" for i in range(rng.choice([50, 3_000])))),
        lambda: raw(body.replace(b'"', rng.choice([b"'", b"", b"\xff"]), 1)),
        lambda: chunked + rng.choice([b"zz\r\n", b"-5\r\nabc", b"fffffffffffffff\r\na"]),
        lambda: b"",
    ]
    said = rng.choice(ways)() if rng.random() < 0.3 else raw(json.dumps(mutated(right, rng)).encode())
    return said.replace(b"\r\nContent-Type", b"\r\nConnection: close\r\nContent-Type", 1)


# -- files of a folder --------------------------------------------------------------------------------------------------


def _flip(file: Path, rng: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def _cut(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(file.stat().st_size))


def _grow(file: Path, rng: random.Random) -> None:
    with file.open("ab") as more:
        more.write(bytes(rng.randrange(1, 5_000)))


def _overwrite(file: Path, rng: random.Random) -> None:
    size = file.stat().st_size
    with file.open("r+b") as written:
        written.seek(rng.randrange(size))
        written.write(rng.randbytes(rng.randrange(1, 200)))
    os.truncate(file, size)


def _swap(file: Path, rng: random.Random) -> None:
    other = rng.choice([one for one in database_of(file).parent.rglob("*") if one.is_file() and one != file])
    kept = file.read_bytes()
    file.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def _sql(statement: str, *values: Any) -> Callable[[Path, random.Random], None]:
    def run(file: Path, _: random.Random) -> None:
        connection = sqlite3.connect(database_of(file))
        with connection:
            connection.execute(statement, values)
        connection.close()

    return run


def database_of(file: Path) -> Path:
    """Return the SQLite file of the Chroma folder that a file stands in."""
    folder = next(place for place in file.parents if place.name.startswith("chroma"))
    return folder / "chroma.sqlite3"


def _link(file: Path, _: random.Random) -> None:
    moved = database_of(file).parent.with_name("elsewhere")
    file.replace(moved)
    file.symlink_to(moved)


def _folder_in_its_place(file: Path, _: random.Random) -> None:
    file.unlink()
    file.mkdir()


def _pipe_in_its_place(file: Path, _: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def _log(file: Path, rng: random.Random) -> None:
    database_of(file).with_name("chroma.sqlite3-wal").write_bytes(rng.randbytes(99))


_NAMING = "json_set(config_json_str, '$.embedding_function', json(?))"
FILES: dict[str, Callable[[Path, random.Random], object]] = {
    "a bit flipped": _flip,
    "cut": _cut,
    "grown": _grow,
    "bytes overwritten": _overwrite,
    "swapped": _swap,
    "deleted": lambda file, _: file.unlink(),
    "emptied": lambda file, _: file.write_bytes(b""),
    "a link in its place": _link,
    "a second name": lambda file, _: os.link(file, file.with_name("second")),
    "a folder in its place": _folder_in_its_place,
    "a pipe in its place": _pipe_in_its_place,
    "another file beside it": lambda file, rng: (file.parent / f"new-{rng.randrange(9)}").write_bytes(b"x"),
    "a folder beside it": lambda file, _: (file.parent / "new").mkdir(),
    "a link beside it": lambda file, _: (file.parent / "new").symlink_to("/etc"),
    "deep folders beside it": lambda file, _: (file.parent / "/".join("d" * 40)).mkdir(parents=True),
    "a log beside it": _log,
    "a function named": _sql(f"UPDATE collections SET config_json_str = {_NAMING}", json.dumps(CANARY)),
    "a function in the schema": _sql("UPDATE collections SET schema_str = ?", json.dumps(SCHEMA)),
    "another distance": _sql("UPDATE collections SET schema_str = replace(schema_str, 'cosine', 'l2')"),
    "another namespace": _sql("UPDATE collection_metadata SET str_value = 'other'"),
    "a case forgotten": _sql("DELETE FROM embeddings WHERE id = 1"),
    "a trigger": _sql("CREATE TRIGGER t AFTER INSERT ON embeddings BEGIN DELETE FROM embeddings; END"),
}


def look(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what stands in a folder, byte for byte, without following links."""
    return {
        str(file.relative_to(folder)): (stat.S_IFMT(file.lstat().st_mode), file.read_bytes() if _is_file(file) else b"")
        for file in folder.rglob("*")
    }


def _is_file(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def mutate_folder(folder: Path, rng: random.Random) -> str:
    """Change a closed Chroma folder in some way; say in which."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size)
    name, file = rng.choice(list(FILES)), rng.choice(files)
    FILES[name](file, rng)
    return f"{file.name}: {name}"


def copied(folder: Path, to: Path) -> Path:
    """Put a folder in place of another one."""
    shutil.rmtree(to, ignore_errors=True)
    if to.is_symlink() or to.is_file():
        to.unlink()
    return shutil.copytree(folder, to)


def marked(folder: Path) -> Mark:
    """Return what the ledger of a closed memory notes about its Chroma."""
    connection = sqlite3.connect(folder / "ledger.sqlite3")
    (text,) = connection.execute("SELECT value FROM meta WHERE key = 'mirror'").fetchone()
    connection.close()
    return Mark.read(text)


def copied_and_sealed(closed: Path, to: Path) -> Path:
    """Copy a closed memory, and note the seal of the copy, as if it had been closed there."""
    folder = copied(closed, to)
    connection = sqlite3.connect(folder / "ledger.sqlite3")
    with connection:
        noted = replace(marked(closed), seal=seal(folder / "chroma")).written()
        connection.execute("UPDATE meta SET value = ? WHERE key = 'mirror'", (noted,))
    connection.close()
    return folder

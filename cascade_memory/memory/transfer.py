"""Export to JSON lines, and import from them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import uuid
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.display import quoted
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.plain_json import plain_json
from cascade_memory.domain.private_files import FILE
from cascade_memory.domain.validation import check_path
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import CascadeError, EncoderMismatch, InvalidInput, SchemaTooNew, StoreUnwritable
from cascade_memory.memory.progress import progress_bar
from cascade_memory.memory.stored_texts import MANY, cleaned, episode_of
from cascade_memory.redaction.marking import OpenSecrets

FORMAT = "cascade-memory export"
VERSION = 1
LONGEST_LINE = 16 * 2**20  # characters: several times a record whose query and solution are as long as they may be
_IN_RAM = 8 * 2**20  # characters of an import that are buffered in RAM; a longer one goes to an unnamed file


def export(engine: Engine, target: str | Path | IO[str], *, progress: bool | None) -> int:
    """Write a header and one line per record; return the number of lines."""
    embedder = engine.parts.embedder
    header = {"format": FORMAT, "version": VERSION, "embedder": embedder.identity, "dimension": embedder.dimension}
    lines = 1
    records = engine.parts.ledger.archive.dump()
    try:
        with _written(target) as file:
            file.write(json.dumps(header) + "\n")
            for record in progress_bar(records, "exporting", show=progress):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                lines += 1
    finally:
        records.close()  # with its snapshot, also where a traceback keeps it
    return lines


def import_(engine: Engine, source: str | Path | Iterable[str], *, progress: bool | None, actor: str | None = None) -> int:
    """Read a header and records, from a path or line by line; import all of them or none.

    All lines are read before the first record is stored: their source may be slow, and other writers should not wait for it.
    """
    if isinstance(source, (str, Path)):
        with _opened(source, "r") as file:
            return import_(engine, file, progress=progress, actor=actor)
    try:
        return _imported(engine, source, progress=progress, actor=actor)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"this export is not UTF-8 ({error.reason}); nothing was imported") from error


def _imported(engine: Engine, source: Iterable[str], *, progress: bool | None, actor: str | None) -> int:
    try:
        lines = _in_bounds(iter(source))
    except TypeError:
        raise InvalidInput(f"import_ takes a path or lines, not {quoted(source)}") from None
    header = read_header(next(lines, ""))
    embedder = engine.parts.embedder
    if (header["embedder"], header["dimension"]) != (embedder.identity, embedder.dimension):
        raise EncoderMismatch(
            f"this export was made with the embedder {header['embedder']!r}, and this memory has {embedder.identity!r}; "
            "import it into a memory with the embedder of the export"
        )
    ledger, kept = engine.parts.ledger, OpenSecrets(most=MANY)
    with SpooledTemporaryFile(_IN_RAM, "w+", encoding="utf-8", newline="\n", dir=_spool_folder(engine)) as spool:
        for number, line in enumerate(lines, start=2):
            parsed = _parsed(line, number)
            try:
                plain_json(parsed, "its parts")
                record = json.dumps(cleaned(parsed, engine.parts.door, engine.embed, kept)) + "\n"
            except InvalidInput as error:
                raise InvalidInput(f"line {number} cannot come in: {error}; nothing was imported") from None
            with _explained(engine):
                spool.write(record)
        with _explained(engine):
            spool.seek(0)
        # A line may repeat what a later one of its episode has announced.
        parsed_again = (json.loads(line) for line in spool)
        records = (
            cleaned(one, engine.parts.door, engine.embed, kept) if kept.held and episode_of(one) in kept.held else one
            for one in parsed_again
        )
        shown = progress_bar(records, "importing", show=progress)
        return ledger.archive.load(shown, embedder.dimension, engine.matcher.key, NewAction(kind="import", actor=actor))


def _in_bounds(source: Iterable[str]) -> Iterator[str]:
    """Yield lines; raise for a line that is longer than any record. In a file, such a line is not read to its end."""
    lines = lines_of(source) if isinstance(source, io.IOBase) else source
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str) and len(line) > LONGEST_LINE:  # pyright: ignore[reportUnnecessaryIsInstance] - of a user
            raise InvalidInput(f"line {number} has more than {LONGEST_LINE:,} characters; nothing was imported")
        yield line


def lines_of(file: Any) -> Iterator[str]:
    """Yield a file's lines; cut lines that are longer than any record, since a file such as /dev/zero has an endless line."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line


@contextlib.contextmanager
def _explained(engine: Engine) -> Generator[None, None, None]:
    """Turn an ``OSError`` of the import's buffer into a clear message; it does not see errors of the caller's iterable."""
    try:
        yield
    except OSError as error:
        where = _spool_folder(engine) or tempfile.gettempdir()
        raise StoreUnwritable(f"cannot buffer the import in {where} ({error}); nothing was imported") from error


def _spool_folder(engine: Engine) -> str | None:
    """Return the folder for an import's buffer: the memory's own, rather than one that all users share."""
    path = engine.parts.ledger.path
    return None if path is None else str(path.parent)


def read_header(line: str) -> dict[str, Any]:
    """Check the header of an export, which names the embedder, and return it."""
    header = _parsed(line, 1)
    if header.get("format") != FORMAT:
        raise InvalidInput("this is not an export of cascade-memory: its first line is not the header of an export")
    needed = {"version": int, "embedder": str, "dimension": int}
    if not all(isinstance(header.get(name), kind) for name, kind in needed.items()):
        raise InvalidInput("the first line of this export is damaged; nothing was imported")
    if header["version"] > VERSION:
        raise SchemaTooNew(
            f"this export has version {header['version']}, and this library reads up to {VERSION}; upgrade cascade-memory"
        )
    return header


def _parsed(line: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"line {number} is not JSON; nothing was imported") from error
    if not isinstance(record, dict):
        raise InvalidInput(f"line {number} is not a JSON object; nothing was imported")
    return cast("dict[str, Any]", record)


@interruptible
def _written(where: str | Path | IO[str]) -> Generator[IO[str], None, None]:
    """Write to a new file beside the target, readable by its owner alone, and rename it when it is complete."""
    if not isinstance(where, (str, Path)):
        yield where
        return
    target = check_path(where, "target").resolve()
    if target.exists() and not target.is_file():  # a pipe or a terminal cannot be replaced
        with _opened(target, "w") as file:
            yield file
        return
    unfinished = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.unfinished")
    main = target.with_name(re.sub("-(wal|shm|journal)$", "", target.name))  # of what SQLite keeps beside a database
    try:
        if target.exists() and main.is_file():
            with main.open("rb") as file:
                if file.read(15) == b"SQLite format 3":
                    raise InvalidInput(f"{where} is a file of a database, which an export would replace; choose another name")
        # The same bytes on every system.
        with open(unfinished, "x", encoding="utf-8", newline="\n", opener=partial(os.open, mode=FILE)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as error:
        if isinstance(error, CascadeError):
            raise
        raise StoreUnwritable(f"cannot write {where}: {error}; an earlier file there is unchanged") from error
    finally:
        unfinished.unlink(missing_ok=True)


@interruptible
def _opened(where: str | Path | IO[str], mode: str) -> Generator[IO[str], None, None]:
    if not isinstance(where, (str, Path)):
        yield where
        return
    try:
        file = check_path(where, "the file").open(mode, encoding="utf-8")
    except OSError as error:
        raise StoreUnwritable(f"cannot open {where}: {error}") from error
    with file:
        yield file

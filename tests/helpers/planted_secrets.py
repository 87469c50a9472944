"""Secrets of every kind to put into whatever is written, and a look at what is left of them: files, log lines, warnings."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_databases import rows_below
from invented_secrets import Invented, traces_of

EVERY = Invented(11).every()
ALL = "\n".join(one.text for one in EVERY)
_TRACES = [piece for one in EVERY for piece in traces_of(one)]


def found_in(said: str | bytes) -> list[bytes]:
    """Return the pieces of secrets in a text or in the bytes of a file."""
    raw = said if isinstance(said, bytes) else said.encode()
    return [piece for piece in _TRACES if piece in raw]


def found_below(folder: Path) -> dict[str, list[bytes]]:
    """Return what is found in the files of a folder: the ledger, its write-ahead log, snapshots, Chroma, exports.

    If databases stand for folders, what is found in their tables belongs to it.
    """
    stored = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    stored |= rows_below(folder)
    assert stored
    return {name: found for name, content in stored.items() if (found := found_in(content))}


@contextlib.contextmanager
def nothing_is_said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that no line of this library's log and no warning, whatever its level, holds a piece of a secret."""
    caplog.set_level(logging.DEBUG, "cascade_memory")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = [record for record in caplog.records if record.name.startswith("cascade_memory")]
    shown = [logging.Formatter().format(record) for record in ours]
    assert found_in("\n".join([*shown, *(repr(record.__dict__) for record in ours)])) == []
    assert found_in("\n".join(str(one.message) for one in caught)) == []

"""Any column of any table edited into anything: whatever reads it answers, or says in a sentence what to do."""

from __future__ import annotations

import itertools
import logging
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("starlette")

from edited_everywhere import NOT_UTF8, ODD, Ids, edit, everything, pages, shown, tables, verbs
from hostile_files import HOW_MANY, opened, refused
from inspecting import door

from cascade_memory import Trust
from cascade_memory.errors import CascadeError, InvalidInput, StoreCorrupt
from cascade_memory.memory.memory import Memory

ONCE_WRONG: list[tuple[str, str, Any, int | None]] = [("action", "counts", '{"x": [1]}', 5)]  # tried first each time

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(7_200)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log nothing of the thousands of rows that cannot be used."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def _edits(base: Path, rng: random.Random) -> Iterator[tuple[str, str, Any, int | None]]:
    columns = [(table, column) for table, names in tables(base / "ledger.sqlite3").items() for column in names]
    every = list(itertools.product(columns, [*ODD, NOT_UTF8], [0, 1, 5, None]))
    rng.shuffle(every)
    yield from ((*column, value, row) for column, value, row in every)


def _answers(name: str, call: Callable[[], Any], found: list[str], *, mended: bool) -> None:
    """Let something answer; note what is neither an answer nor a sentence that says what to do."""
    try:
        shown(call())
    except CascadeError as error:
        about_a_row = isinstance(error, StoreCorrupt) and "doctor" in str(error)
        if (
            not refused(error)
            or not (about_a_row or isinstance(error, (InvalidInput, LookupError)))
            or (mended and about_a_row)
        ):
            found.append(f"{name}: {error!r}")
    except Exception as error:
        found.append(f"{name}: {error!r}")


def _all_answer(memory: Memory, ids: Ids, folder: Path, found: list[str], *, mended: bool, web: bool) -> None:
    for name, call in verbs(memory, ids, folder):
        shutil.rmtree(folder / "backup", ignore_errors=True)
        _answers(name, call, found, mended=mended)
    if web:
        with door(memory) as its_door:
            for name, call in pages(its_door.browser(), ids):
                _answers(name, call, found, mended=mended)


def test_whatever_reads_an_edited_row_answers_or_names_the_doctor_who_mends_it(place: Path):
    with pytest.MonkeyPatch.context() as patch:
        everything(place / "base", patch)
    ids, wrong, tried = Ids(place / "base" / "ledger.sqlite3"), dict[str, list[str]](), 0
    edits = itertools.chain(ONCE_WRONG, _edits(place / "base", random.Random("edited")))
    while tried < HOW_MANY // 8:
        how = next(edits)
        folder = place / "memory"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(place / "base", folder)
        if not edit(folder / "ledger.sqlite3", *how):
            continue
        tried += 1
        found: list[str] = []
        try:
            memory = opened(folder, trust=Trust(tickets=True))
        except CascadeError as error:
            if not refused(error):
                wrong[repr(how)[:200]] = [repr(error)]
            continue
        try:
            _all_answer(memory, ids, place, found, mended=False, web=tried % 4 == 0)
            looked = memory.data.examine(fix=True)
            found += [f"unfixed: {one.detail}" for one in looked if not one.ok and one.name not in ("free disk", "vectors")]
            _all_answer(memory, ids, place, found, mended=True, web=False)
        finally:
            memory.close()
        if found:
            wrong[repr(how)[:200]] = found
    assert not wrong, (len(wrong), dict(list(wrong.items())[:20]))

"""The questions about our hospital, whose answers our own queries compute, and questions from a file in DTLBench's layout."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cascade_memory.domain import connect
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.hospital.templates import KINDS, Kind
from cascade_memory.evaluation.environments.hospital.vocabulary import TABLES
from cascade_memory.evaluation.tasks.task import read_items

PER_KIND, SEED = 18, 55


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer; for one about our hospital, also its kind, and code that answers it.

    ``difficulty`` is what the data say or, where they have the right query, the number of tables that it reads.
    """

    text: str
    label: str
    kind: str = ""
    code: str = ""
    difficulty: str = ""


def hospital_questions(database: Path, *, per_kind: int = PER_KIND, seed: int = SEED) -> list[Question]:
    """Make at most ``per_kind`` questions of each kind, in random order.

    The same database and the same seed always give the same questions.
    """
    with contextlib.closing(connect(database, "mode=ro")) as file:
        questions = [one for kind in KINDS for one in _of_kind(kind, file, per_kind, random.Random(f"{seed} {kind.name}"))]
    random.Random(seed).shuffle(questions)
    return questions


def _of_kind(kind: Kind, file: sqlite3.Connection, count: int, rng: random.Random) -> Iterator[Question]:
    cursor = file.execute(kind.slots)
    names = [column[0] for column in cursor.description]
    possible = sorted(tuple(map(str, row)) for row in cursor)
    both: dict[str, list[tuple[str, ...]]] = {}
    rng.shuffle(possible)
    if kind.name == "prescribed or not":  # as many with the answer yes as with no
        for values in possible:
            both.setdefault(_answer(kind, file, dict(zip(names, values, strict=True))), []).append(values)
        possible = [one for pair in zip(*both.values(), strict=False) for one in pair]
    for place, values in enumerate(possible[:count]):
        named = dict(zip(names, values, strict=True))
        yield Question(kind.question(place, named), _answer(kind, file, named), kind.name, kind.script(named))


def _answer(kind: Kind, file: sqlite3.Connection, values: dict[str, str]) -> str:
    (answer, *_) = file.execute(kind.query(values)).fetchone()
    return str(answer)


@dataclass(frozen=True, slots=True)
class MimicFiles:
    """Where the paper's questions and the database lie in a folder of data."""

    questions: Path
    database: Path


# The first is the layout of the authors' code and of DTLBench; its source folder holds what EHRAgent's archive unpacks to.
_QUESTIONS = ("ehr/ehr.jsonl", "mimic-iii/mimic-iii.jsonl", "mimic_iii/mimic_iii.jsonl", "mimic_iii.jsonl")
_DATABASES = (
    *("ehr/source/mimic_iii.db", "mimic-iii/source/mimic_iii.db", "ehr/mimic_iii.db", "mimic_iii/mimic_iii.db"),
    "mimic_iii.db",
)


def mimic_files(data: Path) -> MimicFiles:
    """Find the paper's questions and its database in a folder of data; if one is missing, raise an error that says which."""
    found = [next((data / name for name in names if (data / name).is_file()), None) for names in (_QUESTIONS, _DATABASES)]
    questions, database = found
    if questions is None or database is None:
        lacking = " and ".join(names[0] for names, path in zip((_QUESTIONS, _DATABASES), found, strict=True) if path is None)
        raise InvalidInput(f"mimic-iii needs {lacking} in {data}: cascade-memory bench data mimic-iii says where to get it")
    return MimicFiles(questions, database)


def mimic_questions(file: Path) -> list[Question]:
    """Read the paper's questions."""
    return [Question(item.query, item.solution, difficulty=difficulty_of(item.fields)) for item in read_items(file)]


def difficulty_of(fields: Mapping[str, object]) -> str:
    """Return the difficulty of a question: its own, or else how many tables the right query reads; "" if neither is known.

    >>> difficulty_of({"difficulty": "hard"}), difficulty_of({"query": "select 1 from labevents join d_labitems"})
    ('hard', '2 tables')
    """
    if isinstance(said := fields.get("difficulty"), str | int) and str(said):
        return str(said)[:40]
    query = next((text for name in ("query", "sql", "SQL") if isinstance(text := fields.get(name), str)), "")
    read = {name for name in TABLES if re.search(rf"\b{name}\b", query, re.IGNORECASE)}
    return "" if not read else "1 table" if len(read) == 1 else f"{len(read)} tables"

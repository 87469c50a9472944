"""Builds our own hospital: a SQLite file with invented patients, the same for the same seed."""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import sqlite3
from pathlib import Path
from typing import Any

from cascade_memory.domain import connect
from cascade_memory.evaluation.environments.hospital.admission import Stay
from cascade_memory.evaluation.environments.hospital.vocabulary import (
    DIAGNOSES,
    ETHNICITIES,
    FROM,
    INPUTS,
    INSURANCES,
    KINDS,
    LABS,
    MARITAL,
    NOW,
    OUTPUTS,
    PROCEDURES,
    TABLES,
    TO,
    VITALS,
)

PATIENTS, SEED = 120, 2105


def build_hospital(path: Path, *, patients: int = PATIENTS, seed: int = SEED) -> Path:
    """Write the database unless its file exists, and return its path; the file appears only once it is complete."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with contextlib.closing(connect(part)) as file:
        _Hospital(file, random.Random(seed)).fill(patients)
        file.commit()
    os.replace(part, path)
    return path


class _Hospital:
    def __init__(self, file: sqlite3.Connection, rng: random.Random) -> None:
        self._file, self._rng = file, rng
        self._rows = dict.fromkeys(TABLES, 0)
        for name, columns in TABLES.items():
            file.execute(f"CREATE TABLE {name} ({', '.join(columns)})")

    def _write(self, table: str, *values: Any) -> int:
        self._rows[table] += 1
        row = (self._rows[table], *values)
        self._file.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        return self._rows[table]

    def fill(self, patients: int) -> None:
        """Write the tables that say what codes mean, and the records of this number of patients."""
        for table, entries in (("d_icd_diagnoses", DIAGNOSES), ("d_icd_procedures", PROCEDURES)):
            for code, titles in entries.items():
                self._write(table, code, *titles)
        items = {label: 50_800 + place for place, label in enumerate(LABS)}
        for label, number in items.items():
            self._write("d_labitems", number, label)
        for table, labels in (("chartevents", VITALS), ("inputevents_cv", INPUTS), ("outputevents", OUTPUTS)):
            for label in labels:
                items[label] = 220_000 + len(items)
                self._write("d_items", items[label], label, table)
        for number in self._rng.sample(range(1_000, 99_999), patients):
            self._patient(number, items)

    def _patient(self, number: int, items: dict[str, int]) -> None:
        rng, now = self._rng, datetime.datetime.fromisoformat(NOW)
        age = rng.randrange(25, 85)
        first = datetime.datetime(2100 + rng.randrange(5), rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(24), 15)
        born = first.replace(year=first.year - age)
        died = rng.random() < 0.12
        kept = (rng.choice(INSURANCES), "engl", rng.choice(MARITAL), rng.choice(ETHNICITIES))
        begins = first
        for visit in range(rng.choice((1, 1, 2, 2, 3))):
            admission = 100_000 + self._rows["admissions"] * 7 + 3
            stay = Stay(rng, self._write, items, (number, admission), begins)
            stay.happen()
            left = None if stay.ends > now else str(stay.ends)
            place = (rng.choice(KINDS), rng.choice(FROM), None if left is None else rng.choice(TO))
            self._write("admissions", number, admission, str(begins), left, *place, *kept, age + visit // 2)
            begins = stay.ends + datetime.timedelta(days=rng.randrange(20, 300), minutes=rng.randrange(600))
            if begins > now:
                break
        self._write("patients", number, rng.choice("mf"), str(born), str(begins) if died and begins < now else None)

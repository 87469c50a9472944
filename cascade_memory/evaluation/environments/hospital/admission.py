"""Invents what happens to a patient in one stay at our hospital."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade_memory.evaluation.environments.hospital.vocabulary import (
    DIAGNOSES,
    DRUGS,
    INPUTS,
    LABS,
    ORGANISMS,
    OUTPUTS,
    PROCEDURES,
    SPECIMENS,
    UNITS,
    VITALS,
)

Write = Callable[..., int]  # the table, then the values of its columns after ROW_ID; returns ROW_ID


class Stay:
    """One admission with all its events."""

    def __init__(
        self,
        rng: random.Random,
        write: Write,
        items: Mapping[str, int],
        who: tuple[int, int],  # the patient and the admission
        begins: datetime.datetime,
    ) -> None:
        self._rng, self._write, self._items = rng, write, items
        self._who, self._begins = who, begins
        self.ends = begins + datetime.timedelta(hours=rng.randrange(40, 400))

    def happen(self) -> None:
        """Write the events of the stay into the database: diagnoses, treatments, laboratory values, perhaps intensive care."""
        self._diagnoses()
        self._treatment()
        self._labs()
        if self._rng.random() < 0.75:
            self._intensive_care()

    def _some(self, names: Sequence[str], least: int, most: int) -> list[str]:
        return self._rng.sample(list(names), self._rng.randint(least, most))

    def _time(self) -> str:
        hours = (self.ends - self._begins).total_seconds() / 3600
        return str(self._begins + datetime.timedelta(minutes=self._rng.randrange(1, max(2, int(60 * hours)))))

    def _charge(self, kind: str, event: int, time: str, low: float, high: float) -> None:
        self._write("cost", *self._who, kind, event, time, round(self._rng.uniform(low, high), 2))

    def _diagnoses(self) -> None:
        for code in self._some(list(DIAGNOSES), 1, 4):
            time = self._time()
            self._charge("diagnoses_icd", self._write("diagnoses_icd", *self._who, code, time), time, 5, 30)
        for code in self._some(list(PROCEDURES), 0, 2):
            time = self._time()
            self._charge("procedures_icd", self._write("procedures_icd", *self._who, code, time), time, 20, 200)

    def _treatment(self) -> None:
        for drug in self._some(list(DRUGS), 2, 5):
            dose, unit, route = DRUGS[drug]
            given, begins = dose * self._rng.choice((1, 2, 3)), self._time()
            end = min(str(self.ends), str(datetime.datetime.fromisoformat(begins) + datetime.timedelta(days=3)))
            way = route if self._rng.random() < 0.8 else "ng"
            row = self._write("prescriptions", *self._who, begins, end, drug, str(given), unit, way)
            self._charge("prescriptions", row, begins, 1, 60)

    def _labs(self) -> None:
        for lab in self._some(list(LABS), 3, 6):
            middle, spread, unit = LABS[lab]
            for _ in range(self._rng.randint(1, 3)):
                time, value = self._time(), round(abs(self._rng.gauss(middle, spread)) + 0.1, 1)
                row = self._write("labevents", *self._who, self._items[lab], time, value, unit)
                self._charge("labevents", row, time, 2, 25)
        if self._rng.random() < 0.5:
            organism = self._rng.choice(ORGANISMS)
            self._write("microbiologyevents", *self._who, self._time(), self._rng.choice(SPECIMENS), organism)

    def _intensive_care(self) -> None:
        first, last = self._rng.choice(UNITS), self._rng.choice(UNITS)
        stay = 200_000 + self._who[1]
        wards = (self._rng.randrange(1, 60), self._rng.randrange(1, 60))
        span = (str(self._begins), str(self.ends))
        self._write("icustays", *self._who, stay, first, last, *wards, *span)
        self._write("transfers", *self._who, stay, "admit", first, wards[0], *span)
        for name, (middle, spread, unit) in VITALS.items():
            for _ in range(self._rng.randint(1, 4)):
                value: Any = round(self._rng.gauss(middle, spread), 1)
                self._write("chartevents", *self._who, stay, self._items[name], self._time(), value, unit)
        for name in self._some(INPUTS, 1, 2):
            self._write("inputevents_cv", *self._who, stay, self._time(), self._items[name], 50.0 * self._rng.randint(1, 10))
        for name in self._some(OUTPUTS, 1, 3):
            for _ in range(self._rng.randint(1, 3)):
                self._write("outputevents", *self._who, stay, self._time(), self._items[name], 25.0 * self._rng.randint(1, 16))

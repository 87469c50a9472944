"""The values that a question about records names, and code that is adapted to another question's values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cascade_memory.evaluation.environments.hospital.tools import Database

# Columns whose values a question may name, by what the value is.
_NAMED = {
    "lab": ("d_labitems", "LABEL"),
    "item": ("d_items", "LABEL"),
    "drug": ("prescriptions", "DRUG"),
    "diagnosis": ("d_icd_diagnoses", "SHORT_TITLE"),
    "procedure": ("d_icd_procedures", "SHORT_TITLE"),
    "specimen": ("microbiologyevents", "SPEC_TYPE_DESC"),
}
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\d)")


class Vocabulary:
    """The names in a database that questions may contain."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        kinds = [(name, kind) for kind, those in names.items() for name in those]
        self._kinds = sorted(kinds, key=lambda one: (-len(one[0]), one))  # the longest first: "urine out foley" is no "urine"

    @classmethod
    def of(cls, database: Database) -> Vocabulary:
        """Read the names from a database."""
        queries = {kind: f"SELECT DISTINCT {column} FROM {table}" for kind, (table, column) in _NAMED.items()}
        return cls({kind: [str(row[0]) for row in database.rows(query)] for kind, query in queries.items()})

    def values(self, question: str) -> dict[str, str]:
        """Find one value of each kind that a question names: of several names the longest, of several numbers the first.

        >>> Vocabulary({"lab": ["sodium"]}).values("the highest sodium of patient 7 in 2104?")
        {'lab': 'sodium', 'patient': '7', 'year': '2104'}
        """
        found: dict[str, str] = {}
        rest = question
        for name, kind in self._kinds:
            place = _whole(name).search(rest)
            if place is not None:
                rest = rest[: place.start()] + " " + rest[place.end() :]
                found.setdefault(kind, name)
        for number in _NUMBER.findall(rest):
            found.setdefault("year" if re.fullmatch("21\\d\\d", number) and "patient" in found else "patient", number)
        return found


def adapted(code: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Replace the values of the old question in its code by those of the new one.

    >>> adapted("FilterDB(t, 'DRUG=aspirin||SUBJECT_ID=7')", {"drug": "aspirin"}, {"drug": "heparin", "patient": "12"})
    "FilterDB(t, 'DRUG=heparin||SUBJECT_ID=7')"
    """
    wanted = {value: new[kind] for kind, value in old.items() if kind in new}
    if not wanted:
        return code
    every = "|".join(_whole(value).pattern for value in sorted(wanted, key=len, reverse=True))
    return re.sub(every, lambda found: wanted[found[0]], code)


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")

"""A solver for questions about records without a language model: it adapts the code of a case, and debugs its mistakes.

Adapted code has the values that the other question names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.domain import Solution
from cascade_memory.evaluation.environments.hospital.questions import Question
from cascade_memory.evaluation.environments.hospital.rounds import ROUNDS, Records, play_rounds
from cascade_memory.evaluation.environments.hospital.tools import Database
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.stream import Attempt

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
_VERSION = "code-1"  # version of the agent: cached outcomes of other versions are not used
# How likely each mistake is in code that the agent writes itself, and in code that it takes from a case.
SLIPS: Mapping[str, float] = {"slips": 0.3, "slips_with_case": 0.05}
# Mistakes that a script can have, in the order in which the agent finds and repairs them. Each raises an error of its own.
_MISTAKES: tuple[Callable[[str], str], ...] = (
    lambda code: code.replace("events'", "_events'").replace("LoadDB('admissions')", "LoadDB('admission')"),  # no such table
    lambda code: code.replace("SUBJECT_ID=", "PATIENT_ID="),  # no such column
    lambda code: code.replace("||", " and "),  # not how conditions are written
    lambda code: code.replace("GetValue(", "GetValues("),  # no such tool
    lambda code: code.replace("rows[0][0]", "rows.iloc[0]"),  # a list is no frame of pandas
    lambda code: code.replace("answer =", "result ="),  # the answer is stored under another name
)


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


class CodeAgent:
    """REUSE agent, no language model: it writes the values of the new question into the code of the best recalled case.

    ``alone`` says which questions it can answer without a case, as an LLM answers some without memory. On the other questions,
    its code never runs without a case: every round ends in an error. Its code has mistakes with declared probabilities. There
    are fewer mistakes if it copies code that ran. Each round shows it one error, and it repairs one mistake.
    """

    def __init__(
        self, questions: Sequence[Question], records: Records, *, alone: Sequence[bool], seed: int, outcomes: Path
    ) -> None:
        self._questions, self._records, self._alone = questions, records, alone
        self._vocabulary = Vocabulary.of(records.database)
        self._outcomes = Outcomes(outcomes)
        self._draws = np.random.default_rng([seed, 3]).random((len(questions), len(_MISTAKES)))

    @property
    def declared(self) -> dict[str, Any]:
        """The parameters of the agent, for the row."""
        return {**SLIPS, "rounds": ROUNDS}

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a question with the first of the cases."""
        question = self._questions[place]
        if self._alone[place]:
            return self._played(question, question.code, self._mistakes(place, "slips"))
        if cases:
            return self._played(question, self._reused(question, cases[0]), self._mistakes(place, "slips_with_case"))
        return self._helpless(question)

    def _reused(self, question: Question, case: RecalledCase) -> str:
        values = self._vocabulary.values
        return adapted(_code_of(case.solution), values(case.query), values(question.text))

    def _mistakes(self, place: int, name: str) -> list[Callable[[str], str]]:
        return [mistake for mistake, draw in zip(_MISTAKES, self._draws[place], strict=True) if draw < SLIPS[name]]

    def _played(self, question: Question, code: str, mistakes: list[Callable[[str], str]]) -> Attempt:
        """Run the code with its mistakes; after each error, repair the first of them that is in the code."""
        left = [mistake for mistake in mistakes if mistake(code) != code]

        def write(ran: Ran | None) -> str:
            if ran is not None and left:
                left.pop(0)
            written = code
            for mistake in left:
                written = mistake(written)
            return written

        return play_rounds(write, self._run, question.label)

    def _helpless(self, question: Question) -> Attempt:
        """Play a question that the agent cannot answer: each round replaces one mistake by another."""
        broken = [mistake(question.code) for mistake in _MISTAKES if mistake(question.code) != question.code]
        rounds = iter([*broken, *broken[-1:] * ROUNDS])
        return play_rounds(lambda _: next(rounds), self._run, question.label)

    def _run(self, code: str) -> Ran:
        """Run code, or look up its result if it ran before: the same code always gives the same result."""
        known = self._outcomes.known([_VERSION, code])
        if known is not None and known.done is not None:
            return Ran(known.success, known.done.steps[0].observation)
        ran = self._records.run(code)
        self._outcomes.keep([_VERSION, code], Outcome(ran.succeeded, Trajectory([Step(action="run", observation=ran.text)])))
        return ran

    def close(self) -> None:
        """Close the cache and the records."""
        self._outcomes.close()
        self._records.close()


def _code_of(solution: Solution) -> str:
    """Return the code of the last round of a solution: the code that ran."""
    return solution if isinstance(solution, str) else solution.steps[-1].action

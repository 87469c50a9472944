"""A solver for questions about records without a language model: it adapts the code of a case, and debugs its mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.domain import Solution
from cascade_memory.evaluation.environments.hospital.questions import Question
from cascade_memory.evaluation.environments.hospital.records import ROUNDS, Records
from cascade_memory.evaluation.environments.hospital.rounds import play_rounds
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran
from cascade_memory.evaluation.reuse.code_values import Vocabulary, adapted
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.solver import Attempt

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

"""A real language model that answers questions about health records by code, and debugs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cascade_memory import RecalledCase, Step, Trajectory, clean_text
from cascade_memory.evaluation.environments.hospital.questions import Question
from cascade_memory.evaluation.environments.hospital.rounds import Records, play_rounds
from cascade_memory.evaluation.environments.hospital.vocabulary import TABLES
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran
from cascade_memory.evaluation.judging.answers import code_in
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message, PromptTooLong
from cascade_memory.evaluation.model.model_solver import as_answered, prompt
from cascade_memory.evaluation.stream import Attempt

_TOOLS = """\
Tools:
- LoadDB(NAME) loads a table by its name.
- FilterDB(TABLE, CONDITIONS) keeps the rows that meet all conditions. CONDITIONS is one text with || between the conditions,
  such as 'SUBJECT_ID=24971||COST<10', 'ITEMID in [1, 2]', 'max(CHARTTIME)' or 'min(CHARTTIME)'. Put no quotes around values.
- GetValue(TABLE, 'COLUMN') returns the values of a column as one text, with ", " between several of them.
  GetValue(TABLE, 'COLUMN, sum') computes from them: sum, mean, max, min; list returns a list of texts.
- SQLInterpreter(SQL) returns the rows of a SQLite query as a list of tuples. current_time stands for the present.
- Calendar(DURATION) returns the present moved by a duration such as '-1 year'; '0 year' is now.
- Calculate(FORMULA) computes arithmetic.
len(TABLE) is the number of rows, and TABLE['COLUMN'] is the list of a column. A table also knows the commonest methods of a
pandas frame, such as TABLE[TABLE['COST'] > 10], iloc, sort_values, groupby and head; a column knows tolist, unique, nunique,
sum, mean and value_counts."""

INSTRUCTION = "\n\n".join(
    (
        "Write Python code that answers a question about patients from a database of hospital records.",
        "Columns that end in ID link the tables: SUBJECT_ID is a patient, HADM_ID a stay in hospital, ICUSTAY_ID a stay in "
        "intensive care. Tables whose names end in events hold what was measured or given, with times. Tables that begin with "
        "d_ are dictionaries: they give an ITEMID or ICD9_CODE its name, so that a named item is looked up there first. "
        "admissions, patients, icustays and transfers describe stays; prescriptions, procedures_icd, diagnoses_icd and cost "
        "describe care and its bill. Texts are in small letters.",
        "Tables and their columns:\n" + "\n".join(f"- {name}: {', '.join(columns)}" for name, columns in TABLES.items()),
        _TOOLS,
        "Only plain Python runs: no files, no network, no classes, no other modules than datetime, math, re, statistics and "
        "collections. Store the result in the variable answer; for a question with yes or no, 1 or 0. Reply with the code "
        "alone, in a block that begins with ```python.",
    )
)
_MOST_CODE = 30_000  # characters of a reply that are used; the sandbox refuses code of more than 20,000
_REVISE = (
    "This is what the code gave:\n{}\nRevise the code. Reply with the whole code alone, in a block that begins with ```python."
)
# Without this, a model that repeats its code would get the same request again, and answer it in the same way.
_AGAIN = "\nYou have sent this very code {} times, and it gives the same each time: write other code."


class CodeSolver:
    """Lets a model write code over the records, and revise it after an error; the case stores the last code only.

    As in the paper's agent, the prompt of a round has the question with the cases, and the code and result of the previous
    round only. Nor does a case show rounds that failed: a weak model copies the first line that it sees.
    """

    def __init__(self, questions: Sequence[Question], records: Records, asking: Asking) -> None:
        self._questions, self._records, self._asking = questions, records, asking

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the question at this place of the stream."""
        question = self._questions[place]
        asked = prompt(INSTRUCTION, question.text, [as_answered(case, _as_code) for case in cases])
        written, times, rounds = "", 0, 0

        def write(ran: Ran | None) -> str:
            nonlocal written, times, rounds
            debugging: list[Message] = []
            if ran is not None:
                debugging = [
                    {"role": "assistant", "content": f"```python\n{written}\n```"},
                    {"role": "user", "content": _REVISE.format(ran.text) + (_AGAIN.format(times) if times > 1 else "")},
                ]
            before = written
            written = clean_text(code_in(self._asking([*asked, *debugging]), "python"))[:_MOST_CODE]
            times = times + 1 if written == before else 1
            rounds += 1
            return written

        try:
            attempt = play_rounds(write, self._records.run, question.label)
        except PromptTooLong:
            return Attempt(False, None, steps=max(1, rounds))
        assert isinstance(attempt.answer, Trajectory)
        last = attempt.answer.steps[-1]
        return replace(attempt, answer=Trajectory([Step(action=last.action)]))


def _as_code(step: Step) -> str:
    return f"```python\n{step.action}\n```\n{step.observation}".strip()

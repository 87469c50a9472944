"""Answers one question in rounds: code runs over the patients' records, an error is given back, the first answer counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_memory import Step, Trajectory
from cascade_memory.domain import capped
from cascade_memory.evaluation.environments.hospital.tools import Database, Tools
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran, Sandbox
from cascade_memory.evaluation.judging.sql import ReadOnlyQueries
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.visible import shortened

if TYPE_CHECKING:
    from typing_extensions import Self

SECONDS, QUERY_SECONDS, QUERY_BYTES = 30.0, 10.0, 20_000_000
ROUNDS = 5  # attempts at one question, as in the paper
_AS_NUMBERS = {"True": "1", "False": "0"}


class Records:
    """Runs code over a database of records. Every script starts anew, and outcomes never depend on earlier scripts.

    >>> import tempfile
    >>> from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Records(build_hospital(Path(folder) / "hospital.sqlite", patients=3)) as records:
    ...         print(records.run("answer = len(LoadDB('patients'))").text)
    3
    """

    def __init__(self, database: Path, *, seconds: float = SECONDS) -> None:
        self._queries = ReadOnlyQueries(seconds=min(seconds, QUERY_SECONDS), most_bytes=QUERY_BYTES)
        self.database = Database(database, self._queries)
        self._sandbox = Sandbox(seconds=seconds)

    def run(self, code: str) -> Ran:
        """Run a script with fresh tools."""
        return self._sandbox.run(code, Tools(self.database).by_name())

    def close(self) -> None:
        """End the process that runs queries."""
        self._queries.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process that runs queries."""
        self.close()


def is_right(answer: str, label: object) -> bool:
    """Say whether an answer equals the label: numbers are rounded to two decimals, and True and False count as 1 and 0.

    >>> is_right("True", "1"), is_right("3.14159", 3.14), is_right("[(5,)]", "5")
    (True, True, False)
    """
    return _normal(_AS_NUMBERS.get(answer, answer)) == _normal(str(label))


def _normal(text: str) -> str:
    try:
        return f"{float(text):.2f}"
    except ValueError:
        return text


_MOST_FIELD, _MOST_TRAJECTORY = 4_000, 20_000  # characters that a case keeps; what is longer is cut, and says so


def play_rounds(write: Callable[[Ran | None], str], run: Callable[[str], Ran], label: str) -> Attempt:
    """Let ``write`` write code until it runs without error, at most five times, and judge the answer by the label.

    ``write`` gets the result of its last code, or None in the first round. The attempt's number of steps is its number of
    rounds, and its answer holds the code of every round with the result.

    >>> said = iter([Ran(False, "NameError: ..."), Ran(True, "42")])
    >>> attempt = play_rounds(lambda last: "answer = 6 * 7" if last else "answer = x", lambda code: next(said), "42")
    >>> attempt.success, attempt.steps
    (True, 2)
    """
    steps: list[Step] = []
    ran: Ran | None = None
    while len(steps) < ROUNDS and not (ran and ran.succeeded):
        code = write(ran)
        ran = run(code)
        steps.append(
            Step(
                action=shortened(code.strip(), _MOST_TRAJECTORY) or "# no code", observation=ran.text, failed=not ran.succeeded
            )
        )
    right = ran is not None and ran.succeeded and is_right(ran.text, label)
    kept = capped(Trajectory(steps), max_field_chars=_MOST_FIELD, max_chars=_MOST_TRAJECTORY)
    return Attempt(right, kept, steps=len(steps))

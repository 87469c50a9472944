"""A language model as the judge, for tasks whose solutions no function can compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cascade_memory.errors import ModelUnavailable
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message
from cascade_memory.rewards import verdict_in, verdict_question

_TRIES = 3


class ModelJudge:
    """Asks a model whether a reply solves a task, and accepts only verdicts in the required form.

    The judged text is fenced, and a verdict must contain a secret word that does not occur in that text. So a reply cannot
    contain a valid verdict on itself, even if the judge repeats it. ``ask`` is an ``Asking``, or any function from messages to
    text. A verdict of at least ``passes`` gives a reward of 1, any other a reward of 0.

    >>> def ask(messages):
    ...     sign = messages[0]["content"].split('"VERDICT ')[1].split(":")[0]
    ...     return f"VERDICT {sign}: {int('Work: 42' in ' '.join(messages[1]['content'].split()))}"
    >>> judge = ModelJudge(ask)
    >>> judge("6 * 7", "42"), judge("6 * 7", "41")
    (1.0, 0.0)
    """

    def __init__(
        self,
        ask: Callable[[Sequence[Message]], str],
        criteria: str = "the task is done, completely and correctly",
        *,
        passes: float = 0.5,
    ) -> None:
        self._ask, self._criteria, self._passes = ask, criteria, passes

    def keep_log(self, path: Path) -> Asking | None:
        """From now on, log the requests in the file ``path``; return the ``Asking`` that sends them.

        If ``ask`` is a plain function, nothing is logged, and the result is None.
        """
        if not isinstance(self._ask, Asking):
            return None
        self._ask = self._ask.logged(path)
        return self._ask

    def verdict(self, query: str, reply: str, right: str | None = None) -> float | None:
        """Return the judge's verdict, from 0 to 1; None if the judge gives none in the required form.

        ``right`` is a right answer, if one is known.
        """
        question = verdict_question(self._criteria, query, reply, right=right, signed=True)
        messages = [{"role": "system", "content": question.instruction}, {"role": "user", "content": question.body}]
        return verdict_in(self._ask(messages), question.sign)

    def __call__(self, query: str, reply: str, right: str | None = None) -> float:
        """Return the reward; raise ``ModelUnavailable`` if the judge gives no verdict in several tries.

        A missing verdict is neither a success nor a failure.
        """
        for _ in range(_TRIES):
            found = self.verdict(query, reply, right)
            if found is not None:
                return float(found >= self._passes)
        raise ModelUnavailable(f"the judge gave no verdict in {_TRIES} tries on {query[:80]!r}: use another model as judge")

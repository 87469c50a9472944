"""Judges an answer to a question: by the known right answers, or by a language model that is shown them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cascade_memory.evaluation.judging.model_judge import ModelJudge
from cascade_memory.evaluation.judging.short_answers import short_answer
from cascade_memory.evaluation.model.chat import Message

_CRITERIA = (
    "the work answers the question, and its answer means the same as one of the right answers; other words for the same thing "
    "are right, several different answers are not"
)
_TRIES = 3


def by_labels(question: str, answer: str, right: Sequence[str]) -> float:  # noqa: ARG001 - the signature of a judge
    """Reward an answer that is one of the right answers.

    >>> by_labels("Who wrote it?", "ada lovelace", ["Ada Lovelace"])
    1.0
    """
    return short_answer(answer, right)


class ByModel:
    """Asks a model whether an answer means the same as one of the right ones, as the paper does.

    If the model gives no verdict in several tries, the answer counts as wrong, as in the paper; ``silent`` counts how often.
    """

    def __init__(self, ask: Callable[[Sequence[Message]], str]) -> None:
        self._judge = ModelJudge(ask, _CRITERIA)
        self.silent = 0

    def __call__(self, question: str, answer: str, right: Sequence[str]) -> float:
        """Return the reward."""
        known = "\n".join(f"- {one}" for one in right)
        for _ in range(_TRIES):
            verdict = self._judge.verdict(question, answer, known)
            if verdict is not None:
                return float(verdict > 0.5)
        self.silent += 1
        return 0.0

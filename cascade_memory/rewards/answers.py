"""Rewards that compare the final answer with an expected one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from cascade_memory.domain.episode import Episode
from cascade_memory.errors import InvalidInput

Expected: TypeAlias = "Mapping[str, str] | Callable[[Episode], str | None]"  # by query; None: unknown
Reward: TypeAlias = "Callable[[Episode], float | None]"


def exact_match(expected: Expected) -> Reward:
    """Reward an answer that equals the expected one; upper and lower case and extra spaces do not matter.

    >>> reward = exact_match({"6 * 7": "Forty-two"})
    >>> reward(Episode(id="e", namespace="n", query="6 * 7", status="open", solution=" forty-two"))
    1.0
    """
    return _compared(expected, lambda answer, right: _plain(answer) == _plain(right))


def contains(expected: Expected) -> Reward:
    """Reward an answer in which the expected text occurs as whole words.

    >>> reward = contains({"6 * 7": "42"})
    >>> [reward(Episode(id="e", namespace="n", query="6 * 7", status="open", solution=s)) for s in ("It is 42.", "It is 421.")]
    [1.0, 0.0]
    """

    def found(answer: str, right: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(_plain(right))}(?!\w)", _plain(answer)) is not None

    return _compared(expected, found)


def matches(pattern: str | re.Pattern[str]) -> Reward:
    r"""Reward an answer in which a regular expression is found.

    >>> reward = matches(r"order #\d+ confirmed")
    >>> reward(Episode(id="e", namespace="n", query="buy a cup", status="open", solution="Done: order #17 confirmed."))
    1.0
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidInput(f"matches needs a regular expression: {error}") from error

    def reward(episode: Episode) -> float | None:
        return float(compiled.search(episode.answer) is not None) if has_answer(episode) else None

    return reward


def _compared(expected: Expected, agrees: Callable[[str, str], bool]) -> Reward:
    if not isinstance(expected, Mapping) and not callable(expected):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"expected must map tasks to answers, or be a function of the episode, not {type(expected).__name__}; "
            "to expect the same text for every task, use matches(...)"
        )

    if isinstance(expected, Mapping):
        wrong = next((one for one in expected.values() if not isinstance(one, str)), None)  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong is not None:
            raise InvalidInput(f"an expected answer must be text, not {type(wrong).__name__}")

    def reward(episode: Episode) -> float | None:
        right = expected.get(episode.query) if isinstance(expected, Mapping) else expected(episode)
        return float(agrees(episode.answer, right)) if right is not None and has_answer(episode) else None

    return reward


def has_answer(episode: Episode) -> bool:
    """Say whether an episode has an answer to judge: a run that failed, or has no solution, says nothing about a case."""
    return episode.status != "error" and episode.solution is not None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())

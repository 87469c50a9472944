"""Rules for the rows of failures, checks and decisions about warnings, and for their records in an export."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

from cascade_memory.domain import trust
from cascade_memory.domain.failure_warning import Blamed
from cascade_memory.domain.validation import (
    MAX_SOLUTION_CHARS,
    check_id,
    check_moment,
    check_number,
    check_text,
    check_whole,
    check_word,
)
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import rules

_MOST_WORDS = 10_000  # of an action


def failure(row: rules.Row) -> None:
    """Reject an invalid failure; its vector has its own rule."""
    check_id(row["warning"], "warning")
    check_word(row["why"], get_args(Blamed), "why")
    if row["tool"] is not None:
        check_text(row["tool"], "tool", MAX_SOLUTION_CHARS)
    for name in ("action", "happened", "instead"):
        check_text(row[name], name, MAX_SOLUTION_CHARS, allow_empty=True)
    words_of(row["words"])
    if row["cases_key"] is not None:
        check_whole(row["cases_key"], "cases_key", 1)
    check_whole(row["trust"], "trust", 0, trust.GREATEST)


def words_of(text: object) -> list[str]:
    """Parse the words that were stored as JSON.

    >>> words_of('["no", "such", "column"]')
    ['no', 'such', 'column']
    """
    try:
        found: Any = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the words of a failure are not JSON") from error
    if not isinstance(found, list) or len(cast("list[Any]", found)) > _MOST_WORDS:
        raise InvalidInput(f"the words of a failure must be a list of at most {_MOST_WORDS:,}")
    return [check_text(word, "a word", MAX_SOLUTION_CHARS) for word in cast("list[object]", found)]


def check(row: rules.Row) -> None:
    """Reject an invalid check."""
    check_id(row["warning"], "warning")
    check_whole(row["warned"], "warned", 0, 1)
    check_number(row["propensity"], "propensity", 0.0, 1.0)
    check_moment(row["at"], "at")
    if row["call"] is not None:
        check_id(row["call"], "call")
    if row["repeated"] is not None:
        check_whole(row["repeated"], "repeated", 0, 1)
    if row["reward"] is not None:
        check_number(row["reward"], "reward", 0.0, 1.0)


def decision(row: rules.Row) -> None:
    """Reject an invalid decision about a warning: it is either about whether to show it, or about advice."""
    check_whole(row["by_model"], "by_model", 0, 1)
    if row["retired"] is not None:
        check_whole(row["retired"], "retired", 0, 1)
        if row["advice"] is not None or row["by_model"]:
            raise InvalidInput("a decision is either about whether a warning is shown, or about its advice")
    elif row["advice"] is not None:
        check_text(row["advice"], "advice", MAX_SOLUTION_CHARS)

"""The tables of warnings: the steps that failed runs are blamed for, what was checked, and what was decided."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

from cascade_memory.domain import trust
from cascade_memory.domain.failure_warning import Blamed
from cascade_memory.domain.validation import MAX_SOLUTION_CHARS, check_id, check_moment, check_text
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import INTEGER, REAL, TEXT, ActionKind, Column, Index, Table, between, one_of, rules, whole

_MOST_WORDS = 10_000  # of an action


def words_of(text: object, name: str = "words") -> list[str]:
    """Parse the words that were stored as JSON.

    >>> words_of('["no", "such", "column"]')
    ['no', 'such', 'column']
    """
    try:
        found: Any = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the {name} of a failure are not JSON") from error
    if not isinstance(found, list) or len(cast("list[Any]", found)) > _MOST_WORDS:
        raise InvalidInput(f"the {name} of a failure must be a list of at most {_MOST_WORDS:,}")
    return [check_text(word, "a word", MAX_SOLUTION_CHARS) for word in cast("list[object]", found)]


def _decides_one_thing(row: rules.Row) -> None:
    """Reject a decision that is both about whether to show a warning and about its advice."""
    if row["retired"] is not None and (row["advice"] is not None or row["by_model"]):
        raise InvalidInput("a decision is either about whether a warning is shown, or about its advice")


_KEY = Column("key", INTEGER, whole(1), key=True, counts=True)
_NAMESPACE = Column("namespace", INTEGER, rules.NAMESPACE, of=("namespace",))
_OF_NO_FAILURE = "NOT EXISTS (SELECT 1 FROM failure WHERE failure.namespace = {0}.namespace AND failure.warning = {0}.warning)"
_ANY_LENGTH = rules.text(MAX_SOLUTION_CHARS)

FAILURE = Table(
    "failure",
    (
        Column("key", INTEGER, whole(1), key=True, of=("outcome",), refers="outcome(key)", cascades=True),
        _NAMESPACE,
        Column("warning", TEXT, check_id, about="a digest, equal for steps that are the same mistake"),
        Column("why", TEXT, one_of(*get_args(Blamed)), about="failed, refused, left"),
        Column(
            *("tool", TEXT, rules.text(MAX_SOLUTION_CHARS, empty=False)),
            optional=True,
            said=True,
            about="NULL if the action is free text",
        ),
        Column("action", TEXT, _ANY_LENGTH, said=True),
        Column("happened", TEXT, _ANY_LENGTH, said=True, about="what was observed after it"),
        Column("words", TEXT, words_of, about="JSON: what an action must have to count as the same mistake"),
        Column("instead", TEXT, _ANY_LENGTH, said=True, about="what worked, or nothing"),
        Column("cases_key", INTEGER, whole(1), optional=True, stays=True, about="the case that says so"),
        Column("trust", INTEGER, whole(0, trust.GREATEST), about="of its source, or of the least trusted case that was shown"),
        rules.VECTOR,
    ),
    indexes=(
        Index("namespace", "namespace, key"),
        Index("warning", "namespace, warning"),
        Index("case", "cases_key", where="cases_key IS NOT NULL"),
    ),
    orphaned="key NOT IN (SELECT key FROM outcome WHERE withdrawn_at IS NULL)",
    counted="warnings",
    about="the step that a failed run is blamed for, if its outcome stands; its vector is that of the query of its episode",
)
CHECKED = Table(
    "checked",
    (
        _KEY,
        Column("episode", INTEGER, of=("episode",), refers="episode(key)", cascades=True),
        _NAMESPACE,
        Column("warning", TEXT, check_id),
        Column("warned", INTEGER, whole(0, 1), about="0 if it kept silent"),
        Column("propensity", REAL, between(0.0, 1.0), about="the probability with which it warned"),
        Column("at", REAL, check_moment, dated=True),
        Column("call", TEXT, check_id, optional=True, about="the id of the tool call"),
        Column(
            "repeated", INTEGER, whole(0, 1), optional=True, about="1 if the mistake came again here, NULL until that is known"
        ),
        Column("reward", REAL, between(0.0, 1.0), optional=True, about="of the outcome that stands, if it teaches (else NULL)"),
    ),
    unique=("episode, warning",),
    indexes=(Index("warning", "namespace, warning"),),
    # Nobody could tell any more whose they were: the ids of warnings are made of the words of their failures.
    purged=_OF_NO_FAILURE.format("checked"),
    nested="checks",
    about="whether chance let an agent be warned, once for each episode and warning, and what came of it",
)
WARNING_DECISION = Table(
    "warning_decision",
    (
        _KEY,
        _NAMESPACE,
        Column("warning", TEXT, check_id, stays=True),
        Column("action", TEXT, check_id, unique=True, stays=True, about="the id of the entry in the audit log"),
        Column("retired", INTEGER, whole(0, 1), optional=True, about="1: never shown, 0: always shown, NULL: about advice"),
        Column(
            "advice", TEXT, rules.text(MAX_SOLUTION_CHARS, empty=False), optional=True, about="shown instead, or NULL for none"
        ),
        Column("by_model", INTEGER, whole(0, 1), default=0, about="1 if a model wrote the advice: it goes with any failure"),
    ),
    indexes=(Index("warning", "namespace, warning"),),
    rule=_decides_one_thing,
    orphaned=_OF_NO_FAILURE.format("warning_decision"),
    about="what was decided about warnings: the last row about a matter counts, and goes if its action is taken back",
)
TABLES = (FAILURE, CHECKED, WARNING_DECISION)

_STANDS = "EXISTS (SELECT 1 FROM warning_decision WHERE warning_decision.action = action.id)"
_SHOWING = ("retire", "restore")
ACTIONS = (
    ActionKind("retire", "warning retired", _SHOWING, _STANDS),
    ActionKind("restore", "warning restored", _SHOWING, _STANDS),
    ActionKind("advise", "advice given", ("advise",), _STANDS),
)

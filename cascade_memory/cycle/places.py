"""In which arguments of a call a mistake lies, and in which place it was made: the values of its other arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from cascade_memory.cycle.action_words import is_same_mistake, said_by, words_in
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.trajectory import Step


def is_repeated(mistake: Blame, step: Step) -> bool:
    """Say whether a step is the mistake: it has the tool, and all words of the mistake in the same arguments.

    >>> said = {"action": 'sql({"db": "shop", "q": "SELECT nme FROM t"})', "happened": "no such column: nme"}
    >>> found = Blame(why="failed", tool="sql", group="g", words=("nme",), **said)
    >>> is_repeated(found, Step(tool="sql", arguments={"db": "farm", "q": "SELECT nme FROM fields"}))
    True
    >>> is_repeated(found, Step(tool="sql", arguments={"db": "nme", "q": "SELECT size FROM fields"}))
    False
    """
    if not is_same_mistake(mistake.words, mistake.tool, step):
        return False
    names = _lies_in(mistake)
    if not names or not names & set(step.arguments):
        return True
    said = said_by(Step(tool=step.tool, arguments={name: step.arguments[name] for name in names & set(step.arguments)}))
    return set(mistake.words) <= set(words_in(said))


def place_of(mistake: Blame, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return in which place a call does what a mistake is about: its other arguments.

    >>> said = {"action": 'sql({"db": "shop", "q": "SELECT nme FROM t"})', "happened": "no such column: nme"}
    >>> found = Blame(why="failed", tool="sql", group="g", words=("nme",), **said)
    >>> place_of(found, {"db": "farm", "q": "SELECT nme FROM fields"})
    {'db': 'farm'}
    """
    names = _lies_in(mistake)
    return {name: value for name, value in arguments.items() if name not in names} if names else {}


def place_of_mistake(mistake: Blame) -> Mapping[str, Any]:
    """Return the place in which a mistake was made; nothing if its call was too long to be stored whole."""
    return place_of(mistake, _arguments(mistake.action, mistake.tool))


def _lies_in(mistake: Blame) -> frozenset[str]:
    """Return the names of the arguments in which all words of a mistake stood; none if that is not known."""
    words = set(mistake.words)
    arguments = _arguments(mistake.action, mistake.tool)
    return frozenset(
        name
        for name, value in arguments.items()
        if words <= set(words_in(said_by(Step(tool=mistake.tool, arguments={name: value}))))
    )


def _arguments(action: str, tool: str | None) -> Mapping[str, Any]:
    """Return the arguments of a call that was written out; none if it is no call, or was cut short."""
    if tool is None or not (action.startswith(f"{tool}(") and action.endswith(")")):
        return {}
    try:
        found: object = json.loads(action[len(tool) + 1 : -1])
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}

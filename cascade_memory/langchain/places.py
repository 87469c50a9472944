"""Finds the task and the solution in the state of a graph: in the messages, under a key, or with a function.

Also keeps the last episode in the state, since the user's next message may go on with its task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.validation import MAX_QUERY_CHARS, check_callable, clean_text
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain.messages import answer_in, messages_in, read, since, solution_in, turn_in

Text: TypeAlias = "str | Callable[[Any], Any] | None"
Skip: TypeAlias = "Callable[[str], bool] | None"


def check_places(*, query: Text = None, solution: Text = None, skip: Skip = None) -> None:
    """Refuse a ``query`` or ``solution`` that is neither a key nor a function, and a ``skip`` that is no function."""
    for name, value in {"query": query, "solution": solution}.items():
        if value is not None and not isinstance(value, str) and not callable(value):
            raise InvalidInput(f"{name} must be a key of the state or a function of it, not {type(value).__name__}")
    check_callable(skip, "skip")


def task_at(state: Any, query: Text, skip: Skip = None, *, verb: str) -> tuple[str, str | None, bool]:
    """Return the task, the id of its message (None if there is none), and whether the user goes on with an earlier task.

    The task is empty if there is none: for example, if the message is small talk, if the function ``query`` returns None, or if
    ``skip`` returns True for the text that ``query`` found, or else for the user's own last message.
    """
    if query is None:
        return turn_in(messages_in(state), skip)
    found = query(state) if callable(query) else read(state, query)
    if found is None and callable(query):
        return "", None, False
    if found is None:
        raise InvalidInput(f"{verb}(query={query!r}) found nothing under this key: the state has {keys_in(state)}")
    if not isinstance(found, str):
        raise InvalidInput(f"{verb}(query={query!r}) found a {type(found).__name__} in the state, not a text")
    task = clean_text(found).strip()[:MAX_QUERY_CHARS]
    return ("" if task and skip is not None and skip(task) else task), None, False


def keys_in(state: Any) -> str:
    """Return the names of the fields of a state, as text."""
    names = cast("Mapping[str, Any]", state) if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    return ", ".join(sorted(map(str, names))) or "no keys"


def solution_at(state: Any, solution: Text, anchor: str | None, *, verb: str) -> Solution | None:
    """Return the solution; None if there is none. ``anchor`` is the id of the message with the task."""
    if solution is None:
        return solution_in(since(messages_in(state), anchor), outputs=state)
    found = solution(state) if callable(solution) else read(state, solution)
    if found is None and isinstance(solution, str):
        raise InvalidInput(f"{verb}(solution={solution!r}) found nothing under that key of the state")
    if isinstance(found, (list, tuple)):
        return solution_in(messages_in(found)) or json.dumps(found, default=str)
    return found if found is None or isinstance(found, Trajectory) else answer_in(found) or None


def going_on(before: Mapping[str, Any] | None, task: str, *, goes_on: bool) -> dict[str, Any] | None:
    """Return what the state keeps of the last episode; None if the task begins a new one.

    If the user goes on with the last task, this is its episode, marked with ``goes_on``. If there is no task, the episode stays
    under the key ``last``.

    >>> kept = over({"id": "e", "query": "Where is my tent?"})
    >>> going_on(kept, "Where is my tent?", goes_on=True)
    {'id': 'e', 'query': 'Where is my tent?', 'goes_on': True}
    >>> going_on(kept, "", goes_on=False) == kept
    True
    """
    before = before or {}
    last = _without_mark(before) if before.get("goes_on") else before.get("last")  # the former: a run that failed
    if not task:
        return {} if last is None else {"last": last}
    return {**last, "goes_on": True} if goes_on and last is not None and last["query"] == task else None


def over(episode: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the state keeps of an episode that is over; an episode of the user's own block is not kept."""
    episode = episode or {}
    if episode.get("id") and not episode.get("block"):
        return {"last": _without_mark(episode)}
    return {"last": episode["last"]} if episode.get("last") else {}


def _without_mark(episode: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in episode.items() if name != "goes_on"}

"""Says in a sentence why the arguments of a call are refused: the SDK's own text has names from inside, and a web address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from cascade_memory.domain.quoting import quoted
from cascade_memory.visible import visible

_MOST = 5  # reasons that are said
_REWARD = "a number from 0 to 1"
_KINDS = {
    "string": "a text",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
}


def refused(tool: str, properties: Mapping[str, Any], error: ValidationError) -> str:
    """Say which arguments of a tool are missing or of another type. ``properties`` are those of the tool's schema.

    >>> from pydantic import BaseModel
    >>> class Arguments(BaseModel):
    ...     ticket: str
    ...     reward: float
    >>> about = {"ticket": {"description": "The ticket that recall_cases returned"}}
    >>> try:
    ...     Arguments.model_validate({"reward": "good"})
    ... except ValidationError as wrong:
    ...     print(refused("report_outcome", about, wrong))
    report_outcome needs ticket: the ticket that recall_cases returned; reward must be a number from 0 to 1, not 'good'
    """
    wrong = error.errors(include_url=False, include_context=False)
    said = [_missing(tool, properties, one) if one["type"] == "missing" else _unfit(one) for one in wrong[:_MOST]]
    return visible("; ".join(said))


def _missing(tool: str, properties: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    name = _place(one["loc"])
    about = str(properties.get(name, {}).get("description", ""))
    return f"{tool} needs {name}" + (f": {about[:1].lower()}{about[1:]}" if about else "")


def _unfit(one: Mapping[str, Any]) -> str:
    place = _place(one["loc"])
    kind = _REWARD if place == "reward" else _KINDS.get(str(one["type"]).partition("_")[0])
    if kind is None:
        return f"{place} is refused: {one['msg']}"
    given = "null" if one["input"] is None else quoted(one["input"])  # as the client wrote it
    return f"{place} must be {kind}, not {given}"


def _place(path: tuple[int | str, ...]) -> str:
    """Write where a value stands: ``steps[0].action``."""
    first, *rest = path or ("the arguments",)
    return str(first) + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in rest)

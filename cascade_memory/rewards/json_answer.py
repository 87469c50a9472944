"""A reward for answers that are JSON and follow a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from cascade_memory.domain.episode import Episode
from cascade_memory.errors import InvalidInput
from cascade_memory.rewards.answers import has_answer

_FENCED = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


def valid_json(schema: Mapping[str, Any]) -> Callable[[Episode], float | None]:
    """Reward an answer that is JSON and follows a JSON schema, for example ``Model.model_json_schema()`` of a pydantic model.

    >>> reward = valid_json({"type": "object", "required": ["city"]})
    >>> [reward(Episode(id="e", namespace="n", query="q", status="open", solution=s)) for s in ('{"city": "Ulm"}', "Ulm")]
    [1.0, 0.0]
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidInput(f"valid_json needs a JSON schema: {error.message}") from error
    validator = Draft202012Validator(schema)

    def reward(episode: Episode) -> float | None:
        if not has_answer(episode):
            return None
        text = episode.answer.strip()
        fenced = _FENCED.match(text)
        try:
            value = json.loads(fenced.group(1) if fenced else text)
        except (ValueError, RecursionError):
            return 0.0
        return float(validator.is_valid(value))

    return reward

"""Reads the names of models: from the responses of LlamaIndex' models, from the results of agents, and from models."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, cast

from llama_index.core.base.llms.base import BaseLLM
from workflows.events import StopEvent


def model_in(result: Any) -> str | None:
    """Return the name of the model from the provider's own response in a response or an agent's result; None if it has none.

    >>> from llama_index.core.base.llms.types import CompletionResponse
    >>> model_in(CompletionResponse(text="5", raw={"model": "gpt-5.2"})), model_in("5")
    ('gpt-5.2', None)
    """
    if type(result) is StopEvent:
        result = result.result
    raw = getattr(result, "raw", None)
    for key in ("model", "model_version"):
        name = cast("Mapping[str, Any]", raw).get(key) if isinstance(raw, Mapping) else getattr(raw, key, None)
        if isinstance(name, str) and name:
            return name
    return None


def name_of_model(llm: object) -> str | None:
    """Return the name under which a model is asked; None if it does not say.

    >>> from llama_index.core.llms import MockLLM
    >>> name_of_model(MockLLM()), name_of_model(None)
    ('unknown', None)
    """
    if isinstance(llm, BaseLLM):
        with contextlib.suppress(Exception):  # some models compute their metadata, and cannot for a name that they do not know
            return llm.metadata.model_name
    return None

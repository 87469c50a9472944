"""Somebody passes the memory itself: the error says what to pass."""

from __future__ import annotations

import pytest
from adding_agents import ask
from langchain.agents import create_agent
from scripted import model

import cascade_memory
from cascade_memory.langchain import CascadeMemory


@pytest.mark.parametrize("kind", [CascadeMemory, cascade_memory.CascadeMemory])
def test_as_a_middleware(kind: type):
    with kind(embedder="hashing") as memory, pytest.raises(AttributeError) as raised:
        create_agent(model("hello"), [], middleware=[memory])
    assert "pass create_agent(middleware=[memory.middleware()]), not middleware=[memory]" in str(raised.value)
    assert ("(of cascade_memory.langchain.CascadeMemory(engine=memory))" in str(raised.value)) is (kind is not CascadeMemory)


@pytest.mark.parametrize("kind", [CascadeMemory, cascade_memory.CascadeMemory])
def test_as_a_callback(kind: type):
    with kind(embedder="hashing") as memory, pytest.raises(AttributeError, match=r'pass \{"callbacks": \[memory\.callback\]\}'):
        create_agent(model("hello"), []).invoke(ask("hi"), {"callbacks": [memory]})


@pytest.mark.parametrize("kind", [CascadeMemory, cascade_memory.CascadeMemory])
def test_a_misspelt_name_is_an_attribute_error_as_usual(kind: type):
    with kind(embedder="hashing") as memory:
        assert not hasattr(memory, "reacll")
        assert not hasattr(kind, "wrap_tool_call")
        assert "wrap_tool_call" not in dir(memory)
        with pytest.raises(AttributeError, match=r"has no attribute .reacll.$"):
            memory.reacll  # noqa: B018

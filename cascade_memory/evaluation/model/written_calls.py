"""Finds tool calls that a model wrote as text; some servers, such as llama.cpp and Ollama, pass them on as text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from cascade_memory.evaluation.judging.literals import literal_at
from cascade_memory.evaluation.model.chat import ToolCall

_MOST_CHARS, _MOST_CALLS, _MOST_STARTS = 100_000, 32, 64
_ARGUMENTS = ("arguments", "parameters", "args", "input")  # what the arguments are called
_NAMES = ("name", "tool", "tool_name", "function")  # and the tool
_MARKED = re.compile(r"<function=([\w.-]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>(.*?)</parameter>", re.DOTALL)


def calls_in(text: str, tools: Sequence[str]) -> tuple[ToolCall, ...]:
    r"""Return the calls of offered tools in a text; an empty tuple if the text has none.

    >>> [call] = calls_in('<tool_call>\n{"name": "search", "arguments": {"query": "Alan Turing"}}\n</tool_call>', ["search"])
    >>> call.name, call.arguments
    ('search', '{"query": "Alan Turing"}')
    >>> calls_in('search(query="Alan Turing")', ["search"])[0].arguments
    '{"query": "Alan Turing"}'
    >>> calls_in("<function=search><parameter=query>Alan Turing</parameter></function>", ["search"])[0].arguments
    '{"query": "Alan Turing"}'
    >>> calls_in('{"name": "Alan Turing", "arguments": {}}', ["search"]), calls_in("I would search.", ["search"])
    ((), ())
    """
    text = text[:_MOST_CHARS]
    if not any(tool in text for tool in tools):
        return ()
    found = [*_marked(text)] or [*_objects(text)] or [*_pythonic(text, tools)]
    calls = [(name, arguments) for name, arguments in found if name in tools][:_MOST_CALLS]
    return tuple(
        ToolCall(f"call_{number}", name, json.dumps(arguments, ensure_ascii=False))
        for number, (name, arguments) in enumerate(calls)
    )


def _marked(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls as Llama and Qwen's models for code write them: ``<function=search>...</function>``."""
    if "</function>" not in text:
        return
    for name, inside in _MARKED.findall(text):
        parameters = {key: value.strip() for key, value in _PARAMETER.findall(inside)}
        if not parameters:
            found = literal_at(inside, max(0, inside.find("{")))
            parameters = _named(found[0]) if found is not None and isinstance(found[0], Mapping) else {}
        yield name, parameters


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls as objects of JSON, alone, in a list, in ``<tool_call>`` or in a code block."""
    at = 0
    for _ in range(_MOST_STARTS):
        at = text.find("{", at)
        if at < 0:
            return
        found = literal_at(text, at)
        if found is None:
            at += 1
            continue
        value, at = found
        call = _call(value) if isinstance(value, Mapping) else None
        if call is not None:
            yield call


def _call(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    inner = value.get("function")
    if isinstance(inner, Mapping):  # as in OpenAI's API
        return _call(cast("Mapping[str, Any]", inner))
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return (name, _named(arguments)) if isinstance(name, str) and isinstance(arguments, Mapping) else None


def _named(arguments: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in arguments.items()}


def _pythonic(text: str, tools: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls as Llama writes them, ``[search(query="...")]``, from lines that have nothing else."""
    for line in text.splitlines():
        line = line.strip().removeprefix("<|python_tag|>").strip("`").strip()
        if not line.endswith((")", "]")) or not line.lstrip("[").startswith(tuple(tools)):
            continue
        try:
            node = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for one in node.elts if isinstance(node, ast.List) else [node]:
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and not one.args:
                with_values = [(key.arg, key.value) for key in one.keywords if key.arg is not None]
                if all(isinstance(value, ast.Constant) for _, value in with_values):
                    yield one.func.id, {name: cast("ast.Constant", value).value for name, value in with_values}

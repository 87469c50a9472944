"""Every argument of every tool with every extreme value: refused with a sentence, or stored so that all else goes on.

Which of the calls are made is drawn by chance. With CASCADE_TESTS=matrix all are.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extreme_calls import LONGEST, drawn, in_json
from mcp_doors import Ask, http_door, message, stdio_door
from whole_memory import assert_whole

from cascade_memory import CascadeMemory, Trust
from cascade_memory.mcp_server import build

pytestmark = pytest.mark.fuzz

_DOORS = {"http": http_door, "stdio": stdio_door}
_PATIENCE = 30  # seconds for an answer
_LARGEST = 100_000  # bytes of an answer

_FLAGS = [name for name, one in inspect.signature(build).parameters.items() if isinstance(one.default, bool)]
_SERVERS = [
    (options, tickets)
    for values in itertools.product([False, True], repeat=len(_FLAGS))
    for options in [dict(zip(_FLAGS, values, strict=True))]
    for tickets in (False, True)
]

_VALUE = object()  # stands where the extreme value goes
_HONEST: dict[str, Any] = {"query": "heat some egg", "solution": "microwave", "reward": 1, "tool": "sql", "action": "open"}
_OF_TYPE: dict[str, Any] = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}

# What only JSON writes, or only the SDK reads as something else than it is.
_JSON_ALONE = {
    "1e999": "1e999",
    "twice": '{"a": 1, "a": "b"}',
    "numbers": json.dumps(list(range(100_000))),
    "empty objects": json.dumps([{}] * 100_000),
    "text of nan": '"NaN"',
    "text of a deep list": json.dumps("[" * 5_000 + "]" * 5_000),
    "text of many numbers": json.dumps(json.dumps(list(range(100_000)))),
    "text of a great number": json.dumps("1" + "0" * 5_000),
    "text of a list of a great number": json.dumps("[1" + "0" * 5_000 + "]"),
}


def _parts(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[Any]:
    """Return honest values of a schema that have an extreme one somewhere inside."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    yield _VALUE
    if schema.get("type") == "array":
        yield from ([part] for part in _parts(schema.get("items", {}), definitions))
    elif schema.get("type") == "object":
        for name, inner in schema.get("properties", {"x": {}}).items():
            yield from ({name: part} for part in _parts(inner, definitions))


def _calls(tools: list[dict[str, Any]], values: dict[str, str]) -> list[tuple[str, Any, str]]:
    """Return (tool, arguments, value) of all calls: the arguments have the value in one place, where JSON is to be put."""
    found: list[tuple[str, Any, str]] = []
    for tool in tools:
        schema = tool["inputSchema"]
        places: list[Any] = [_VALUE, {"unknown": _VALUE}]
        for name, one in schema["properties"].items():
            places += [{name: part} for part in _parts(one, schema.get("$defs", {}))]
        found += [(tool["name"], place, label) for place in places for label in values]
        found += [(tool["name"], {"without": name}, "") for name in schema.get("required", ())]
    return found


def _arguments(memory: CascadeMemory, schema: dict[str, Any], place: Any, value: str) -> str:
    """Write the arguments of a call: honest ones where they are needed, and the extreme one in its place."""
    if place is _VALUE:
        return value
    episode = memory.acting(channel="mcp").recall("heat some egg")
    now = {"episode_id": episode.episode_id, "ticket": episode.ticket, "case_ids": [memory.add("heat some egg", "microwave")]}
    given: dict[str, Any] = {}
    for name in schema.get("required", ()):
        given[name] = {**_HONEST, **now}.get(name, _OF_TYPE[schema["properties"][name].get("type", "object")])
    if not value:
        return json.dumps({name: one for name, one in given.items() if name != place["without"]})
    return json.dumps({**given, **place}, default=lambda _: "\0").replace('"\\u0000"', value)


def _wrong(answer: bytes, number: int) -> str | None:
    """Say what is wrong with the answer to a call, if anything."""
    if len(answer) > _LARGEST:
        return f"{len(answer):,} bytes: {answer[:200]!r}"
    said = json.loads(answer)
    if said.get("id", number) not in (number, None, "server-error"):  # nobody knows the id of what cannot be read
        return f"an answer to {said['id']}, not to {number}"
    result = said.get("result")
    if result is not None and not result.get("isError"):
        return None
    text = said["error"] if result is None else result["content"][0]["text"]
    text = text["message"] if isinstance(text, dict) else text
    if not 10 <= len(text) <= LONGEST:
        return f"{len(text):,} characters: {text[:200]}"
    inside = ("Traceback", '.py", line', "StoreError", "RuntimeError", "RecursionError", "the memory failed", "nternal")
    return text if any(sign in text for sign in inside) else None


async def _called(ask: Ask, number: int, tool: str, arguments: str) -> str | None:
    """Call a tool; return what is wrong with the answer, if anything."""
    call = message(number, "tools/call", f'{{"name": "{tool}", "arguments": {arguments}}}')
    try:
        return _wrong(await asyncio.wait_for(ask(call), _PATIENCE), number)
    except asyncio.TimeoutError:
        return "no answer"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("door", _DOORS)
@pytest.mark.parametrize(("options", "tickets"), _SERVERS, ids=str)
async def test_a_tool_refuses_an_extreme_value_or_stores_it_for_good(
    tmp_path: Path, door: str, options: dict[str, bool], tickets: bool
):
    values = {**in_json(), **_JSON_ALONE}
    with CascadeMemory(tmp_path / "m", embedder="hashing", trust=Trust(tickets=tickets), deadline=30) as memory:
        async with _DOORS[door](memory, build(memory, **options)) as ask:
            tools = json.loads(await ask(message(1, "tools/list")))["result"]["tools"]
            schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
            found: dict[str, str] = {}
            calls = drawn(_calls(tools, values), door, len(_DOORS) * len(_SERVERS))
            for number, (tool, place, label) in enumerate(calls, start=2):
                arguments = _arguments(memory, schemas[tool], place, values.get(label, ""))
                if wrong := await _called(ask, number, tool, arguments):
                    found[f"{tool}({str(place).replace(str(_VALUE), label)})"] = wrong
            assert await _called(ask, 1, "memory_stats", "{}") is None
        assert found == {}
        assert_whole(memory, tmp_path)


@pytest.mark.parametrize("door", _DOORS)
@pytest.mark.parametrize(
    "call", [("forget_cases", "case_ids", ""), ("report_outcome", "steps", '"episode_id": "x", "reward": 1, ')], ids=str
)
async def test_a_refusal_of_many_items_is_no_longer_than_that_of_one(ram: CascadeMemory, door: str, call: tuple[str, str, str]):
    tool, name, others = call
    async with _DOORS[door](ram, build(ram)) as ask:
        for item in ("0", '{"action": 0, "tool": 0}', "[]", "null"):
            assert await _called(ask, 1, tool, f'{{{others}"{name}": [{", ".join([item] * 10_000)}]}}') is None


async def test_a_line_that_cannot_be_read_is_answered(ram: CascadeMemory):
    def call(query: str) -> bytes:
        return message(7, "tools/call", f'{{"name": "recall_cases", "arguments": {{"query": {query}}}}}')

    great = b'{"id": 1%s, "params": "\\ud800"}' % (b"0" * 4_000)
    async with stdio_door(ram, build(ram)) as ask:
        for line in (call('"half of \\ud83d"'), call("[" * 400 + "]" * 400)):
            said = json.loads(await asyncio.wait_for(ask(line), _PATIENCE))
            assert said["id"] == 7
            assert "lone surrogates" in said["error"]["message"]
        for line in (
            call("[" * 50_000 + "]" * 50_000),
            b"hello",
            b'{"id": 7, ',
            b'{"id": {}}',
            b"[]",
            b'{"id": "\\ud800"}',
            great,
        ):
            said = json.loads(await asyncio.wait_for(ask(line), _PATIENCE))
            assert said.get("id") is None
            assert said["error"]["code"] == -32_700
        assert "cases" in json.loads(await ask(call('"cool some egg"')))["result"]["structuredContent"]

"""A search tool, as an agent sees it: a name, a description, one text to search for; and that of any MCP server.

What the server says is checked, and its failures become results that say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from cascade_memory import clean_text
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.search.local import LocalSearch
from cascade_memory.evaluation.search.mcp_connection import Connection, ServerFailed, called
from cascade_memory.visible import fitting

MOST_CHARS = 8_000  # of a result that an agent reads; a server may send more
SECONDS = 60.0  # for one search
_MOST_FAILURES = 5  # one after the other, each with a new connection; after that the server is given up
_FIT = re.compile(r"[A-Za-z0-9_-]{1,64}")  # names that model servers accept
_MOST_DESCRIPTION = 1_000


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search as text, or the reason why there is none."""

    text: str
    failed: bool = False


class SearchTool(Protocol):
    """Searches something. A search that fails does not raise: its result says why."""

    @property
    def name(self) -> str:
        """The name by which a model calls the tool."""
        ...

    @property
    def description(self) -> str:
        """A description for the model."""
        ...

    @property
    def parameter(self) -> str:
        """The name of the tool's one parameter, which takes a text."""
        ...

    @property
    def about(self) -> str:
        """A description for the rows of results."""
        ...

    def search(self, query: str) -> Found:
        """Search for a text; return the result, or the reason why there is none."""
        ...

    def close(self) -> None:
        """End processes and connections."""
        ...


class PassageTool:
    """Searches passages on this machine.

    >>> from cascade_memory.evaluation.search.questions import Passage
    >>> PassageTool(LocalSearch([Passage("Jaws", "A film about a shark.")], "bm25")).search("shark").text
    '[{"title": "Jaws", "text": "A film about a shark."}]'
    """

    name, parameter = "search", "query"
    description = (
        "Search an encyclopedia; a name finds its article. Returns the three best passages as JSON, each with title and text."
    )

    def __init__(self, passages: LocalSearch) -> None:
        self._passages = passages
        self.about = f"passages here, {passages.about}"

    def search(self, query: str) -> Found:
        """Return the passages that fit best."""
        passages = [asdict(passage) for passage in self._passages.search(query)]
        return Found(fitting(json.dumps(passages, ensure_ascii=False), MOST_CHARS))

    def close(self) -> None:
        """Nothing needs to be closed."""


def schema(tool: SearchTool) -> Mapping[str, Any]:
    """Describe a tool in the form of OpenAI's chat API.

    Only the names and the description come from the tool. The rest is written here, since a server may describe its parameters
    in any way.
    """
    parameters = {"type": "object", "properties": {tool.parameter: {"type": "string"}}, "required": [tool.parameter]}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


class MCPTool:
    """Searches with a tool of an MCP server: ``server`` is a command that speaks over stdio, or a URL.

    Without ``tool``, the server must have exactly one tool that takes one text. If a search fails because the server hangs,
    dies or reports an error, its result says so. If the connection is broken, the next search connects anew. After several
    broken connections one after the other, ``ModelUnavailable`` is raised.
    """

    def __init__(self, server: str, *, tool: str | None = None, seconds: float = SECONDS) -> None:
        self._server, self.seconds = server, seconds
        self._failures = 0
        self._connection: Connection | None = None
        try:
            self._connection = Connection(server, seconds=seconds)
            chosen, self.parameter = chosen_tool(self._connection.tools(), tool)
        except BaseException as error:
            self.close()
            if isinstance(error, ServerFailed):
                raise ModelUnavailable(f"{error}: check the command or the URL of --search") from error
            raise
        self._tool = str(chosen.name)
        self.name = self._tool if _FIT.fullmatch(self._tool) else "search"
        description = clean_text(str(chosen.description or "")).strip()
        self.description = fitting(description, _MOST_DESCRIPTION) or "Search."
        self.about = f"{called(server)}, tool {self._tool[:64]}"

    def search(self, query: str) -> Found:
        """Search; connect anew if the connection is broken."""
        try:
            if self._connection is None:
                self._connection = Connection(self._server, seconds=self.seconds)
            answer = self._connection.call(self._tool, {self.parameter: query}, seconds=self.seconds)
        except ServerFailed as error:
            self.close()
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                raise ModelUnavailable(
                    f"{self._failures} searches failed one after the other; the last one: {error}. Check the search server"
                ) from error
            return Found(fitting(clean_text(str(error)), MOST_CHARS), failed=True)
        self._failures = 0
        return read_result(answer)

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def chosen_tool(tools: Sequence[Any], name: str | None) -> tuple[Any, str]:
    """Choose a tool by its name, or the only one that takes one text; return it with the name of its parameter."""
    fit = {str(tool.name): (tool, parameter) for tool in tools if (parameter := text_parameter(tool)) is not None}
    listed = ", ".join(sorted(str(tool.name)[:64] for tool in tools)) or "none"
    if name is not None:
        if name not in fit:
            raise InvalidInput(f"the search server has no tool {name!r} that takes one text; its tools: {listed}")
        return fit[name]
    if len(fit) != 1:
        many = "no tool" if not fit else f"{len(fit)} tools"
        raise InvalidInput(
            f"the search server has {many} that take one text; its tools: {listed}. Name one: --search-tool NAME"
        )
    return next(iter(fit.values()))


def text_parameter(tool: Any) -> str | None:
    """Return the name of the one parameter that a tool needs, if it takes a text; None for other tools."""
    given = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None)
    outline = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    properties, required = outline.get("properties"), outline.get("required")
    if not isinstance(properties, Mapping):
        return None
    known = cast("Mapping[str, Any]", properties)
    needed = cast("list[Any]", required) if isinstance(required, list) and required else list(known)
    if len(needed) != 1 or not isinstance(needed[0], str):
        return None
    kind = known.get(needed[0])
    is_text = isinstance(kind, Mapping) and cast("Mapping[str, Any]", kind).get("type") == "string"
    return needed[0] if is_text and _FIT.fullmatch(needed[0]) else None


def read_result(answer: Any) -> Found:
    """Read the texts in a tool's result; pictures and the like are left out."""
    parts = getattr(answer, "content", None)
    blocks = cast("list[Any]", parts) if isinstance(parts, list) else []
    texts = [str(block.text) for block in blocks if getattr(block, "type", None) == "text" and hasattr(block, "text")]
    text = fitting(clean_text("\n\n".join(texts)).strip(), MOST_CHARS)
    failed = bool(getattr(answer, "isError", None) or getattr(answer, "is_error", None))
    return Found(text or "The search found no text.", failed=failed)

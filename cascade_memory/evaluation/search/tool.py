"""A search tool, as an agent sees it: a name, a description, and one text to search for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from cascade_memory.evaluation.search.local import LocalSearch
from cascade_memory.visible import fitting

MOST_CHARS = 8_000  # of a result that an agent reads; a server may send more


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

    >>> from cascade_memory.evaluation.search.passages import Passage
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

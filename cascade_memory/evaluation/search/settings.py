"""How a model searches and who judges its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.search.local import RETRIEVALS, Retrieval
from cascade_memory.evaluation.search.mcp_connection import called

if TYPE_CHECKING:  # the package of models imports this module
    from cascade_memory.evaluation.model.chat import Chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching:
    """The search tool and the judge for questions that need several searches.

    >>> Searching(server="python my_search.py --key 1", tool="find").declared
    {'search': 'python my_search.py', 'search_tool': 'find'}
    """

    server: str | None = None  # an MCP server: a command that speaks over stdio, or a URL; None: the passages of the data
    tool: str | None = None  # its tool; None: the only one that takes one text
    retrieval: Retrieval = "dense"  # how passages of the data are found
    judge: Chat | None = None  # the model that judges answers; None: they are compared with the right ones

    def __post_init__(self) -> None:
        if self.retrieval not in RETRIEVALS:
            raise InvalidInput(f"retrieval must be one of {', '.join(RETRIEVALS)}, not {self.retrieval!r}")
        if self.tool is not None and self.server is None:
            raise InvalidInput("a search tool can only be named together with its server")
        if self.server is not None:
            called(self.server)  # raises if it cannot be read

    @property
    def declared(self) -> Mapping[str, Any]:
        """The settings that differ from the defaults, as they are written into the row of a run."""
        given = {
            "search": None if self.server is None else called(self.server),
            "search_tool": self.tool,
            "retrieval": None if self.retrieval == "dense" else self.retrieval,
            "judge": None if self.judge is None else self.judge.name,
        }
        return {name: value for name, value in given.items() if value is not None}

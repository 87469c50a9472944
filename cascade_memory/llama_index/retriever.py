"""``CascadeMemory`` for LlamaIndex: a retriever with a memory, and the hooks that connect it to runs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import BaseTool, FunctionTool
from typing_extensions import Unpack

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.metadata import MetadataValue, check_metadata
from cascade_memory.domain.recall import TOOL_NAME, Recall
from cascade_memory.domain.validation import MAX_QUERY_CHARS, check_k
from cascade_memory.domain.waiting import asked_by
from cascade_memory.llama_index.block import CascadeMemoryBlock
from cascade_memory.llama_index.embeddings import LlamaIndexEmbedder
from cascade_memory.llama_index.explicit import arun
from cascade_memory.llama_index.guarding import Guard, NotedSteps, guarded
from cascade_memory.llama_index.instrumentation import CascadeSpanHandler
from cascade_memory.llama_index.nodes import nodes, recall_tool
from cascade_memory.llama_index.runs import CHANNEL, Run, Runs, actor_here
from cascade_memory.memory.explaining import saying
from cascade_memory.memory.threads import in_thread
from cascade_memory.ports.encoders import Embedder
from cascade_memory.runs.adapter import Adapter, SharedOptions, engine_for
from cascade_memory.runs.around import ActiveEpisode, JoinedSession, active_episode, join

if TYPE_CHECKING:
    from typing_extensions import Self


class LlamaIndexOptions(SharedOptions, total=False):
    """The options of the engine; its embedder may also be one of LlamaIndex's."""

    embedder: str | Embedder | BaseEmbedding


class CascadeMemory(Adapter, BaseRetriever, metaclass=saying(type(BaseRetriever))):
    """A retriever over past cases that learns from outcomes which ones help.

    ``memory.block()`` shows cases to an agent, ``memory.tool()`` lets the agent recall cases itself, ``memory.guarded(tools)``
    warns it of known mistakes, and ``memory.install()`` learns when runs end; ``await memory.arun(agent, task)`` recalls and
    learns for one run. ``memory.engine`` is the framework-free ``cascade_memory.CascadeMemory`` inside.

    >>> memory = CascadeMemory(embedder="hashing")
    >>> case_id = memory.add("heat some cup", "take cup, microwave it")
    >>> node = memory.retrieve("heat a cup")[0]
    >>> print(node.get_content())
    Task: heat some cup
    Solution:
    take cup, microwave it
    >>> memory.reward(node.metadata["cascade_episode_id"], 1.0)
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        engine: Engine | Adapter | None = None,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        **options: Unpack[LlamaIndexOptions],
    ) -> None:
        """Open a memory in a folder, or in RAM if there is no path.

        Args:
            path: The folder, or the URL of a PostgreSQL database.
            engine: A ``cascade_memory.CascadeMemory`` to share, instead of a path and options.
            k: The largest number of nodes; by default the engine's ``k``.
            where: A metadata filter for the cases, with Chroma's operators. It is set here, since LlamaIndex's retrievers
                do not accept a filter per call.
            metadata: Stored with every episode that this adapter opens and with its case, for example the user's name.
            **options: The options of ``cascade_memory.CascadeMemory``: ``reward_fn``, ``namespace``, ``ranking``, ``embedder``
                (here also any LlamaIndex ``BaseEmbedding``), ...
        """
        self._engine = engine_for(
            path, engine, options, k=k, embedder=lambda one: LlamaIndexEmbedder(one) if isinstance(one, BaseEmbedding) else one
        )
        self._k = self._engine.k if k is None else check_k(k)
        self._where = None if where is None else dict(where)
        self._metadata = check_metadata(metadata)
        settings = json.dumps([self._where, self._metadata], default=str, sort_keys=True)
        # Part of the key of a recall: two adapters with different settings may recall in one episode.
        self._settings = (self._k, settings)
        self._runs = Runs()
        self._named = False
        self._own_tools = {TOOL_NAME}
        self._noted = NotedSteps()
        self._handler = CascadeSpanHandler(self._engine, self._runs, self._own_tools)
        super().__init__()

    # -- as a retriever ----------------------------------------------------------------------------------------------

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes(self._recall(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(functools.partial(self._retrieve, query_bundle), ends_named=True)

    def _recall(self, query: str) -> Recall:
        """Recall within the active episode (of ``arun``, or of the outermost run), and only once for the same query."""
        query = query[:MAX_QUERY_CHARS]
        asking = self._asking()
        about: dict[str, Any] = {"k": self._k, "where": self._where, "metadata": self._metadata}
        around = active_episode(self._engine) or self._runs.here()
        if around is None:
            return asking.recall(query, **about)
        key = (query, *self._settings)
        with around.asking:
            if key not in around.asked:  # otherwise the agent's next step, or a resumed tool, asks again
                around.asked[key] = self._recall_within(around, asking, query, about)
            return around.asked[key]

    def _recall_within(self, around: ActiveEpisode | Run, asking: Engine, query: str, about: dict[str, Any]) -> Recall:
        if isinstance(around, ActiveEpisode):
            return around.join(asking, query, **about)
        with asked_by(around.asker):
            found = join(asking, around.episode_id, query, **about)
        around.episode_id = found.episode_id  # if the run's episode was already closed, this is a new one
        return found

    def _episode_here(self) -> tuple[str, str | None] | None:
        """Return the episode that a tool runs in, and its namespace; None if no recall has opened one."""
        around = active_episode(self._engine) or self._runs.here()
        if around is None:
            return None
        opened = [recall for recall in list(around.asked.values()) if recall.error is None]
        if isinstance(around, ActiveEpisode):
            return (around.episode_id, around.namespace) if opened or not around.asked else None
        return (around.episode_id, None) if opened else None

    # -- hooks -------------------------------------------------------------------------------------------------------

    def tool(self, name: str | None = None, description: str | None = None) -> FunctionTool:
        """Make a tool with which an agent recalls cases itself. Most agents seldom call it: prefer the block."""
        tool = recall_tool(self._recall, name, description)
        self._own_tools.add(tool.metadata.get_name())
        return tool

    def guarded(self, tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
        """Wrap an agent's tools, so that the agent is warned of known mistakes: ``tools=memory.guarded(tools)``.

        A call that is a known mistake returns the warning instead of the tool's output. If the agent calls again, the tool
        runs. Wrap all tools of the agent: what it does with other tools is not seen.

        >>> def multiply(a: int, b: int) -> int:
        ...     return a * b
        >>> (tool,) = CascadeMemory(embedder="hashing").guarded([multiply])
        >>> tool.metadata.name, tool(a=6, b=7).content
        ('multiply', '42')
        """
        guard = Guard(self._engine, self._episode_here, self._noted, self._own_tools)
        return [guarded(tool, guard) for tool in tools]

    def block(self, *, name: str = "cascade_memory", show: Literal["text", "turns"] | None = None) -> CascadeMemoryBlock:
        """Make a block for ``Memory.from_defaults(memory_blocks=[...], insert_method=InsertMethod.USER)``.

        Args:
            name: The name of the block in LlamaIndex's template.
            show: The cases as "text" between fences, or as earlier "turns" of the chat (``recall.messages()``), which come
                before the chat's own history. By default one case is text, and several are turns; in a conversation with a
                system message, cases are always text.
        """
        return CascadeMemoryBlock(self._engine, self._recall, self._runs.go_on, name=name, show=show)

    def install(self) -> Self:
        """Learn from every run of this process that recalls from this memory, when the run ends. Return the memory."""
        self._handler.install()
        return self

    def uninstall(self) -> None:
        """Stop learning from runs."""
        self._handler.uninstall()

    async def arun(self, agent: Any, task: str | ChatMessage, **options: Any) -> tuple[Any, Episode]:
        """Recall for a task, run an agent with the cases before its message, and end the episode, also without ``install()``.

        Args:
            agent: A ``FunctionAgent``, ``ReActAgent``, ``AgentWorkflow``, or another workflow that takes ``user_msg``.
            task: The task.
            **options: Options of ``agent.run``: ``ctx``, ``memory``, ``chat_history``, ``max_iterations``, ...

        Returns:
            The agent's result and the episode. If no ``reward_fn`` has judged the episode, reward it by its id.
        """
        return await arun(self._engine, self._recall, agent, task, self._own_tools, options)

    def episode(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        min_trust: str | None = None,
    ) -> JoinedSession:
        """Recall for a task in a ``with`` or ``async with`` block; its recalls join the episode, which ends with the block."""
        asking, k = self._asking(), self._k if k is None else k
        return JoinedSession(asking, asking.episodes.begin(query, k=k, where=where, metadata=metadata, min_trust=min_trust))

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _acting_as(self, engine: Engine, *, named: bool) -> Self:
        bound = type(self)(engine=engine, k=self._k, where=self._where, metadata=self._metadata)
        bound._named = named or self._named
        return bound

    def _asking(self) -> Engine:
        """Return the memory for the actor who asks: the one that ``acting`` has named, or else the one in the run's tags."""
        return self._engine.acting(actor=None if self._named else actor_here(), channel=CHANNEL)

    @property
    def _own_k(self) -> int:
        return self._k

    def _drain(self) -> None:
        self._handler.drain()

    def close(self) -> None:
        """Stop learning from runs, finish pending work, and release the folder."""
        self._handler.uninstall()
        self._noted.clear()
        super().close()

    @property
    def open_runs(self) -> int:
        """Number of runs that have not ended; 0 if nothing runs."""
        return len(self._runs)

    def __repr__(self) -> str:
        """Describe the memory in one line, without stored content."""
        return f"llama_index.{self._engine!r}"

"""``CascadeMemory`` for LangChain and LangGraph: a retriever that holds a memory, and the hooks that connect it to runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from pydantic import ConfigDict, Field, PrivateAttr
from typing_extensions import Self, Unpack

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.domain.waiting import asked_by
from cascade_memory.errors import InvalidInput, MissingExtra, UnknownEpisode
from cascade_memory.langchain.block import Attached, Attachment, Block
from cascade_memory.langchain.documents import documents, recall_tool
from cascade_memory.langchain.embeddings import LangChainEmbedder
from cascade_memory.langchain.graphs import GraphHooks
from cascade_memory.langchain.handler import CascadeCallbackHandler
from cascade_memory.langchain.run_tree import ACTOR_KEY, CHANNEL, EPISODE_KEY, METADATA_KEY
from cascade_memory.memory.explaining import saying
from cascade_memory.memory.threads import in_reward_thread, in_thread
from cascade_memory.ports.encoders import Embedder
from cascade_memory.runs.adapter import Adapter, SharedOptions, engine_for
from cascade_memory.runs.around import active_episode, join

if TYPE_CHECKING:
    from cascade_memory.langchain.middleware import CascadeMiddleware, Namespace
    from cascade_memory.langchain.nodes import Skip, Text


class LangChainOptions(SharedOptions, total=False):
    """The options of the engine; its embedder may also be one of LangChain's."""

    embedder: str | Embedder | Embeddings


class CascadeMemory(Adapter, GraphHooks, BaseRetriever, metaclass=saying(type(BaseRetriever))):
    """A retriever over past cases that learns from outcomes which cases help.

    Use ``memory.middleware()`` for ``create_agent``, ``memory.callback`` for everything that takes callbacks,
    ``memory.recall_node()``, ``memory.learn_node()`` and ``memory.tool_guard()`` for hand-written graphs, and ``memory.tool()``
    for agents that decide themselves when to recall. ``memory.engine`` is the framework-free memory behind it, with all its
    methods.

    >>> memory = CascadeMemory(embedder="hashing")
    >>> case_id = memory.add("heat some cup", "take cup, microwave it")
    >>> document = memory.invoke("heat a cup")[0]
    >>> print(document.page_content)
    Task: heat some cup
    Solution:
    take cup, microwave it
    >>> memory.reward(document.metadata["cascade_episode_id"], 1.0)
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    k: int = Field(default=1, ge=1)
    _engine: Engine = PrivateAttr()
    _asking: Engine = PrivateAttr()  # the same, acting through this door
    _handler: CascadeCallbackHandler = PrivateAttr()
    _attachment: Attachment = PrivateAttr()

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        engine: Engine | Adapter | None = None,
        k: int | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **options: Unpack[LangChainOptions],
    ) -> None:
        """Open a memory in a folder, or in RAM if there is no path.

        Args:
            path: The folder, or the URL of a PostgreSQL database.
            engine: A ``cascade_memory.CascadeMemory`` to share, instead of a path and options.
            k: The greatest number of documents; by default the engine's own ``k``.
            name: The name of its runs in traces.
            tags: LangChain's tags, for every retrieval.
            metadata: LangChain's metadata, for every retrieval.
            **options: The options of ``cascade_memory.CascadeMemory``: ``reward_fn``, ``namespace``, ``ranking``, ``embedder``
                (here also any LangChain ``Embeddings``), ...
        """
        engine = engine_for(
            path, engine, options, k=k, embedder=lambda one: LangChainEmbedder(one) if isinstance(one, Embeddings) else one
        )
        fields: dict[str, Any] = {"k": engine.k if k is None else k, "name": name, "tags": tags, "metadata": metadata}
        super().__init__(**fields)
        self._engine, self._asking = engine, engine.acting(channel=CHANNEL)
        self._handler = CascadeCallbackHandler(engine)
        self._attachment = Attachment(self._handler)

    # -- as a retriever ----------------------------------------------------------------------------------------------

    if TYPE_CHECKING:  # LangChain takes any keyword there: these are the ones that have a meaning

        def invoke(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            self,
            input: str,
            config: RunnableConfig | None = None,
            *,
            k: int | None = None,
            where: Mapping[str, Any] | None = None,
        ) -> list[Document]:
            """Recall for a task, and return the cases as documents."""
            ...

        async def ainvoke(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            self,
            input: str,
            config: RunnableConfig | None = None,
            *,
            k: int | None = None,
            where: Mapping[str, Any] | None = None,
        ) -> list[Document]:
            """Do what ``invoke`` does, without blocking the event loop."""
            ...

    else:

        def invoke(self, input, config=None, **options):
            """Recall for a task. Also look for the actor in the configurable values, which LangChain hides from retrievers."""
            return super().invoke(input, _with_actor(config), **options)

        async def ainvoke(self, input, config=None, **options):
            """Do what ``invoke`` does, without blocking the event loop."""
            return await super().ainvoke(input, _with_actor(config), **options)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        return documents(self._recall(query, run_manager.parent_run_id, run_manager.metadata, k, where))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        recall = functools.partial(self._recall, query, run_manager.parent_run_id, run_manager.metadata, k, where)
        return documents(await in_thread(recall, ends_named=EPISODE_KEY not in (run_manager.metadata or {})))

    def _recall(
        self,
        query: str,
        run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Recall:
        """Recall within the surrounding episode: that of the user's block, the middleware, the config, or the outermost run."""
        fields = dict(metadata or {})
        of_episode, asks = fields.get(METADATA_KEY), fields.get(ACTOR_KEY)
        asking = self._asking if asks is None else self._asking.acting(actor=str(asks))
        about: dict[str, Any] = {"k": self.k if k is None else k, "where": where, "metadata": of_episode}
        around = active_episode(self._engine)
        root = self._handler.runs.join(run_id, fields)
        episode_id, thread = fields.get(EPISODE_KEY), fields.get("thread_id")
        with contextlib.nullcontext() if root is None else asked_by(root.asker):
            if around is not None:
                return around.join(asking, query, **about)
            own = root is not None and episode_id is None  # the run's own episode; if it was closed, a new one takes its place
            if root is not None and own:
                episode_id = root.episode_id
            wanted = None if episode_id is None else str(episode_id)
            found = join(asking, wanted, query, thread_id=None if thread is None else str(thread), **about)
            if root is not None and own and found.error is None:
                root.episode_id = found.episode_id
            return found

    # -- hooks -------------------------------------------------------------------------------------------------------

    def middleware(
        self,
        *,
        inject: Literal["user", "system"] = "user",
        show: Literal["text", "turns"] | None = None,
        namespace: Namespace = None,
        name: str = "CascadeMiddleware",
        query: Text = None,
        solution: Text = None,
        skip: Skip = None,
    ) -> CascadeMiddleware:
        """Build the middleware for ``create_agent``; put it first in the list.

        Args:
            inject: Show the cases before the user's message ("user"), or at the end of the system prompt ("system").
            show: As "text" between fences, or as earlier "turns" of the chat (``recall.messages()``), which come first; they
                have tool calls only if the agent has all the tools that the cases called. By default one case is text, and
                several are turns; in the system prompt cases are always text.
            namespace: Whose cases to use: a name, or a function of LangGraph's ``runtime``, for example for one namespace per
                user.
            name: Give a second memory in the same agent another name.
            query: The task: a key of the state or a function of the state; by default the user's last message. A function that
                returns None says that there is no task.
            solution: What is stored if the agent succeeds: a key of the state or a function of the state; by default it is read
                from the messages of the episode.
            skip: A function that gets the user's last message (or the text that ``query`` finds), and returns True if it is no
                task, such as a command: then nothing is recalled and no episode is opened.
        """
        try:
            from cascade_memory.langchain.middleware import CascadeMiddleware
        except ImportError as error:
            raise MissingExtra('middleware needs langchain 1.x: pip install "cascade-memory[langchain]"') from error
        self._engine.warm(wait=False)  # while the agent is being built
        about: dict[str, Any] = {"query": query, "solution": solution, "skip": skip, "show": show}
        return CascadeMiddleware(self._engine, self._handler, inject=inject, namespace=namespace, name=name, k=self.k, **about)

    def _acting_as(self, engine: Engine, *, named: bool) -> Self:  # noqa: ARG002 - a config names who asks, or nobody does
        return type(self)(engine=engine, k=self.k, name=self.name, tags=self.tags, metadata=self.metadata)

    @property
    def callback(self) -> CascadeCallbackHandler:
        """The callback handler: ``agent.invoke(..., {"callbacks": [memory.callback]})``."""
        return self._handler

    def attach(self) -> Attached:
        """Attach the callback handler to every run started from now on, or within ``with memory.attach():``."""
        return self._attachment.attach()

    def tool(self, name: str | None = None, description: str | None = None) -> BaseTool:
        """Build a tool with which an agent can recall cases itself. Most agents seldom use it: prefer the middleware."""
        return recall_tool(self._recall, name, description)

    def episode(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        min_trust: str | None = None,
    ) -> Block:
        """Recall for a task in a ``with`` or ``async with`` block; its recalls join the episode, which ends with the block."""
        k = self.k if k is None else k
        makes = self._asking.episodes.begin(query, k=k, where=where, metadata=metadata, min_trust=min_trust)
        return Block(self._asking, makes, self._attachment)

    # -- rewards -----------------------------------------------------------------------------------------------------

    def reward(
        self,
        episode_id: str | UUID | None = None,
        value: float | bool | None = None,
        *,
        run_id: str | UUID | None = None,
        thread_id: object = None,
        solution: Solution | Sequence[Step] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
    ) -> str | None:
        """Report how an episode ended.

        Name the episode by its id, by the id of its outermost run, by its conversation, which means its newest episode, or by
        the trace that its recall was made in.

        Args:
            episode_id: From the result of an agent, or from the metadata of a document.
            value: Between 0 and 1; booleans count as 0 and 1.
            run_id: The id of the outermost run, if the callback handler saw that run.
            thread_id: LangGraph's thread id, as in ``configurable``.
            solution: What solved the task; by default what the run ended with.
            source: Who judged: "host", "human", "env", "judge", "user" or "agent".
            metadata: Stored with the case; ``where=`` filters by it.
            overwrite: Replace an outcome that was reported before.
            confirms: The ``fingerprint`` of the episode as you saw it; needed if its solution is its agent's own report.
            ticket: The ticket of the episode (``episodes.ticket_of``): rewards from users need it in a memory with
                ``Trust(tickets=True)``.
            trace_id: The id of the LangSmith, OpenTelemetry or Langfuse trace around the recall.
            span_id: If the trace has several episodes: the run or span that the recall was made in.

        >>> memory = CascadeMemory(embedder="hashing")
        >>> recall = memory.engine.recall("6 * 7", thread_id="t1")
        >>> case_id = memory.reward(thread_id="t1", value=1.0, solution="42")
        >>> memory.engine.cases.get(case_id).solution
        '42'
        """
        if value is None:
            raise InvalidInput("reward needs a value between 0 and 1")
        self._drain()
        by_trace = trace_id is not None and episode_id is run_id is thread_id is None
        return self._engine.reward(
            None if by_trace else self._which(episode_id, run_id, thread_id),
            value,
            solution=solution,
            source=source,
            metadata=metadata,
            overwrite=overwrite,
            confirms=confirms,
            ticket=ticket,
            trace_id=trace_id,
            span_id=span_id,
        )

    async def areward(
        self,
        episode_id: str | UUID | None = None,
        value: float | bool | None = None,
        *,
        run_id: str | UUID | None = None,
        thread_id: object = None,
        solution: Solution | Sequence[Step] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
    ) -> str | None:
        """Do what ``reward`` does without blocking the event loop."""
        reward = functools.partial(self.reward, episode_id, value, run_id=run_id, thread_id=thread_id, solution=solution)
        settings: dict[str, Any] = {"source": source, "overwrite": overwrite, "confirms": confirms, "ticket": ticket}
        settings |= {"trace_id": trace_id, "span_id": span_id}
        return await in_reward_thread(functools.partial(reward, metadata=metadata, **settings))

    def _which(self, episode_id: str | UUID | None, run_id: str | UUID | None, thread_id: object) -> str:
        given = [one for one in (episode_id, run_id, thread_id) if one is not None]
        if len(given) != 1:
            raise InvalidInput("reward needs one of episode_id, run_id=, thread_id= and trace_id=")
        if thread_id is None:
            return str(given[0])
        found = self._engine.episodes.latest(str(thread_id))
        if found is None:
            raise UnknownEpisode(f"conversation {thread_id!r} has no episode; check that its recall had this thread_id")
        return found.id

    def _drain(self) -> None:
        self._handler.drain()

    @property
    def _own_k(self) -> int:
        return self.k

    # -- as an object ------------------------------------------------------------------------------------------------

    def configurable_fields(self, **_: Any) -> Any:
        """Raise an error: LangChain would open another memory for each configuration."""
        raise InvalidInput("a memory has no configurable fields; k and where can be given with each call: invoke(query, k=3)")

    def __hash__(self) -> int:
        """Hash by identity, as equality is by identity."""
        return id(self)

    def __repr__(self) -> str:
        """Describe the memory in one line, without any stored data."""
        return f"langchain.{self._engine!r}"

    __str__ = __repr__

    def __repr_args__(self) -> Sequence[tuple[str | None, Any]]:
        """Return no fields, so that LangChain's own representations show none of the stored data."""
        return []


def _with_actor(config: RunnableConfig | None) -> RunnableConfig:
    """Return a run's configuration in which the metadata name the actor that the configurable values name.

    The configurable values are those of the run or of the outer run; an actor in the metadata is not replaced.
    """
    whole = ensure_config(config)
    actor = (whole.get("configurable") or {}).get(ACTOR_KEY)
    metadata = whole.get("metadata") or {}
    return whole if actor is None or ACTOR_KEY in metadata else {**whole, "metadata": {**metadata, ACTOR_KEY: actor}}

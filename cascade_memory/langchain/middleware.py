"""The middleware for ``create_agent``: recalls before the agent runs, and ends the episode after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse, OmitFromInput, PrivateStateAttr
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables.config import RunnableConfig, var_child_runnable_config
from langgraph.config import get_config
from typing_extensions import NotRequired, override

from cascade_memory.cycle.chat_turns import Show, check_show
from cascade_memory.domain.display import quoted
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.validation import check_namespace
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain.block import block_around
from cascade_memory.langchain.documents import in_system, shown, with_cases
from cascade_memory.langchain.guarding import awarning_before, warning_before
from cascade_memory.langchain.messages import RECALLED, Record, messages_in, model_in, read, since, solution_in
from cascade_memory.langchain.nodes import Skip, Text, check_places, going_on, over, solution_at, task_at
from cascade_memory.langchain.run_tree import CHANNEL, EPISODE_KEY, METADATA_KEY, actor_in
from cascade_memory.memory.threads import in_thread
from cascade_memory.runs.around import ActiveEpisode, within
from cascade_memory.runs.ending import answered

if TYPE_CHECKING:
    from cascade_memory.langchain.handler import CascadeCallbackHandler
    from cascade_memory.memory.memory import Memory

Namespace: TypeAlias = "str | Callable[[Any], str] | None"


def merged(before: dict[str, Any] | None, update: dict[str, Any] | None) -> dict[str, Any]:
    """Merge two updates, so that two memories in one agent keep their episodes side by side."""
    return {**(before or {}), **(update or {})}


class CascadeState(AgentState[Any]):
    """What the middleware stores in the graph's state: plain JSON, so that any checkpointer can store it."""

    cascade_episode: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, merged]]  # keyed by the middleware's name
    cascade_episode_id: NotRequired[Annotated[str | None, OmitFromInput]]


class CascadeMiddleware(AgentMiddleware[CascadeState, Any]):
    """The middleware that recalls before an agent runs and ends the episode after it; made by ``memory.middleware()``.

    Put it first in ``create_agent(..., middleware=[...])``. An episode lasts from a user's message to the final answer, across
    interrupts and resumes, even in another process. The recalled cases are shown to the model in every call
    of the episode and never enter the history. The episode's id is in the result (``result["cascade_episode_id"]``) and in the
    last message's ``response_metadata``. If the agent is about to repeat a known mistake, it gets a warning in place of the
    tool's answer; if it calls again, the tool runs.
    """

    state_schema = CascadeState

    def __init__(
        self,
        memory: Memory,
        handler: CascadeCallbackHandler,
        *,
        inject: Literal["user", "system"] = "user",
        show: Show | None = None,
        namespace: Namespace = None,
        name: str = "CascadeMiddleware",
        k: int | None = None,
        query: Text = None,
        solution: Text = None,
        skip: Skip = None,
    ) -> None:
        super().__init__()
        if inject not in ("user", "system"):
            raise InvalidInput(f'inject must be "user" or "system", not {quoted(inject)}')
        check_show(show)
        if show == "turns" and inject == "system":
            raise InvalidInput('turns of a chat cannot stand in the system prompt: leave out inject="system"')
        if namespace is not None and not callable(namespace):
            check_namespace(namespace)
        check_places(query=query, solution=solution, skip=skip)
        self.tools = []
        self._memory, self._handler, self._inject, self._namespace, self._name = memory, handler, inject, namespace, name
        self._k, self._query, self._answer, self._skip = k, query, solution, skip
        # The system prompt has no room for turns, so by default its cases are text.
        self._show: Show | None = "text" if inject == "system" else show
        self._record = Record()

    @property
    @override
    def name(self) -> str:
        """The name that distinguishes several instances in the same agent."""
        return self._name

    # -- the episode begins ------------------------------------------------------------------------------------------

    # LangGraph gives the config to a parameter of this spelling. Before Python 3.11, asynchronous nodes get it in no other way.
    @override
    def before_agent(
        self,
        state: CascadeState,
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045
    ) -> dict[str, Any] | None:
        """Recall for the user's task, and put the episode into the state."""
        try:
            return self._begin(state, runtime, _config() if config is None else config)
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            self._memory.data.note_failure("recall", error)
            return self._no_episode()

    @override
    async def abefore_agent(
        self,
        state: CascadeState,
        runtime: Any,
        config: Optional[RunnableConfig] = None,  # noqa: UP045
    ) -> dict[str, Any] | None:
        """Do what ``before_agent`` does, without blocking the event loop."""
        return await in_thread(lambda: self.before_agent(state, runtime, config), ends_named=True)

    def _begin(self, state: CascadeState, runtime: Any, config: Mapping[str, Any]) -> dict[str, Any] | None:
        if (before := self._episode(state)) is not None:  # of a turn that never came to its end
            self._record.take(before["id"])
            if not before["block"]:
                self._in(before).episodes.abandon(before["id"])
        task, anchor, goes_on = task_at(state, self._query, self._skip, verb="middleware")
        if (last := going_on(self._kept(state), task, goes_on=goes_on)) is not None:
            return {"cascade_episode": {self._name: last}, EPISODE_KEY: last.get("id")}
        namespace = self._namespace(runtime) if callable(self._namespace) else self._namespace
        info = getattr(runtime, "execution_info", None)
        thread = getattr(info, "thread_id", None) or config.get("configurable", {}).get("thread_id")
        fields = {} if thread is None else {"thread_id": str(thread)}
        callbacks: Any = config.get("callbacks")
        run_id = getattr(callbacks, "parent_run_id", None)
        # The episode gets the id of the outermost run, or else a run id that the caller chose for this run.
        wanted = self._handler.runs.claim(run_id, fields) or getattr(info, "run_id", None)
        metadata = (config.get("metadata") or {}).get(METADATA_KEY)
        actor = actor_in(config.get("metadata"), config.get("configurable"))
        asking = self._memory.acting(actor=actor, channel=CHANNEL, namespace=namespace)
        with self._handler.runs.recalling(run_id, fields):
            recall, in_session = self._recall(asking, task, fields.get("thread_id"), wanted, metadata)
        if recall.error is not None and not recall.cases:
            return self._no_episode()
        if not in_session and not self._handler.runs.adopt(run_id, fields, recall.episode_id, namespace):
            asking.episodes.abandon(recall.episode_id)
            return self._no_episode()
        episode = {
            "id": recall.episode_id,
            "query": task,
            **shown(recall, self._show),
            "anchor": anchor,
            "namespace": recall.namespace if in_session else namespace,
            "block": in_session,
        }
        return {"cascade_episode": {self._name: episode}, EPISODE_KEY: recall.episode_id}

    def _no_episode(self) -> dict[str, Any]:
        """Return the state update that removes the episode and its id, since both belong to an earlier message of the user."""
        return {**self._nothing(), EPISODE_KEY: None}

    def _nothing(self) -> dict[str, Any]:
        return {"cascade_episode": {self._name: None}}

    def _over(self, episode: Mapping[str, Any]) -> dict[str, Any]:
        return {"cascade_episode": {self._name: over(episode) or None}}

    def _kept(self, state: Any) -> dict[str, Any] | None:
        return cast("dict[str, Any]", read(state, "cascade_episode") or {}).get(self._name)

    def _episode(self, state: Any) -> dict[str, Any] | None:
        kept = self._kept(state)
        return kept if kept and kept.get("id") else None

    def _in(self, episode: Mapping[str, Any]) -> Memory:
        """Return the memory, acting in the namespace of an episode."""
        return self._memory.acting(namespace=episode["namespace"])

    def _recall(self, asking: Memory, task: str, thread: str | None, wanted: Any, metadata: Any) -> tuple[Recall, bool]:
        """Recall for a task; return the recall, and whether its episode is that of the user's own ``with`` block."""
        if (block := block_around(self._memory)) is not None:
            if block.recall.query in (task, self._memory.episodes.as_stored(task, block.id)):
                return block.recall, True
            inside = asking.acting(namespace=block.recall.namespace)
            return inside.recall(task, k=self._k, episode_id=block.id, metadata=metadata), True
        episode_id = None if wanted is None else str(wanted)
        if episode_id is not None and self._memory.episodes.knows(episode_id):
            episode_id = None
        return asking.recall(task, k=self._k, episode_id=episode_id, thread_id=thread, metadata=metadata), False

    # -- the agent works ---------------------------------------------------------------------------------------------

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> Any:
        """Show the cases to the model, and record its reply."""
        response = handler(self._with_cases(request))
        self._note(request.state, response)
        return response

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """Do what ``wrap_model_call`` does, for asynchronous models."""
        response = await handler(self._with_cases(request))
        self._note(request.state, response)
        return response

    @override
    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Warn of a known mistake, or run the tool; its recalls join the episode, and its answer is recorded."""
        episode = self._around(request.state)
        if episode is None:
            return _without_id(handler(request))
        warning = warning_before(self._memory, request, episode.episode_id, episode.namespace)
        if warning is not None:
            return self._noted(episode, warning)
        with within(episode):
            result = _without_id(handler(request))
        return self._noted(episode, result)

    @override
    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do what ``wrap_tool_call`` does, for asynchronous tools."""
        episode = self._around(request.state)
        if episode is None:
            return _without_id(await handler(request))
        warning = await awarning_before(self._memory, request, episode.episode_id, episode.namespace)
        if warning is not None:
            return self._noted(episode, warning)
        with within(episode):
            result = _without_id(await handler(request))
        return self._noted(episode, result)

    def _with_cases(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        episode = self._episode(request.state)
        if episode is None or not (episode["context"] or episode.get("turns")):
            return request
        if self._inject == "system":
            return request.override(system_message=in_system(request.system_message, episode["context"]))
        return request.override(messages=cast("Any", with_cases(request.messages, episode, _names_of(request.tools))))

    def _note(self, state: Any, response: Any) -> None:
        """Record the model's reply: a summary may remove it from the history before the episode ends."""
        episode = self._episode(state)
        if episode is not None:
            inner: Any = getattr(response, "model_response", response)  # an inner middleware may have wrapped it
            self._record.add(
                episode["id"], messages_in(inner if isinstance(inner, AIMessage) else getattr(inner, "result", ()))
            )

    def _around(self, state: Any) -> ActiveEpisode | None:
        episode = self._episode(state)
        if episode is None:
            return None
        return ActiveEpisode(memory=self._memory, episode_id=episode["id"], namespace=episode["namespace"])

    def _noted(self, episode: ActiveEpisode, result: Any) -> Any:
        for message in [result] if isinstance(result, ToolMessage) else messages_in(getattr(result, "update", None)):
            if episode.recalls and isinstance(message, ToolMessage):
                message.additional_kwargs[RECALLED] = True
            self._record.add(episode.episode_id, [message])
        return result

    # -- the episode ends --------------------------------------------------------------------------------------------

    @override
    def after_agent(self, state: CascadeState, runtime: Any) -> dict[str, Any] | None:
        """End the episode with the steps and the answer as its solution."""
        episode = self._episode(state)
        if episode is None:
            return None
        with self._ending():
            solution = self._solution(episode, state)
            if not self._in_session(episode, solution):
                self._in(episode).end(episode["id"], solution=solution, follow_up=bool(episode.get("goes_on")))
        return {**self._over(episode), **_tagged(episode, state)}

    @override
    async def aafter_agent(self, state: CascadeState, runtime: Any) -> dict[str, Any] | None:
        """Do what ``after_agent`` does, without blocking the event loop."""
        episode = self._episode(state)
        if episode is None:
            return None
        with self._ending():
            solution = self._solution(episode, state)
            if not self._in_session(episode, solution):
                await self._in(episode).aend(episode["id"], solution=solution, follow_up=bool(episode.get("goes_on")))
        return {**self._over(episode), **_tagged(episode, state)}

    @interruptible
    def _ending(self) -> Generator[None, None, None]:
        """Within the block, keep the runs of a ``reward_fn`` out of the agent's stream and traces, and count failures only."""
        token = var_child_runnable_config.set({})
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the agent has its answer; the episode stays pending
            self._memory.data.note_failure("reward", error)
        finally:
            var_child_runnable_config.reset(token)

    def _solution(self, episode: Mapping[str, Any], state: Any) -> Any:
        try:
            return self._read_solution(episode, state)
        except Exception as error:  # noqa: BLE001 - an episode whose solution cannot be read must end as well
            self._memory.data.note_failure("reward", error)
            return None

    def _read_solution(self, episode: Mapping[str, Any], state: Any) -> Any:
        history = since(messages_in(state), episode["anchor"])
        answered(self._memory, episode["id"], model_in(history))
        if self._answer is not None:
            return solution_at(state, self._answer, episode["anchor"], verb="middleware")
        watched = self._record.take(episode["id"])
        known = {message.id for message in history}
        # Other middleware may have edited the history on purpose: it is the better source unless something is missing.
        complete = all(message.id in known for message in watched if isinstance(message, AIMessage))
        return solution_in(history if complete else watched, outputs=state)

    def _in_session(self, episode: Mapping[str, Any], solution: Any) -> bool:
        """Say whether the user's own block will end the episode; if so, pass the solution to the block."""
        block = block_around(self._memory)
        if not episode["block"] or block is None:
            return False
        block.watched(solution)
        return True

    def __repr__(self) -> str:
        """Describe the middleware in one line."""
        return f"CascadeMiddleware({self._memory!r}, name={self._name!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> CascadeMiddleware:
        """Return this same object: agents are copied, the memory is not."""
        return self


def _names_of(tools: Sequence[Any]) -> list[str]:
    """Return the names of tools, which may be objects or the dictionaries that a provider's API takes."""
    plain = [one.get("function", one) if isinstance(one, Mapping) else one for one in tools]
    return [str(read(one, "name")) for one in plain]


def _without_id(result: Any) -> Any:
    """Return a tool's result without the episode's id: an agent inside the tool (deepagents' ``task``) set it, not this run."""
    update = getattr(result, "update", None)
    if isinstance(update, dict):
        cast("dict[str, Any]", update).pop(EPISODE_KEY, None)
    return result


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    except RuntimeError:  # called by hand
        return {}


def _tagged(episode: Mapping[str, Any], state: Any) -> dict[str, Any]:
    """Return the state update that puts the episode's id into the result and the last answer, where an outer graph finds it."""
    update: dict[str, Any] = {EPISODE_KEY: episode["id"]}
    messages: list[BaseMessage] = messages_in(state)
    if messages and isinstance(messages[-1], AIMessage) and messages[-1].id:
        last = messages[-1]
        tagged = {**last.response_metadata, EPISODE_KEY: episode["id"]}
        update["messages"] = [last.model_copy(update={"response_metadata": tagged})]
    return update

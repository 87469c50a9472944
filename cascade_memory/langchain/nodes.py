"""Nodes for hand-written LangGraph graphs: one recalls, one ends the episode. The episode is stored in the graph's state.

The task and the solution are found in that state: in the messages, under a key, or with a function. The last episode stays in
the state as well, since the user's next message may go on with its task.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from cascade_memory.cycle.chat_turns import Show, check_show
from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.validation import MAX_QUERY_CHARS, check_callable, clean_text
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain.block import block_around
from cascade_memory.langchain.documents import shown
from cascade_memory.langchain.messages import answer_in, messages_in, model_in, read, since, solution_in, turn_in
from cascade_memory.langchain.run_tree import CHANNEL, METADATA_KEY, actor_in
from cascade_memory.memory.threads import in_reward_thread, in_thread
from cascade_memory.redaction.saying import warn
from cascade_memory.runs.ending import answered, fail_open

if TYPE_CHECKING:
    from uuid import UUID

    from cascade_memory.domain.recall import Recall
    from cascade_memory.langchain.handler import CascadeCallbackHandler
    from cascade_memory.memory.memory import Memory

Text: TypeAlias = "str | Callable[[Any], Any] | None"
Skip: TypeAlias = "Callable[[str], bool] | None"
Score: TypeAlias = "Callable[[Any], float | bool | None] | None"


def check_places(*, query: Text = None, solution: Text = None, skip: Skip = None) -> None:
    """Refuse a ``query`` or ``solution`` that is neither a key nor a function, and a ``skip`` that is no function."""
    for name, value in {"query": query, "solution": solution}.items():
        if value is not None and not isinstance(value, str) and not callable(value):
            raise InvalidInput(f"{name} must be a key of the state or a function of it, not {type(value).__name__}")
    check_callable(skip, "skip")


def task_at(state: Any, query: Text, skip: Skip = None, *, verb: str) -> tuple[str, str | None, bool]:
    """Return the task, the id of its message (None if there is none), and whether the user goes on with an earlier task.

    The task is empty if there is none: for example, if the message is small talk, if the function ``query`` returns None, or if
    ``skip`` returns True for the text that ``query`` found, or else for the user's own last message.
    """
    if query is None:
        return turn_in(messages_in(state), skip)
    found = query(state) if callable(query) else read(state, query)
    if found is None and callable(query):
        return "", None, False
    if found is None:
        raise InvalidInput(f"{verb}(query={query!r}) found nothing under this key: the state has {keys_in(state)}")
    if not isinstance(found, str):
        raise InvalidInput(f"{verb}(query={query!r}) found a {type(found).__name__} in the state, not a text")
    task = clean_text(found).strip()[:MAX_QUERY_CHARS]
    return ("" if task and skip is not None and skip(task) else task), None, False


def keys_in(state: Any) -> str:
    """Return the names of the fields of a state, as text."""
    names = cast("Mapping[str, Any]", state) if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    return ", ".join(sorted(map(str, names))) or "no keys"


def solution_at(state: Any, solution: Text, anchor: str | None, *, verb: str) -> Solution | None:
    """Return the solution; None if there is none. ``anchor`` is the id of the message with the task."""
    if solution is None:
        return solution_in(since(messages_in(state), anchor), outputs=state)
    found = solution(state) if callable(solution) else read(state, solution)
    if found is None and isinstance(solution, str):
        raise InvalidInput(f"{verb}(solution={solution!r}) found nothing under that key of the state")
    if isinstance(found, (list, tuple)):
        return solution_in(messages_in(found)) or json.dumps(found, default=str)
    return found if found is None or isinstance(found, Trajectory) else answer_in(found) or None


def going_on(before: Mapping[str, Any] | None, task: str, *, goes_on: bool) -> dict[str, Any] | None:
    """Return what the state keeps of the last episode; None if the task begins a new one.

    If the user goes on with the last task, this is its episode, marked with ``goes_on``. If there is no task, the episode stays
    under the key ``last``.

    >>> kept = over({"id": "e", "query": "Where is my tent?"})
    >>> going_on(kept, "Where is my tent?", goes_on=True)
    {'id': 'e', 'query': 'Where is my tent?', 'goes_on': True}
    >>> going_on(kept, "", goes_on=False) == kept
    True
    """
    before = before or {}
    last = _without_mark(before) if before.get("goes_on") else before.get("last")  # the former: a run that failed
    if not task:
        return {} if last is None else {"last": last}
    return {**last, "goes_on": True} if goes_on and last is not None and last["query"] == task else None


def over(episode: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the state keeps of an episode that is over; an episode of the user's own block is not kept."""
    episode = episode or {}
    if episode.get("id") and not episode.get("block"):
        return {"last": _without_mark(episode)}
    return {"last": episode["last"]} if episode.get("last") else {}


def _without_mark(episode: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in episode.items() if name != "goes_on"}


class _Once:
    """Warns once per node that the state lacks something, and says which option names the right key."""

    def __init__(self) -> None:
        self._warned = False

    def missing(self, state: Any, what: str, remedy: str) -> None:
        if not self._warned:
            self._warned = True
            warn(f"{what} the state has {keys_in(state)}; {remedy}", UserWarning)


def recall_node(
    memory: Memory, handler: CascadeCallbackHandler, *, query: Text, skip: Skip, key: str, k: int, show: Show | None
) -> Runnable[Any, Any]:
    """Build the node that opens an episode."""
    check_places(query=query, skip=skip)
    check_show(show)
    once = _Once()

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        try:
            return {key: _open(state, config)}
        except InvalidInput:
            raise  # a mistake in the graph, for example no query under the given key
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            memory.data.note_failure("recall", error)
            return {key: {}}

    def _open(state: Any, config: RunnableConfig) -> dict[str, Any]:
        before = cast("Mapping[str, Any]", read(state, key) or {})
        _abandon(memory, before)
        task, anchor, goes_on = task_at(state, query, skip, verb="recall_node")
        if not task:
            _warn_no_task(once, state, query, skip)
        if (last := going_on(before, task, goes_on=goes_on)) is not None:
            return last
        if (block := block_around(memory)) is not None:  # the block has recalled, and will end the episode
            return {"id": block.id, "query": task, "anchor": anchor, "block": True, **shown(block.recall, show)}
        thread = (config.get("configurable") or {}).get("thread_id")
        metadata = (config.get("metadata") or {}).get(METADATA_KEY)
        actor = actor_in(config.get("metadata"), config.get("configurable"))
        thread = None if thread is None else str(thread)
        asking = memory.acting(actor=actor, channel=CHANNEL)
        recall = partial(asking.recall, task, k=k, thread_id=thread, metadata=metadata)
        found = _adopted(memory, handler, recall, getattr(config.get("callbacks"), "parent_run_id", None))
        if found is None:
            return {}
        return {"id": found.episode_id, "query": task, "anchor": anchor, **shown(found, show)}

    async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await in_thread(lambda: node(state, config))

    return RunnableLambda(node, anode, name="recall")


def _abandon(memory: Memory, before: Mapping[str, Any]) -> None:
    """Abandon an episode whose run never reached its end, unless it belongs to the user's own ``with`` block."""
    if before.get("id") and not before.get("block"):
        memory.episodes.abandon(before["id"])


def _adopted(
    memory: Memory, handler: CascadeCallbackHandler, recall: Callable[[], Recall], run_id: UUID | None
) -> Recall | None:
    """Recall, and return the recall; return None if it failed or if the outermost run has ended.

    If the run ends before the graph has ended the episode, the callback handler ends it.
    """
    with handler.runs.recalling(run_id, {}):
        found = recall()
    if found.error is not None and not found.cases:
        return None
    if not handler.runs.adopt(run_id, {}, found.episode_id, None):
        memory.episodes.abandon(found.episode_id)
        return None
    return found


def learn_node(memory: Memory, *, solution: Text, reward: Score, key: str) -> Runnable[Any, Any]:
    """Build the node that ends the episode."""
    check_places(solution=solution)
    check_callable(reward, "reward")
    if inspect.iscoroutinefunction(reward):
        raise InvalidInput("learn_node(reward=...) takes a plain function; a memory's reward_fn may be asynchronous")
    once = _Once()
    if reward is not None:
        return _scored(memory, solution=solution, reward=reward, key=key, once=once)

    def node(state: Any) -> dict[str, Any]:
        with fail_open(memory, "reward"):  # the answer exists, so the graph must go on; the episode stays pending
            if (ready := _ready(memory, state, solution, key, once)) is not None:
                memory.end(ready[0], solution=ready[1], follow_up=ready[2])
        return {key: over(read(state, key))}

    async def anode(state: Any) -> dict[str, Any]:
        with fail_open(memory, "reward"):
            if (ready := _ready(memory, state, solution, key, once)) is not None:
                await memory.aend(ready[0], solution=ready[1], follow_up=ready[2])
        return {key: over(read(state, key))}

    return RunnableLambda(node, anode, name="learn")


def _scored(
    memory: Memory, *, solution: Text, reward: Callable[[Any], float | bool | None], key: str, once: _Once
) -> Runnable[Any, Any]:
    """Build the node that takes the reward from a function of the state; exceptions of that function reach the graph."""

    def node(state: Any) -> dict[str, Any]:
        value = reward(state)
        with fail_open(memory, "reward"):
            ready = _ready(memory, state, solution, key, once)
            episode = None if ready is None else memory.episodes.get(ready[0])
            if ready is not None and episode is not None and (ready[2] or episode.status == "open"):  # otherwise a replay
                if value is None:
                    memory.episodes.finish(ready[0], solution=ready[1])
                else:
                    memory.acting(channel=CHANNEL).reward(ready[0], value, solution=ready[1], overwrite=ready[2])
        return {key: over(read(state, key))}

    async def anode(state: Any) -> dict[str, Any]:
        return await in_reward_thread(lambda: node(state))

    return RunnableLambda(node, anode, name="learn")


def _ready(memory: Memory, state: Any, solution: Text, key: str, once: _Once) -> tuple[str, Solution | None, bool] | None:
    found = read(state, key)
    if found is None:
        raise InvalidInput(
            f"the graph's state holds no {key!r} from recall_node: declare `{key}: dict` in the state, run recall_node before, "
            f"and give both nodes the same key"
        )
    episode = cast("Mapping[str, Any]", found)
    if not episode.get("id"):
        return None
    solved = solution_at(state, solution, episode.get("anchor"), verb="learn_node")
    answered(memory, episode["id"], model_in(since(messages_in(state), episode.get("anchor"))))
    if solved is None:
        where = "learn_node(solution=KEY), or a function of the state, says where to find it"
        once.missing(state, f"learn_node found no solution{_under(solution)}, so nothing can be stored:", where)
    if episode.get("block") and (block := block_around(memory)) is not None:
        block.watched(solved)
        return None
    return str(episode["id"]), solved, bool(episode.get("goes_on"))


def _warn_no_task(once: _Once, state: Any, query: Text, skip: Skip) -> None:
    if skip is not None or callable(query):
        return  # a function has said that there is none
    if query is not None or not messages_in(state):  # a message that was already answered is not a new task
        where = "recall_node(query=KEY), or a function of the state, says where to find it"
        once.missing(state, f"recall_node found no task{_under(query)}, so nothing is recalled:", where)


def _under(place: Text) -> str:
    return f" under {place!r}" if isinstance(place, str) else ""

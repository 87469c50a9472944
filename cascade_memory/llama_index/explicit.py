"""``CascadeMemory.arun``: recalls, runs an agent and ends the episode, without listening to the other runs of the process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from workflows.errors import WorkflowCancelledByUser

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.recall import Recall
from cascade_memory.errors import InvalidInput
from cascade_memory.llama_index.block import CascadeMemoryBlock
from cascade_memory.llama_index.instrumentation import read_solution
from cascade_memory.llama_index.trajectory import model_in, name_of_model, text_of
from cascade_memory.memory.threads import in_reward_thread, in_thread, soon_in_reward_thread
from cascade_memory.runs.around import ActiveEpisode, within
from cascade_memory.runs.ending import answered, fail_open, status_of

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


async def arun(
    memory: Memory,
    recall: Callable[[str], Recall],
    agent: Any,
    task: str | ChatMessage,
    own_tools: Collection[str],
    options: Mapping[str, Any],
) -> tuple[Any, Episode]:
    """Implement ``CascadeMemory.arun``."""
    if not callable(getattr(agent, "run", None)):
        raise InvalidInput(f"arun(agent, task) needs an agent with a method run, not {type(agent).__name__}")
    message: Any = ChatMessage(role="user", content=task) if isinstance(task, str) else task
    if not isinstance(message, ChatMessage):
        raise InvalidInput(f"arun(agent, task) needs a task as text or as a ChatMessage, not {type(task).__name__}")
    query = text_of(message)
    if not query:
        raise InvalidInput("arun needs a task that contains text")
    entry = ActiveEpisode(memory=memory, episode_id=uuid.uuid4().hex, namespace=None)
    try:
        with within(entry):
            cases = ""
            with fail_open(memory, "recall"):
                first = await in_thread(lambda: recall(query), ends_named=True)
                cases = "" if _shows_cases(options.get("memory"), recall) else first.render()
            if cases:
                message = message.model_copy(update={"blocks": [TextBlock(text=cases), *message.blocks]})
            output = await _run(agent, message, options)
    except (Exception, asyncio.CancelledError) as error:
        with fail_open(memory, "reward"):
            await asyncio.shield(memory.aend(entry.episode_id, status=status_of(error, WorkflowCancelledByUser)))
        raise
    except BaseException:  # a coroutine that is thrown away may wait for nothing
        soon_in_reward_thread(lambda: memory.episodes.abandon(entry.episode_id))
        raise
    with fail_open(memory, "reward"):
        answered(memory, entry.episode_id, model_in(output) or name_of_model(getattr(agent, "llm", None)))
        solution, readable = read_solution(memory, output, own_tools)
        if readable:
            await memory.aend(entry.episode_id, solution=solution)
        else:
            await in_reward_thread(lambda: memory.episodes.finish(entry.episode_id))
    episode = await in_reward_thread(lambda: memory.episodes.get(entry.episode_id))
    if episode is None:  # the recall failed; health() counts that
        episode = Episode(id=entry.episode_id, namespace=memory.namespace, query=query, status="censored")
    return output, episode


async def _run(agent: Any, message: ChatMessage, options: Mapping[str, Any]) -> Any:
    handler = agent.run(user_msg=message, **options)

    async def _ended() -> Any:
        return await handler

    waiting = asyncio.ensure_future(_ended())
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:  # cancel the run by the workflow's own method: otherwise its current step would go on
        await handler.cancel_run()
        await asyncio.gather(waiting, return_exceptions=True)
        raise


def _shows_cases(memory: Any, recall: Callable[[str], Recall]) -> bool:
    """Say whether the agent's own memory has this memory's block; then the cases need not be put into the message."""
    blocks = getattr(memory, "memory_blocks", ())
    return any(isinstance(block, CascadeMemoryBlock) and block.shows(recall) for block in blocks)

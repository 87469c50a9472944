"""Recalled cases as a block of LlamaIndex's ``Memory``: they are shown to the agent, but never stored in the memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import PrivateAttr

from cascade_memory.cycle.chat_turns import Show, check_show, way_to_show
from cascade_memory.domain.recall import Recall
from cascade_memory.llama_index.trajectory import Turn, turn_in
from cascade_memory.memory.threads import in_thread
from cascade_memory.runs.ending import fail_open

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


_OF_RULES = {MessageRole.SYSTEM, MessageRole.DEVELOPER}
_MOST_TASKS = 1_000  # with which a user may still go on; the latest ones


class CascadeMemoryBlock(BaseMemoryBlock[Any]):
    """The block that ``memory.block()`` makes: it shows recalled cases to an agent.

    LlamaIndex calls it before every step of an agent; it recalls once for each run and message.
    """

    name: str = "cascade_memory"
    accept_short_term_memory: bool = False  # the memory learns from outcomes, not from the content of conversations
    _memory: Memory = PrivateAttr()
    _recall: Callable[[str], Recall] = PrivateAttr()
    _go_on: Callable[[Recall], object] = PrivateAttr()
    _show: Show | None = PrivateAttr()
    _tasks: OrderedDict[str, Recall] = PrivateAttr(default_factory=OrderedDict)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(
        self,
        memory: Memory,
        recall: Callable[[str], Recall],
        go_on: Callable[[Recall], object],
        *,
        show: Show | None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        check_show(show)
        self._memory, self._recall, self._go_on, self._show = memory, recall, go_on, show

    def shows(self, recall: Callable[[str], Recall]) -> bool:
        """Return True if this block shows the cases that ``recall`` finds, not those of another memory or adapter."""
        return self._recall == recall

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str | list[ChatMessage]:
        with fail_open(self._memory, "recall"):
            turn = turn_in(messages or [])
            found = None
            if turn.goes_on:
                found = self._recalled_before(turn)
            elif turn.task:
                found = await in_thread(lambda: self._recalled(turn), ends_named=True)
            if found is not None:
                return self._shown(found, messages or [])
        return ""

    def _shown(self, recall: Recall, messages: Sequence[ChatMessage]) -> str | list[ChatMessage]:
        """Return the cases as text or as turns; turns have no tool calls, since it is not known here which tools the agent has.

        LlamaIndex puts turns before all messages. If the conversation has a system message or begins with one of the model, the
        cases are text instead: many models want a system message to be the first one, and the two sides to take turns.
        """
        roles = [one.role for one in messages]
        if way_to_show(recall, self._show) == "text" or roles[:1] == [MessageRole.ASSISTANT] or not _OF_RULES.isdisjoint(roles):
            return recall.render()
        return [ChatMessage(role=one["role"], content=one["content"]) for one in recall.messages()]

    def _recalled(self, turn: Turn) -> Recall:
        found = self._recall(turn.task)
        with self._lock:
            self._tasks[turn.begun] = found
            self._tasks.move_to_end(turn.begun)
            while len(self._tasks) > _MOST_TASKS:
                self._tasks.popitem(last=False)
        return found

    def _recalled_before(self, turn: Turn) -> Recall | None:
        """Return the earlier recall of the task with which the user goes on; None if it was not made in this process."""
        with self._lock:
            found = self._tasks.get(turn.begun)
        if found is not None:
            self._go_on(found)
        return found

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store nothing: the memory learns from outcomes, not from the content of conversations."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> CascadeMemoryBlock:
        """Return this same block: LlamaIndex copies its components, and the copies must share the memory."""
        return self

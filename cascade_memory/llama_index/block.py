"""Recalled cases as a block of LlamaIndex's ``Memory``: they are shown before the user's message, but never stored in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from pydantic import PrivateAttr

from cascade_memory.domain.recall import Recall
from cascade_memory.llama_index.trajectory import task_in
from cascade_memory.memory.threads import in_thread
from cascade_memory.runs.failing_open import fail_open

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


class CascadeMemoryBlock(BaseMemoryBlock[str]):
    """Made by ``memory.block()``. LlamaIndex calls it before every step of an agent; it recalls once per run and message."""

    name: str = "cascade_memory"
    accept_short_term_memory: bool = False  # the memory learns from outcomes, not from the content of conversations
    _memory: Memory = PrivateAttr()
    _recall: Callable[[str], Recall] = PrivateAttr()

    def __init__(self, memory: Memory, recall: Callable[[str], Recall], **fields: Any) -> None:
        super().__init__(**fields)
        self._memory, self._recall = memory, recall

    def shows(self, recall: Callable[[str], Recall]) -> bool:
        """Say whether this block shows the cases of this very ``recall``, and not those of another memory or adapter."""
        return self._recall == recall

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        with fail_open(self._memory, "recall"):
            if task := task_in(messages or []):
                return await in_thread(lambda: self._recall(task).render(), ends_named=True)
        return ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep nothing."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> CascadeMemoryBlock:
        """Return a block that shares the memory: LlamaIndex copies its components."""
        return self

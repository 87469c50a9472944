"""A SCRIPTED model for LangChain. It follows the plan of a shown case; otherwise it can plan a declared share of the questions.

For the rest it searches once, and answers from the first passage. How it plans and reads is part of the package, since the
benchmark plays it too: ``cascade_memory/evaluation/reuse/search.py``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from cascade_memory.evaluation.reuse.search import adapted, can_plan, carry_out, understood
from cascade_memory.evaluation.search.questions import Passage


class ScriptedModel(BaseChatModel):
    """Answers questions with a tool ``search(query)``. The seed decides which questions it can plan by itself."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the model itself: the one tool is built into it."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next message. Earlier results are replayed from the messages, so that no state is kept between calls."""
        prompt = next(str(message.text) for message in messages if message.type == "human")
        question = prompt.rsplit("\n", 1)[-1]
        plan = adapted(prompt, question) or (understood(question) if can_plan(question, self.seed) else None)
        way = carry_out(question, plan)
        try:
            query = next(way)
            for message in messages:
                if message.type == "tool":
                    if message.status == "error":  # no more searches are allowed
                        return AIMessage("unknown")
                    query = way.send([Passage(**passage) for passage in json.loads(str(message.text))])
        except StopIteration as end:
            return AIMessage(end.value)
        call = {"name": "search", "args": {"query": query}, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
        return AIMessage(content=str(plan or ""), tool_calls=[call])

"""A chat model as a judge, for tasks whose success nothing else can measure."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.errors import InvalidInput
from cascade_memory.rewards.verdict import verdict_in, verdict_question


class LLMJudge:
    """A ``reward_fn`` that asks a chat model. If the reply is not a readable verdict, the episode stays pending.

    A judge may be wrong: its rewards are marked ``source="judge"``. ``criteria`` describes what counts as success.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> judge = LLMJudge(FakeListChatModel(responses=["VERDICT: 1", "Well done!"]))
    >>> episode = Episode(id="e", namespace="default", query="6 * 7", status="open", solution="42")
    >>> judge(episode), judge(episode)
    (1.0, None)
    """

    source = "judge"

    def __init__(self, model: BaseChatModel, criteria: str = "the task is done, completely and correctly") -> None:
        if not hasattr(model, "invoke"):
            raise InvalidInput(f"LLMJudge needs a chat model, such as init_chat_model(...), not a {type(model).__name__}")
        self._model, self._criteria = model, criteria

    def __call__(self, episode: Episode) -> float | None:
        """Ask the model for a verdict on the episode."""
        prompt = self._prompt(episode)
        return None if prompt is None else verdict_in(str(self._model.invoke(prompt, {"callbacks": []}).text))

    def _prompt(self, episode: Episode) -> list[Any] | None:
        if episode.status == "error" or episode.solution is None:
            return None  # nothing to judge
        question = verdict_question(self._criteria, episode.query, solution_text(episode.solution))
        return [SystemMessage(question.instruction), HumanMessage(question.body)]

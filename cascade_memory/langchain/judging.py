"""Verdicts: a chat model as a judge, for tasks whose success nothing else can measure, and what people said in LangSmith."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain.retriever import CascadeMemory
from cascade_memory.rewards.verdict import verdict_in, verdict_question

_BATCH = 100


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


def collect_feedback(memory: CascadeMemory, *, key: str = "correctness", client: Any = None, source: str = "human") -> int:
    """Reward the pending episodes that have feedback in LangSmith; return how many were rewarded.

    An episode has the id of its outermost run if the callback handler opened it, or if you chose the run's id yourself
    (``config={"run_id": ...}``). This function queries LangSmith over the network, so it runs only when you call it.

    Args:
        memory: The memory with the episodes.
        key: The feedback's key; its score must lie between 0 and 1.
        client: A ``langsmith.Client``; by default one that is configured by the environment.
        source: Who gave the feedback: "human", or "judge" for automatic evaluators.
    """
    if client is None:
        from langsmith import Client  # installed with langchain-core; it connects only when it is queried

        client = Client()
    waiting = [episode.id for episode in memory.episodes.pending() if _is_run_id(episode.id)]
    rewarded = 0
    for start in range(0, len(waiting), _BATCH):
        latest: dict[str, Any] = {}
        for one in client.list_feedback(run_ids=waiting[start : start + _BATCH], feedback_key=[key]):
            known = latest.get(str(one.run_id))
            if known is None or one.modified_at >= known.modified_at:
                latest[str(one.run_id)] = one
        for episode_id, one in latest.items():
            if one.score is not None and 0 <= float(one.score) <= 1:
                memory.reward(episode_id, float(one.score), source=source)
                rewarded += 1
    return rewarded


def _is_run_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True

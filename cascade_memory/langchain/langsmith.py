"""Turns feedback that people gave in LangSmith into rewards."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from cascade_memory.langchain.retriever import CascadeMemory

_BATCH = 100


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

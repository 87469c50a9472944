"""Lines for Python's log that say what happened, and quote no task and no case."""

from __future__ import annotations

from cascade_memory.domain.cost import Spent
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import Settled
from cascade_memory.engine.request import Judgement, RecallRequest


def recall_line(request: RecallRequest, recall: Recall, considered: int, spent: Spent) -> str:
    """Say in one line what a recall did; ``considered`` is the number of candidates."""
    kind, episode = ("search", "") if request.search else ("recall", f", episode {recall.episode_id!r}")
    why = ", held out" if recall.arm == "holdout" else ", none expected to help" if recall.abstained else ""
    took = 1000 * (spent.embed + spent.search + spent.rank + spent.write)
    return f"{kind} in namespace {request.namespace!r}: {len(recall.cases)} of {considered} shown{why}{episode}, {took:.1f} ms"


def reward_line(judgement: Judgement, settled: Settled) -> str:
    """Say in one line what a reward did."""
    kept = "no case" if settled.case_id is None else f"case {settled.case_id!r}"
    word = f"reward {judgement.value:g} from {judgement.source}" if settled.changed else "repeated reward"
    return f"{word} in namespace {judgement.namespace!r}: episode {judgement.episode_id!r}, {kept}"

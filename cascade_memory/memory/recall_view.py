"""What a recall looks like from outside."""

from __future__ import annotations

import math
import uuid

import numpy as np

from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.recall import Candidate, Explanation, Recall, RecalledCase
from cascade_memory.engine.decision import Decision
from cascade_memory.engine.engine import Engine


def recall_view(engine: Engine, chosen: Decision, *, query: str, namespace: str, template: Template) -> Recall:
    """Return the public face of a recall: the cases that are shown, and why."""
    choice = chosen.selection.choice
    return Recall(
        id=chosen.id,
        episode_id=chosen.episode_id,
        namespace=namespace,
        query=query,
        cases=_shown(engine, chosen),
        abstained=choice is not None and choice.abstained and chosen.arm == "live",
        arm=chosen.arm,
        template=template,
        explainer=lambda: _explanation(chosen, engine.parts.ranker.features),
    )


def failed_recall(query: str, namespace: str, episode_id: str | None, error: str, template: Template) -> Recall:
    """Return a recall without cases that says what went wrong."""
    nothing = Explanation(candidates=(), abstained=False, baseline=math.nan, rewards=0, policy="none")
    return Recall(
        id=str(uuid.uuid4()),
        episode_id=episode_id or str(uuid.uuid4()),
        namespace=namespace,
        query=query,
        cases=(),
        abstained=False,
        error=error,
        template=template,
        explainer=lambda: nothing,
    )


def _shown(engine: Engine, chosen: Decision) -> tuple[RecalledCase, ...]:
    choice, slate = chosen.selection.choice, chosen.selection.slate
    if choice is None or not chosen.shows:
        return ()
    keys = [int(key) for key in chosen.recalled.candidates.keys[choice.chosen]]
    stored = engine.parts.ledger.cases.by_key(keys)
    return tuple(
        RecalledCase(
            id=case.id,
            query=case.query,
            solution=case.solution,
            metadata=case.metadata,
            similarity=float(slate.similarity[i]),
            utility=float(choice.utility[i]),
            uncertainty=float(choice.uncertainty[i]),
            score=float(choice.score[i]),
        )
        for i, key in zip(choice.chosen.tolist(), keys, strict=True)
        if (case := stored.get(key)) is not None  # else another process forgot it a moment ago
    )


def _explanation(chosen: Decision, features: tuple[str, ...]) -> Explanation:
    choice = chosen.selection.choice
    return Explanation(
        candidates=_candidates(chosen),
        abstained=choice is not None and choice.abstained,
        baseline=math.nan if choice is None else choice.baseline,
        rewards=chosen.rewards,
        policy=chosen.policy,
        feature_names=(*features, "record"),
        arm=chosen.arm,
    )


def _candidates(chosen: Decision) -> tuple[Candidate, ...]:
    choice, slate = chosen.selection.choice, chosen.selection.slate
    if choice is None:
        return ()
    best = {int(i) for i in choice.chosen}
    columns = (slate.similarity, choice.value, choice.uncertainty, choice.score, choice.utility)
    standing = np.zeros((len(slate), 3)) if choice.standing is None else choice.standing
    parts = (
        np.zeros((len(slate), 0)) if choice.contributions is None else np.column_stack([choice.contributions, standing[:, 2]])
    )
    rows = zip(*(column.tolist() for column in (*columns, *standing.T)), parts.tolist(), strict=True)
    return tuple(
        Candidate(
            id=chosen.recalled.ids[i],
            query=chosen.recalled.candidates.texts[i],
            similarity=similarity,
            value=value,
            uncertainty=uncertainty,
            score=score,
            utility=utility,
            chosen=i in best,
            contributions=tuple(contributions),
            tried=tried,
            succeeded=succeeded,
            record=record,
        )
        for i, (similarity, value, uncertainty, score, utility, tried, succeeded, record, contributions) in enumerate(rows)
    )

"""What a recall looks like from outside."""

from __future__ import annotations

import uuid

from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.recall import Candidate, Explanation, Recall, RecalledCase
from cascade_memory.memory.engine import Chosen, Engine


def recall_view(engine: Engine, chosen: Chosen, *, query: str, namespace: str, template: Template) -> Recall:
    """Return the public face of a recall: the cases that are shown, and why."""
    choice = chosen.selection.choice
    candidates = _candidates(chosen)
    return Recall(
        id=chosen.id,
        episode_id=chosen.episode_id,
        namespace=namespace,
        query=query,
        cases=_shown(engine, chosen, candidates),
        explanation=Explanation(
            candidates=candidates,
            abstained=choice is not None and choice.abstained,
            baseline=float("nan") if choice is None else choice.baseline,
            rewards=chosen.rewards,
            policy=chosen.policy,
            feature_names=engine.parts.ranker.features,
        ),
        template=template,
    )


def failed_recall(query: str, namespace: str, episode_id: str | None, error: str, template: Template) -> Recall:
    """Return a recall without cases that says what went wrong."""
    nothing = Explanation(candidates=(), abstained=False, baseline=float("nan"), rewards=0, policy="none")
    return Recall(
        id=str(uuid.uuid4()),
        episode_id=episode_id or str(uuid.uuid4()),
        namespace=namespace,
        query=query,
        cases=(),
        explanation=nothing,
        error=error,
        template=template,
    )


def _candidates(chosen: Chosen) -> tuple[Candidate, ...]:
    choice, slate = chosen.selection.choice, chosen.selection.slate
    if choice is None:
        return ()
    best = {int(i) for i in choice.chosen}
    columns = (slate.similarity, choice.value, choice.uncertainty, choice.score, choice.utility)
    rows = zip(*(column.tolist() for column in columns), slate.features.tolist(), strict=True)
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
            features=tuple(features),
        )
        for i, (similarity, value, uncertainty, score, utility, features) in enumerate(rows)
    )


def _shown(engine: Engine, chosen: Chosen, candidates: tuple[Candidate, ...]) -> tuple[RecalledCase, ...]:
    keys = chosen.recalled.candidates.keys
    stored = engine.parts.ledger.cases([int(keys[i]) for i in chosen.shown])
    shown: list[RecalledCase] = []
    for i in chosen.shown:
        case, why = stored.get(int(keys[i])), candidates[i]
        if case is not None:  # else another process forgot it a moment ago
            shown.append(
                RecalledCase(
                    id=case.id,
                    query=case.query,
                    solution=case.solution,
                    metadata=case.metadata,
                    similarity=why.similarity,
                    utility=why.utility,
                    uncertainty=why.uncertainty,
                    score=why.score,
                )
            )
    return tuple(shown)

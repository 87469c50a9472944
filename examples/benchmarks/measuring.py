"""Do the intervals of ``memory.report()`` and ``bench replay`` cover the truth? A SIMULATED stream with a known truth shows it.

    python examples/benchmarks/measuring.py --runs 200 --episodes 200

A ticket is solved with a probability that depends on what was shown: no case, a case with the right solution, or another one.
So the true effect of the memory is known for each episode, and also what another policy would have earned.
"""

from __future__ import annotations

import argparse

import numpy as np

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.bandit.off_policy import estimate
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.insight.measuring import logged, with_nothing

ALONE, FITS, MISLEADS = 0.45, 0.9, 0.25


def chance(solution: str, shown: str | None) -> float:
    return ALONE if shown is None else FITS if shown == solution else MISLEADS


def lift_run(
    seed: int, episodes: int, ranker: str, holdout: float, full: tuple[float, ...] = (1.0,)
) -> tuple[float, float, float, float]:
    """Return the true lift, the reported lift and its interval. A solved ticket earns a random one of the rewards ``full``."""
    stream, rng = tickets(episodes, seed), np.random.default_rng([seed, 1])
    embedder = PrecomputedEmbedder(HashingEmbedder(), [task.query for task in stream])
    memory = CascadeMemory(embedder=embedder, ranker=ranker, learn="inline", ranking=Ranking(holdout=holdout))
    lifts = []
    for task in stream:
        recall = memory.recall(task.query, episode_id=rng.bytes(8).hex())
        why = recall.explain()
        best = next((one for one in why.candidates if one.chosen), None)
        # For a held-out episode, too, it is known what would have been shown.
        would = None if best is None or why.abstained else str(memory.cases.get(best.id).solution)
        lifts.append(chance(task.solution, would) - ALONE)
        success = rng.random() < (ALONE if recall.arm == "holdout" else ALONE + lifts[-1])
        reward = float(rng.choice(full)) if success else 0.0
        memory.reward(recall.episode_id, reward, solution=task.solution if success else None)
    found = memory.report().lift
    memory.close()
    lifts = [lift * float(np.mean(full)) for lift in lifts]
    if found is None:  # no episode was held out: the report says so, and has no interval
        return float(np.mean(lifts)), np.nan, -1.0, 1.0
    return float(np.mean(lifts)), found.estimate, found.low, found.high


def replay_run(seed: int, episodes: int, explore: float) -> dict[str, tuple[float, float, float, float]]:
    """Return what always showing the most similar case would earn in a run of the light ranker: the truth and each estimate."""
    stream, rng = tickets(episodes, seed), np.random.default_rng([seed, 2])
    embedder = PrecomputedEmbedder(HashingEmbedder(), [task.query for task in stream])
    memory = CascadeMemory(embedder=embedder, learn="inline", ranking=Ranking(explore=explore, candidates=4))
    truth = []
    state = memory._engine.namespace_state("default")
    for _ in range(episodes * seed):
        state.seed()  # so that every run draws other numbers
    for task in stream:
        recall = memory.recall(task.query)
        nearest = max(recall.explain().candidates, key=lambda one: one.similarity, default=None)
        truth.append(chance(task.solution, None if nearest is None else str(memory.cases.get(nearest.id).solution)))
        shown = str(recall.cases[0].solution) if recall.cases else None
        success = rng.random() < chance(task.solution, shown)
        memory.reward(recall.episode_id, bool(success), solution=task.solution if success else None)
    log = []
    for one in memory._engine.parts.ledger.insight.judged(1):
        nearest_only = np.zeros(len(one.lesson.slate))
        nearest_only[:1] = 1.0  # candidates are logged with the most similar first
        log.append(logged(one, with_nothing(nearest_only)))
    memory.close()
    found = estimate(log)
    named = {"inverse propensity": found.inverse, "self-normalised": found.normalised, "doubly robust": found.robust}
    return {name: (float(np.mean(truth)), one.estimate, one.low, one.high) for name, one in named.items() if one is not None}


def line(name: str, rows: list[tuple[float, float, float, float]]) -> str:
    truth, value, low, high = np.array(rows).T
    errors = (value - truth)[~np.isnan(value)]
    covered = int(((low <= truth) & (truth <= high)).sum())
    bias, noise = errors.mean(), errors.std(ddof=1) / np.sqrt(len(errors))
    return (
        f"| {name} | {truth.mean():+.3f} | {bias:+.4f} ± {noise:.4f} | {np.mean(high - low):.3f} "
        f"| {covered} of {len(rows)} ({covered / len(rows):.1%}) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=200)
    options = parser.parse_args()
    print("SIMULATED stream of tickets\n")
    print("| | truth | mean error ± its standard error | width | intervals that cover |\n|---|---|---|---|---|")
    for ranker, holdout in (("similarity", 0.1), ("light", 0.1)):
        rows = [lift_run(seed, options.episodes, ranker, holdout) for seed in range(options.runs)]
        print(line(f"lift, {ranker}, holdout={holdout}", rows), flush=True)
    rows = [lift_run(seed, options.episodes, "light", 0.1, full=(0.9, 1.0)) for seed in range(options.runs)]
    print(line("lift, light, holdout=0.1, rewards of 0, 0.9 and 1", rows), flush=True)
    runs = [replay_run(seed, options.episodes, explore=0.3) for seed in range(options.runs)]
    for name in ("inverse propensity", "self-normalised", "doubly robust"):
        print(line(f"similarity in the light ranker's place, explore=0.3, {name}", [run[name] for run in runs if name in run]))


if __name__ == "__main__":
    main()

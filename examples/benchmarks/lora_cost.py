"""Measures REINFORCE + LoRA: memory and time of an episode, by its length. ``cross_encoder_cost.py`` runs this.

The language model is a Llama with random weights that is as large as one of the Qwen3 series: time and memory do not depend on
the values of weights. An episode samples an answer of 32 tokens, and then learns from its reward. Here every episode ends with
a step of the optimiser, which the benchmark takes after 32: it is small beside the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.watching import PeakMemory
from cascade_memory.evaluation.gradient.loading import CausalLM
from cascade_memory.evaluation.gradient.local_chat import Sampled
from cascade_memory.evaluation.gradient.reinforce import Reinforce
from cascade_memory.evaluation.gradient.sampling import sample
from cascade_memory.evaluation.gradient.settings import Sampling, Training

ANSWER = 32  # tokens
_HEADS = {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936}
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        **{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1_000},
    },
    "0.6B": {
        **{"hidden_size": 1_024, "intermediate_size": 3_072, "num_hidden_layers": 28, "num_attention_heads": 16},
        **_HEADS,
        "tie_word_embeddings": True,
    },
    "4B": {
        **{"hidden_size": 2_560, "intermediate_size": 9_728, "num_hidden_layers": 36, "num_attention_heads": 32},
        **_HEADS,
        "tie_word_embeddings": True,
    },
    "8B": {
        **{"hidden_size": 4_096, "intermediate_size": 12_288, "num_hidden_layers": 36, "num_attention_heads": 32},
        **_HEADS,
    },
}
Measure = Callable[[Callable[[], Any], int], "tuple[float, float]"]  # the median time in milliseconds, and the peak in GiB


def random_language_model(size: str) -> CausalLM:
    """Make a language model with random weights: bfloat16 on CUDA, float32 on a CPU."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    cuda = torch.cuda.is_available()
    device, before = "cuda" if cuda else "cpu", torch.get_default_dtype()
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if cuda else torch.float32)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(LlamaConfig(max_position_embeddings=4_096, **SIZES[size]))
    finally:
        torch.set_default_dtype(before)
    model.to(device).eval().requires_grad_(requires_grad=False)
    return CausalLM(
        name=size,
        model=model,
        tokenizer=None,
        device=device,
        dtype=str(model.dtype).removeprefix("torch."),
        stops=frozenset(),  # every answer has the full length
        positions=4_096,
        keeps_logits=True,
        cache="cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values",
        identity=f"random:{size}",
        peak=PeakMemory(cuda=cuda),
    )


def lora_rows(size: str, lengths: list[int], measure: Measure, times: int) -> list[dict[str, Any]]:
    """Measure episodes of each length, prompt and answer together, and return a row for each."""
    lm = random_language_model(size)
    return [_measured(lm, size, tokens, measure, times) for tokens in lengths]


def _measured(lm: CausalLM, size: str, tokens: int, measure: Measure, times: int) -> dict[str, Any]:
    rng = np.random.default_rng(tokens)
    prompt, answer = ([int(one) for one in rng.integers(0, SIZES[size]["vocab_size"], n)] for n in (tokens - ANSWER, ANSWER))
    sampling = Sampling(max_tokens=ANSWER)
    trained = Reinforce(lm, Training(batch=1), seed=0)
    try:
        sample(lm, prompt, sampling, rng)
        trained.learn(Sampled(prompt, answer), 1.0)
        lm.peak.begin()
        sample_ms, _ = measure(lambda: sample(lm, prompt, sampling, rng), times)
        learn_ms, _ = measure(lambda: trained.learn(Sampled(prompt, answer), 1.0), times)
        peak = lm.peak.gib()
    finally:
        trained.close()
    return {
        "lora": size,
        "tokens": tokens,
        "device": lm.device,
        "sample_ms": sample_ms,
        "learn_ms": learn_ms,
        "episode_ms": sample_ms + learn_ms,
        "peak_gib": peak,
    }

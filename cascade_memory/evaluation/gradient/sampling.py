"""Samples an answer token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.gradient.loading import CausalLM
from cascade_memory.evaluation.gradient.settings import Sampling


def sample(lm: CausalLM, prompt: list[int], sampling: Sampling, rng: np.random.Generator) -> list[int]:
    """Sample the tokens of an answer; the last one is a token that ends it, unless there was no room for more.

    The random numbers come from ``rng`` alone, so that neither torch's generators nor the device matter.
    """
    import torch

    room = min(sampling.max_tokens, lm.positions - len(prompt))
    if room < 1:
        raise InvalidInput(
            f"a prompt has {len(prompt):,} tokens, and {lm.name} has room for {lm.positions:,} with the answer: "
            "choose a model for longer texts"
        )
    options: dict[str, Any] = {"use_cache": True, lm.cache: None, **({"logits_to_keep": 1} if lm.keeps_logits else {})}
    answer: list[int] = []
    new = prompt
    with torch.no_grad():
        while len(answer) < room:
            ids = torch.tensor([new], device=lm.device)
            mask = torch.ones((1, len(prompt) + len(answer)), dtype=torch.long, device=lm.device)
            output = lm.model(input_ids=ids, attention_mask=mask, **options)
            options[lm.cache] = getattr(output, lm.cache)
            tokens, odds = candidates(output.logits[0, -1], sampling)
            answer.append(int(rng.choice(tokens, p=odds)))
            if answer[-1] in lm.stops:
                break
            new = answer[-1:]
    return answer


def candidates(logits: Any, sampling: Sampling) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the tokens that may come next, the likeliest first, and their probabilities.

    >>> import torch
    >>> tokens, odds = candidates(torch.tensor([0.0, 2.0, 1.0]), Sampling(temperature=1.0, top_k=2, top_p=1.0))
    >>> tokens.tolist(), odds.round(3).tolist()
    ([1, 2], [0.731, 0.269])
    """
    best = logits.float().topk(min(sampling.top_k, len(logits)))
    values, tokens = best.values.double().cpu().numpy(), best.indices.cpu().numpy()
    if not np.isfinite(values).all():
        raise CascadeError("the model computed logits that are not finite: choose a lower learning rate, or other weights")
    odds = _softmax(values / sampling.temperature)
    before = np.cumsum(odds) - odds  # the probability of all better tokens
    kept = before < sampling.top_p
    return tokens[kept], odds[kept] / odds[kept].sum()


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(values - values.max())
    return weights / weights.sum()

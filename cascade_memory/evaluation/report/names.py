"""What the names of methods mean, for a reader who meets them for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_MEAN = {
    "zero-shot": "no memory at all",
    "ICRL": "shows the latest episodes, whatever the task is and however they ended",
    "ICRLPlus": "shows the latest successes, whatever the task is",
    "random": "shows one of the 32 nearest cases, drawn at random",
    "similarity": "shows the most similar case, by the cosine of two embeddings",
    "Self-StreamICL": "shows the 16 most similar cases (StreamBench)",
    "NP-CBR": "shows the case that a pretrained reranker puts first (the paper's baseline)",
    "LinLogUCB": "a logistic bandit on fixed features; always shows a case",
    "NeuralLogUCB": "a logistic bandit whose network learns all features; always shows a case",
    "Neural-LinUCB": "a linear bandit on learned features; always shows a case",
    "Thompson": "draws its weights at random from what it believes about them; always shows a case",
    "Neural-LinLogUCB": "the paper's bandit: a logistic one on learned features; always shows a case",
    "CASCADE": "this package's default: it learns which case helps, and shows none if none is expected to",
    "CASCADE, always a case": "the same, but it never abstains",
    "CASCADE without exploration": "the same, but it never tries a case only to learn about it",
    "CASCADE without hindsight": "the same, but it learns nothing from right solutions that it did not show",
    "CASCADE untrained": "the order that CASCADE begins with; it learns nothing",
    "CASCADE, k = 2": "the same as CASCADE, with up to two cases",
    "CASCADE, k = 4": "the same as CASCADE, with up to four cases",
    "REINFORCE + LoRA": "no memory; it trains adapters of the language model itself with the rewards",
}


def names(methods: Sequence[str]) -> str:
    """Render the methods with their meanings; of a name that is not known here, the docs tell more.

    >>> names(["random"])
    '<dl class="names"><dt>random</dt><dd>shows one of the 32 nearest cases, drawn at random</dd></dl>'
    """
    lines = "".join(f"<dt>{escape(method)}</dt><dd>{escape(_meaning(method))}</dd>" for method in methods)
    return f'<dl class="names">{lines}</dl>'


def _meaning(method: str) -> str:
    whole, _, options = method.partition(" {")
    name, _, changed = whole.partition(" + ")
    changes = [f"with {changed}"] if changed and whole not in _MEAN else []
    found = [one for one in (_MEAN.get(whole) or _MEAN.get(name), *changes) if one]
    return ", ".join([*found, *([f"with the parameters {{{options}"] if options else [])]) or "a method of these rows"

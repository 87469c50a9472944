"""The paper's methods on a reranker's features: the pretrained reranker alone, or bandits that train it or keep it frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cascade_memory import Ranker
from cascade_memory.assembly import cross_encoder
from cascade_memory.bandit import LinLogUCB, NeuralLinUCB, NeuralLogUCB, Schedule, ThompsonSampling, credit_all

_PAPER: dict[str, Any] = {"credit": credit_all}  # each of k cases gets the reward


def _pretrained(reranker: str, options: Mapping[str, float]) -> Ranker:
    del options  # it learns nothing
    return cross_encoder(reranker, trained=False)


def _trained(reranker: str, options: Mapping[str, float], **fixed: Any) -> Ranker:
    rates: dict[str, Any] = {"encoder_learning_rate": options["learning_rate"]} if "learning_rate" in options else {}
    alpha: dict[str, Any] = {"alpha": options["alpha"]} if "alpha" in options else {}
    return cross_encoder(reranker, **{**_PAPER, **rates, **alpha, **fixed})


def _frozen(reranker: str, options: Mapping[str, float], bandit: Callable[..., Any]) -> Ranker:
    alpha: dict[str, Any] = {"alpha": options["alpha"]} if "alpha" in options else {}
    return cross_encoder(reranker, bandit=bandit, **_PAPER, **alpha)


def _authors(reranker: str, options: Mapping[str, float]) -> Ranker:
    """Make the ranker as in the authors' published code, where it differs from the paper's text; see docs/cross-encoder.md."""
    eta, k = options.get("learning_rate", 1e-5), options.get("k", 1.0)
    schedule = Schedule(every=32, head="joint", reencode=None)
    differs = {"scale": "probability", "decay": False, "learning_rate": eta / (32 * k)}
    return _trained(reranker, options, schedule=schedule, **differs)


Making = Callable[[str, Mapping[str, float]], Ranker]

# By the name of the method: its ranker, given the reranker's folder and the options alpha, learning_rate and k.
RERANKED: Mapping[str, Making] = {
    "NP-CBR": _pretrained,
    "LinLogUCB": lambda reranker, options: _frozen(reranker, options, LinLogUCB),
    "NeuralLogUCB": lambda reranker, options: _frozen(reranker, options, NeuralLogUCB),
    "Neural-LinUCB": lambda reranker, options: _trained(reranker, options, bandit=NeuralLinUCB),
    "Thompson": lambda reranker, options: _trained(reranker, options, bandit=ThompsonSampling),
    "Neural-LinLogUCB": _trained,
    "Neural-LinLogUCB without exploration": lambda reranker, options: _trained(reranker, options, alpha=0.0),
    "Neural-LinLogUCB, exact theta": lambda reranker, options: _trained(reranker, options, refit="exact"),
    "Neural-LinLogUCB, authors' code": _authors,
}

"""The methods that are compared: no memory, static memories, the bandits, and CASCADE with and without its parts."""

from __future__ import annotations

import json
from typing import Any

from cascade_memory.assembly import rankers
from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench import rules
from cascade_memory.memory.memory import Memory
from cascade_memory.ports.embedder import Embedder

TRIALS = 32  # number of cases that in-context reinforcement learning shows
_ALWAYS = {"abstain": False}

# The options of CascadeMemory for each method. The rivals always show a case and use alpha = 0.1, as in the paper.
METHODS: dict[str, dict[str, Any] | None] = {
    "zero-shot": None,
    "ICRL": {"ranker": "latest", "k": TRIALS, "retain_at": 0.0, **_ALWAYS},  # failures are shown as well
    "ICRLPlus": {"ranker": "latest", "k": TRIALS, **_ALWAYS},
    "random": {"ranker": "random", **_ALWAYS},
    "NP-CBR": {"ranker": "similarity", **_ALWAYS},
    "LinLogUCB": {"ranker": "linlogucb", **_ALWAYS},
    "NeuralLogUCB": {"ranker": "neural-logucb", **_ALWAYS},
    "Neural-LinUCB": {"ranker": "neural-linucb", **_ALWAYS},
    "Thompson": {"ranker": "thompson", **_ALWAYS},
    "Neural-LinLogUCB": {"ranker": "neural-linlogucb", **_ALWAYS},
    "CASCADE": {},
    "CASCADE, always a case": _ALWAYS,
    "CASCADE, k = 2": {"k": 2},
    "CASCADE, k = 4": {"k": 4},
    "CASCADE without exploration": {"ranker": rankers.light(exploration=UpperConfidence(alpha=0.0))},
    "CASCADE without hindsight": {"matcher": None},
    "CASCADE untrained": {"ranker": rankers.untrained(), **_ALWAYS},  # the initial state of "CASCADE, always a case"
}
QUICK = ("zero-shot", "random", "NP-CBR", "CASCADE, always a case", "CASCADE")

# Further methods, with a suite of their own; other runs use them on demand: rivals that differ in one respect, fixed rules,
# and CASCADE without one part.
_MORE_RIVALS: dict[str, dict[str, Any]] = {
    "Neural-LinLogUCB without exploration": {"ranker": rankers.neural_linlogucb(alpha=0.0), **_ALWAYS},
    "Neural-LinLogUCB, exact theta": {"ranker": rankers.neural_linlogucb(refit="exact"), **_ALWAYS},
}
_RULES = {name: {"ranker": rule} for name, rule in {**rules.ranking_rules(), **rules.abstaining_rules()}.items()}
_WITHOUT_SIGNALS: dict[str, dict[str, Any]] = {
    "CASCADE without words and letters": {"ranker": rules.without("words", "letters", "solution words")},
    "CASCADE without solution words": {"ranker": rules.without("solution words")},
    "CASCADE without clusters": {"ranker": rules.without("cluster")},
    "CASCADE, ten times the exploration": {"ranker": rankers.light(exploration=UpperConfidence(alpha=1.0))},
}
KNOWN: dict[str, dict[str, Any] | None] = {**METHODS, **_MORE_RIVALS, **_RULES, **_WITHOUT_SIGNALS}

_OURS = ("CASCADE, always a case", "CASCADE")
RIVALS = (*(name for name in METHODS if not name.startswith("CASCADE")), *_MORE_RIVALS, *_OURS)
AGAINST_RULES = ("zero-shot", "NP-CBR", "random", *_RULES, "Neural-LinLogUCB", *_OURS)
ABLATION = (
    "CASCADE",
    "CASCADE without hindsight",
    *(name for name in _WITHOUT_SIGNALS if "without" in name),
    "CASCADE without exploration",
    "CASCADE, ten times the exploration",
    "CASCADE, always a case",
)


# The parameters that bench tune chooses, in this order.
TUNABLE = {"Neural-LinLogUCB": ("learning_rate", "alpha"), "CASCADE": ("alpha",)}


def open_memory(method: str, embedder: Embedder, parameters: str = "") -> Memory | None:
    """Create a memory in RAM that learns inline; None for the method without memory.

    >>> from cascade_memory.encoders.hashing import HashingEmbedder
    >>> open_memory("zero-shot", HashingEmbedder()) is None
    True
    """
    if method not in KNOWN:
        raise InvalidInput(f"there is no method {method!r}; there are {', '.join(KNOWN)}")
    options = KNOWN[method] if not parameters else _with(method, json.loads(parameters))
    if options is None:
        return None
    # No deadline: the results must not depend on how busy the machine is.
    return CascadeMemory(embedder=embedder, learn="inline", deadline=None, **options)


def _with(method: str, parameters: dict[str, float]) -> dict[str, Any]:
    names = TUNABLE.get(method, ())
    if set(parameters) != set(names):
        raise InvalidInput(f"{method!r} takes {' and '.join(names) or 'no parameters'}, not {', '.join(sorted(parameters))}")
    if method == "CASCADE":
        return {"ranker": rankers.light(exploration=UpperConfidence(parameters["alpha"]))}
    return {"ranker": rankers.neural_linlogucb(**parameters), **_ALWAYS}

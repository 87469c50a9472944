"""The methods that are compared: no memory, static memories, the bandits, and CASCADE with and without its parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from cascade_memory import CascadeMemory, Ranking, Retention
from cascade_memory.assembly import rankers
from cascade_memory.bandit import UpperConfidence
from cascade_memory.domain import CaseText
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench import rules
from cascade_memory.evaluation.bench.names import TUNABLE
from cascade_memory.evaluation.bench.on_reranker import RERANKED
from cascade_memory.evaluation.rivals.known import OTHER_MEMORIES, is_rival, rival_named
from cascade_memory.evaluation.rivals.playing import played
from cascade_memory.memory import Memory
from cascade_memory.ports import Embedder

_ALWAYS = {"ranking": Ranking(abstain=False)}

# The options of CascadeMemory for each method. The rivals always show a case and use alpha = 0.1, as in the paper.
METHODS: dict[str, dict[str, Any] | None] = {
    "zero-shot": None,
    "ICRL": {
        "ranker": "latest",
        "retention": Retention(retain_at=0.0),
        **_ALWAYS,
    },  # the last trial, a failure as well; k trials on demand
    "ICRLPlus": {"ranker": "latest", **_ALWAYS},
    "random": {"ranker": "random", **_ALWAYS},
    "similarity": {"ranker": "similarity", **_ALWAYS},
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
    "CASCADE without hindsight": {"ranking": Ranking(matcher=None)},
    "CASCADE untrained": {"ranker": rankers.untrained(), **_ALWAYS},  # the initial state of "CASCADE, always a case"
}
QUICK = ("zero-shot", "random", "similarity", "CASCADE, always a case", "CASCADE")

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
NEED_A_RERANKER = ("NP-CBR", "Neural-LinLogUCB, authors' code")  # without --ranker, these cannot be played
KNOWN: dict[str, dict[str, Any] | None] = {
    **METHODS,
    **_MORE_RIVALS,
    **_RULES,
    **_WITHOUT_SIGNALS,
    # StreamBench (Wu et al. 2024, arXiv:2406.08747): the 16 most similar successes.
    "Self-StreamICL": {"ranker": "similarity", "k": 16, **_ALWAYS},
    **dict.fromkeys(NEED_A_RERANKER, _ALWAYS),
    **dict.fromkeys(OTHER_MEMORIES, None),  # they take none of our options
}

_OURS = ("CASCADE, always a case", "CASCADE")
RIVALS = (*(name for name in METHODS if not name.startswith("CASCADE")), *_MORE_RIVALS, *_OURS)
AGAINST_RULES = ("zero-shot", "similarity", "random", *_RULES, "Neural-LinLogUCB", *_OURS)
ABLATION = (
    "CASCADE",
    "CASCADE without hindsight",
    *(name for name in _WITHOUT_SIGNALS if "without" in name),
    "CASCADE without exploration",
    "CASCADE, ten times the exploration",
    "CASCADE, always a case",
)


# What a user may set: more than bench tune chooses. Every method with a memory also has k, unless its own options say it.
_SETTABLE: dict[str, tuple[str, ...]] = {
    **TUNABLE,
    "Neural-LinUCB": ("learning_rate", "alpha"),
    "Thompson": ("learning_rate", "alpha"),
    "Neural-LinLogUCB without exploration": ("learning_rate",),
    "Neural-LinLogUCB, exact theta": ("learning_rate", "alpha"),
    "Neural-LinLogUCB, authors' code": ("learning_rate", "alpha"),
    "CASCADE, always a case": ("alpha",),
}


def parameters_of(method: str) -> tuple[str, ...]:
    """Return the names of the parameters that can be set for a method.

    >>> parameters_of("similarity"), parameters_of("CASCADE, k = 2"), parameters_of("zero-shot")
    (('k',), (), ())
    """
    options = KNOWN.get(method)
    if options is None:
        return ()
    return (*_SETTABLE.get(method, ()), *(() if "k" in options else ("k",)))


def open_memory(
    method: str, embedder: Embedder, parameters: str = "", ranker: str = "", *, case_text: CaseText | None = None
) -> Memory | None:
    """Create the memory of a method, in RAM and with ``learn="inline"``; None if the method has no memory.

    A rival is a class with ``recall`` and ``reward``: ``rivals.known`` has some by name, others are "module:Class".
    ``parameters`` is JSON; ``ranker`` is the folder of a reranker, for the methods of ``RERANKED``. ``case_text`` makes the
    text by which a case is found; without it, a case is found by its query.

    >>> from cascade_memory.encoders.hashing import HashingEmbedder
    >>> open_memory("zero-shot", HashingEmbedder()) is None
    True
    """
    if is_rival(method):
        return cast("Memory", played(rival_named(method), embedder))  # it has what a run asks of a memory
    if method not in KNOWN:
        raise InvalidInput(f"there is no method {method!r}; there are {', '.join(KNOWN)}")
    options = _with(method, json.loads(parameters or "{}"), ranker)
    if options is None:
        return None
    # No deadline: the results must not depend on how busy the machine is.
    retention = replace(options.get("retention", Retention()), case_text=case_text)
    return CascadeMemory(embedder=embedder, learn="inline", deadline=None, **{**options, "retention": retention})


def _with(method: str, parameters: Mapping[str, float], ranker: str) -> dict[str, Any] | None:
    names, options = parameters_of(method), KNOWN[method]
    if other := sorted(set(parameters) - set(names)):
        raise InvalidInput(f"{method!r} takes {' and '.join(names) or 'no parameters'}, not {', '.join(other)}")
    if options is None:
        return None
    if "k" in parameters:
        options = {**options, "k": int(parameters["k"])}
    if ranker:
        return {**options, "ranker": RERANKED[method](ranker, parameters)}
    if method in NEED_A_RERANKER:
        raise InvalidInput(f"{method!r} needs a reranker: name its folder with --ranker (ranker= in Python)")
    given = {name: value for name, value in parameters.items() if name != "k"}
    return {**options, "ranker": _on_light_features(method, given)} if given else options


def _on_light_features(method: str, given: dict[str, float]) -> Any:
    if method.startswith("CASCADE"):
        return rankers.light(exploration=UpperConfidence(given["alpha"]))
    fixed: dict[str, dict[str, Any]] = {
        "Neural-LinLogUCB without exploration": {"alpha": 0.0},
        "Neural-LinLogUCB, exact theta": {"refit": "exact"},
    }
    make = rankers.neural_linlogucb if method in fixed else rankers.BY_NAME[str((KNOWN[method] or {})["ranker"])]
    return make(**{**given, **fixed.get(method, {})})

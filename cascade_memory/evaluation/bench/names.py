"""Names that the command line offers or takes, in a module of their own: listing them loads neither numpy nor the methods."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from cascade_memory.errors import InvalidInput

FILE, SHUFFLED = "file", "shuffled"  # the orders in which a stream can be played

REINFORCE = "REINFORCE + LoRA"  # the method that trains a language model in this process
GRADIENT = ("zero-shot", REINFORCE)  # what is played with such a model by default

# The suites of plan.py.
SUITE_NAMES = (
    *("quick", "local", "paper", "set-aside", "deep-search", "hospital", "board"),
    *("ablation", "rivals", "rules", "rewards", "wrong-cases"),
)

# The parameters that bench tune chooses, in this order.
TUNABLE = {
    "Neural-LinLogUCB": ("learning_rate", "alpha"),
    "LinLogUCB": ("alpha",),
    "NeuralLogUCB": ("alpha",),
    "Neural-LinUCB": ("alpha",),
    "CASCADE": ("alpha",),
}


def has_a_model(solver: str) -> bool:
    """Say whether a solver is a language model, by its name in rows.

    >>> has_a_model("Qwen/Qwen3-8B"), has_a_model("simulated"), has_a_model("reuse-map")
    (True, False, False)
    """
    return not solver.startswith(("simulated", "reuse"))


def loaded_by_name(name: str, failed: str) -> Any:
    """Import an object of the user's own, named as "module:name"; an error begins with ``failed``.

    >>> loaded_by_name("json:loads", "no such function")("[1]")
    [1]
    """
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as python itself does
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InvalidInput(f"{failed}: {error}") from error

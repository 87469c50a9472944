"""Names that the command line offers, in a module of their own: listing them loads neither numpy nor the methods."""

from __future__ import annotations

FILE, SHUFFLED = "file", "shuffled"  # the orders in which a stream can be played

# The suites of plan.py.
SUITE_NAMES = (
    *("quick", "local", "paper", "set-aside", "deep-search", "hospital", "bfcl"),
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

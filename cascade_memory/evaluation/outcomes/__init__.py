"""Tables of outcomes: a model's answer to each prompt is stored once; then any memory can be tested without the model."""

from __future__ import annotations

from cascade_memory.evaluation.outcomes.asking_all import ask_all
from cascade_memory.evaluation.outcomes.local_batches import LocalBatches
from cascade_memory.evaluation.outcomes.outcomes import Outcomes
from cascade_memory.evaluation.outcomes.table import dtype_in

__all__ = ["LocalBatches", "Outcomes", "ask_all", "dtype_in"]

"""A language model that is trained while it plays: REINFORCE + LoRA, the gradient-based rival of a memory."""

from __future__ import annotations

from cascade_memory.evaluation.gradient.local_model import REINFORCE, LocalModel
from cascade_memory.evaluation.gradient.settings import Sampling, Training

__all__ = ["REINFORCE", "LocalModel", "Sampling", "Training"]

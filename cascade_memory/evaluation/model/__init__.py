"""Real language models as solvers and judges: any OpenAI-compatible server, any LangChain chat model."""

from __future__ import annotations

from cascade_memory.evaluation.model.any_chat_model import AnyChatModel
from cascade_memory.evaluation.model.asking import Asking, Prices
from cascade_memory.evaluation.model.model_solver import ModelSolver
from cascade_memory.evaluation.model.model_stage import Model
from cascade_memory.evaluation.model.openai_compatible import OpenAICompatible

__all__ = ["AnyChatModel", "Asking", "Model", "ModelSolver", "OpenAICompatible", "Prices"]

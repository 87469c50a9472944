"""Streams of tasks and solvers, to try out a memory and to measure how much it helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.evaluation.bench.measure import measure
    from cascade_memory.evaluation.bench.plan import Run
    from cascade_memory.evaluation.bench.runner import run
    from cascade_memory.evaluation.bench.setup import Setup
    from cascade_memory.evaluation.bench.stage import Simulated
    from cascade_memory.evaluation.bundled import bundled_data, bundled_tasks
    from cascade_memory.evaluation.judging.model_judge import ModelJudge
    from cascade_memory.evaluation.model import AnyChatModel, Asking, Model, OpenAICompatible, Prices
    from cascade_memory.evaluation.outcomes import Outcomes
    from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver, play
    from cascade_memory.evaluation.synthetic import tickets
    from cascade_memory.evaluation.tasks.task import FileTask, Item

__all__ = [
    "AnyChatModel",
    "Asking",
    "FileTask",
    "Item",
    "Model",
    "ModelJudge",
    "OpenAICompatible",
    "Outcomes",
    "PrecomputedEmbedder",
    "Prices",
    "Run",
    "Setup",
    "Simulated",
    "SimulatedSolver",
    "bundled_data",
    "bundled_tasks",
    "measure",
    "play",
    "run",
    "tickets",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "bench.measure": "measure",
        "bench.plan": "Run",
        "bench.runner": "run",
        "bench.setup": "Setup",
        "bench.stage": "Simulated",
        "bundled": "bundled_data bundled_tasks",
        "judging.model_judge": "ModelJudge",
        "model": "AnyChatModel Asking Model OpenAICompatible Prices",
        "outcomes": "Outcomes",
        "stream": "PrecomputedEmbedder SimulatedSolver play",
        "synthetic": "tickets",
        "tasks.task": "FileTask Item",
    },
)

"""A language model from a folder as the solver in the benchmark: untrained with any memory, or trained while it plays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cascade_memory import RecalledCase
from cascade_memory.cycle import Show
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import REINFORCE
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, embedded, in_order
from cascade_memory.evaluation.gradient.checkpoint import CheckpointFile
from cascade_memory.evaluation.gradient.learning_solver import LearningSolver
from cascade_memory.evaluation.gradient.loading import CausalLM, load_causal_lm
from cascade_memory.evaluation.gradient.local_chat import LocalChat
from cascade_memory.evaluation.gradient.reinforce import Reinforce
from cascade_memory.evaluation.gradient.settings import Sampling, Training
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Prompt, check_form, declared_form
from cascade_memory.evaluation.model.model_solver import ModelSolver
from cascade_memory.evaluation.model.model_stage import Model, log_name
from cascade_memory.evaluation.solver import Attempt, Solver
from cascade_memory.evaluation.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A causal language model from a folder. With the method "REINFORCE + LoRA" it has no memory, and learns by gradients.

    With any other method its weights stay as they are: "zero-shot" is what the training has to improve on. All methods sample
    in the same way, from the same weights.
    """

    folder: str
    sampling: Sampling = field(default_factory=Sampling)
    training: Training = field(default_factory=Training)
    show: Show = "text"  # or "turns": how it sees the cases
    prompt: Prompt = "chat"  # or "authors": everything in one message of the user

    def __post_init__(self) -> None:
        check_form(self.prompt, self.show)

    @property
    def own_methods(self) -> tuple[str, ...]:
        """The methods that only this solver knows; they have no memory."""
        return (REINFORCE,)

    @property
    def name(self) -> str:
        """The name of the solver in rows; a server samples differently, so the same model has another name there."""
        return f"{self._lm.name}, in this process"

    @property
    def declared(self) -> Mapping[str, Any]:
        """The weights and all settings, for the row."""
        lm = self._lm
        chosen = declared_form(self.prompt, self.show)
        return {"weights": lm.identity, "dtype": lm.dtype, **asdict(self.sampling), **asdict(self.training), **chosen}

    @property
    def _lm(self) -> CausalLM:
        return load_causal_lm(self.folder)

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Build the stage: the task's stream with this model, which is trained if the method says so."""
        lm = self._lm
        chat = LocalChat(lm, self.sampling, run.seed, name=self.name)
        if run.method == REINFORCE:
            return self._learning(task, run, folders, chat)
        lm.peak.begin()
        stage = Model(chat=chat, show=self.show, prompt=self.prompt).stage(task, run, folders)
        return replace(
            stage,
            solver=_DrawsByPlace(stage.solver, chat),
            account=lambda: {**stage.account(), "peak_memory_gib": lm.peak.gib(), "device": lm.device.partition(":")[0]},
        )

    def _learning(self, task: Task, run: Run, folders: Folders, chat: LocalChat) -> Stage:
        if run.rewards:
            raise InvalidInput(
                f"{REINFORCE!r} learns from true rewards that come at once: it cannot be played with {run.rewards!r}"
            )
        lm = self._lm
        stream, embedder = embedded(task, run.limit, folders.data)
        items = in_order(stream, run)
        told = json.dumps([asdict(run), dict(self.declared), task.instruction, [[one.query, one.solution] for one in items]])
        about = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        file = CheckpointFile(folders.work / "gradient" / log_name(run).with_suffix(".safetensors"), about)
        reinforce = Reinforce(lm, self.training, run.seed)
        try:
            solver = LearningSolver(
                ModelSolver(task, items, Asking(chat, prompt=self.prompt)),
                chat,
                reinforce,
                batch=self.training.batch,
                file=file,
                peak=lm.peak,
            )
        except BaseException:
            reinforce.close()
            raise
        return Stage(
            queries=[item.query for item in items],
            solver=solver,
            embedder=embedder,
            declared=self.declared,
            solutions=[item.solution for item in items],
            remembers=False,
            account=lambda: {**solver.account(), "device": lm.device.partition(":")[0]},
            close=solver.close,
        )


@dataclass(frozen=True, slots=True)
class _DrawsByPlace:
    """Attempts each task with the random numbers that belong to its place in the stream."""

    inner: Solver
    chat: LocalChat

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream."""
        self.chat.draw = place
        return self.inner.attempt(place, cases)

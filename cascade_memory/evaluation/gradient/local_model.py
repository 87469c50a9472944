"""A language model from a folder as the solver in the benchmark: untrained with any memory, or trained while it plays.

If it is trained, it is trained on the reward of each task, and can go on after a crash.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cascade_memory import RecalledCase
from cascade_memory.cycle import Show
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.bench.names import REINFORCE
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, embedded, in_order
from cascade_memory.evaluation.bench.watching import PeakMemory
from cascade_memory.evaluation.gradient.checkpoint import Checkpoint, CheckpointFile, Record, columns_of
from cascade_memory.evaluation.gradient.loading import CausalLM, load_causal_lm
from cascade_memory.evaluation.gradient.local_chat import LocalChat
from cascade_memory.evaluation.gradient.reinforce import Reinforce
from cascade_memory.evaluation.gradient.settings import Sampling, Training
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Prompt, check_form, declared_form
from cascade_memory.evaluation.model.model_solver import ModelSolver
from cascade_memory.evaluation.model.model_stage import Model, log_name
from cascade_memory.evaluation.stream import Attempt, Solver
from cascade_memory.evaluation.tasks.task import Task


class LearningSolver:
    """Attempts a task without memory, and trains the model on the outcome.

    The tasks must be attempted in their order. A checkpoint is written after each step of the optimiser. After a crash, the
    outcomes up to the checkpoint are returned as they were, and the few episodes after it are played again: their random
    numbers depend on the seed and the place in the stream, so that they have the same answers.
    """

    def __init__(
        self, inner: Solver, chat: LocalChat, reinforce: Reinforce, *, batch: int, file: CheckpointFile, peak: PeakMemory
    ) -> None:
        self._inner, self._chat, self._reinforce = inner, chat, reinforce
        self._batch, self._file, self._peak = batch, file, peak
        self._records: list[Record] = []
        self._peak_before: float | None = None
        peak.begin()
        if (saved := file.read()) is not None:
            self._go_on(saved)

    def _go_on(self, saved: Checkpoint) -> None:
        if len(saved.records) != saved.steps * self._batch or saved.steps < 1:
            raise InvalidInput(f"{self._file.path} has records of {len(saved.records):,} episodes after {saved.steps:,} steps")
        try:
            self._reinforce.load(saved.tensors, saved.steps)
        except InvalidInput as error:
            raise InvalidInput(f"{self._file.path}: {error}. Delete the file") from error
        self._records, self._peak_before = list(saved.records), saved.peak_gib

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream, and learn from its outcome."""
        if cases:
            raise CascadeError("a model that is trained has no memory: it takes no cases")
        if place < len(self._records):  # it was played before a crash
            return Attempt(self._records[place].success, None)
        if place > len(self._records):
            raise CascadeError(f"task {place} cannot be played before task {len(self._records)}")
        began = time.perf_counter()
        self._chat.draw = place
        success = self._inner.attempt(place, ()).success
        sampled = self._chat.last
        assert sampled is not None  # the attempt asked the model
        ratio = self._reinforce.learn(sampled, float(success))
        spent = 1000 * (time.perf_counter() - began)
        self._records.append(Record(success, len(sampled.prompt), len(sampled.answer), ratio, spent))
        if self._reinforce.gathered == 0:
            self._file.write(Checkpoint(self._reinforce.state(), self._reinforce.steps, self._records, self._highest()))
        return Attempt(success, None)

    def _highest(self) -> float | None:
        known = [one for one in (self._peak.gib(), self._peak_before) if one is not None]
        return max(known, default=None)

    def account(self) -> dict[str, Any]:
        """Return the columns that this solver adds to the row of its run: tokens, time, steps of the optimiser, peak memory."""
        return {
            **columns_of(self._records, self._batch),
            "optimiser_steps": self._reinforce.steps,
            "peak_memory_gib": self._highest(),
        }

    def close(self) -> None:
        """Take the adapter out of the model."""
        self._reinforce.close()


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

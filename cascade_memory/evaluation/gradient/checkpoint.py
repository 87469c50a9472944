"""The state of a model that learns, in one file that is replaced as a whole: safetensors, with the records as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_memory.domain import open_own
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.gradient.records import Record, from_json, to_json


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a model that learns, after a step of the optimiser."""

    tensors: Mapping[str, Any]
    steps: int
    records: Sequence[Record]
    peak_gib: float | None


class CheckpointFile:
    """Keeps the newest checkpoint of a run. ``about`` identifies the model, the settings and the stream of the run."""

    def __init__(self, path: Path, about: str) -> None:
        self.path, self._about = path, about
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the file; the new checkpoint is on disk when this returns, and a crash leaves the old one or the new one."""
        from safetensors.torch import save

        told = {
            "about": self._about,
            "steps": str(checkpoint.steps),
            "peak_gib": "" if checkpoint.peak_gib is None else repr(checkpoint.peak_gib),
            "records": to_json(checkpoint.records),
        }
        new = self.path.with_suffix(".new")
        with open_own(new, "wb") as file:
            file.write(save(dict(checkpoint.tensors), told))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def read(self) -> Checkpoint | None:
        """Return the checkpoint; None if there is none.

        An error is raised if it is the checkpoint of another model, of other settings or of another stream.
        """
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                told = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a dictionary
            about, steps, peak = told["about"], int(told["steps"]), told["peak_gib"]
            records = from_json(told["records"])
            peak_gib = float(peak) if peak else None
        except (OSError, SafetensorError, LookupError, ValueError) as error:
            raise InvalidInput(f"{self.path} is not a checkpoint of a model that learns: {error}. Delete it") from error
        if about != self._about:
            raise InvalidInput(
                f"{self.path} is the checkpoint of a run with other settings, another model or another stream: "
                "delete it, or name another file for the rows"
            )
        return Checkpoint(tensors, steps, records, peak_gib)

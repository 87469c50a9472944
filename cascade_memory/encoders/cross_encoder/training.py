"""The copy of a reranker that is trained while another one serves, and its weights in a file.

The file is one of safetensors, with a manifest in the header. It is complete or missing.
"""

from __future__ import annotations

import copy
import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.private_files import create_file, is_plain, make_private
from cascade_memory.encoders.cross_encoder.batching import TokenBudget, padded
from cascade_memory.encoders.cross_encoder.loading import Base
from cascade_memory.errors import EncoderMismatch, StoreCorrupt, StoreUnwritable
from cascade_memory.ports.policy import Floats

_MANIFEST = "cascade_memory"
_TRAINED_AT_ONCE = 4_096  # tokens
LONG = 512  # tokens; for longer pairs activations are computed twice instead of being stored
_WEIGHT_DECAY = 1e-5


def write_weights(file: Path, model: Any, manifest: dict[str, Any]) -> None:
    """Write the weights under another name, then rename the file, so that a process that dies leaves no incomplete ``file``."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    unfinished = file.with_suffix(f".{uuid.uuid4().int}.part")  # a name under which nobody has put a link
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
    try:
        create_file(unfinished)  # safetensors overwrites it; only the owner may read it
        save_file(tensors, unfinished, metadata={_MANIFEST: json.dumps(manifest)})
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        make_private(unfinished)
        unfinished.replace(file)
    except (OSError, SafetensorError) as error:
        unfinished.unlink(missing_ok=True)
        raise StoreUnwritable(f"cannot write {file}: {error}") from error


def read_weights(file: Path, identity: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the weights; refuse those of another model or tokenizer, and numbers that are not finite."""
    from safetensors import SafetensorError, safe_open

    try:
        if not is_plain(file):
            raise ValueError("it is not a plain file")  # noqa: TRY301 - the message is composed below
        with safe_open(file, framework="pt") as opened:
            manifest = json.loads((opened.metadata() or {})[_MANIFEST])
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is not a mapping
        _check(manifest, weights)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise StoreCorrupt(f"{file} is not a snapshot of an encoder ({error}); delete it; it will be learned again") from error
    if manifest.get("encoder") != identity:
        raise EncoderMismatch(
            f"{file} holds weights of {manifest.get('encoder')}, not of {identity}: "
            "another architecture, dimension or tokenizer. Open the folder with the reranker that it was trained with"
        )
    return manifest, weights


def _check(manifest: Any, weights: dict[str, Any]) -> None:
    """Refuse a manifest without its counts, and weights with which every score would be nan."""
    counts = (manifest["version"], manifest["fitted_outcomes"])
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("its manifest is damaged")
    broken = [name for name, tensor in weights.items() if tensor.is_floating_point() and not bool(tensor.isfinite().all())]
    if broken:
        raise ValueError(f"{broken[0]} holds a number that is not finite")


class Apprentice:
    """A reranker in training, in single precision, with AdamW's state; made at the first step, used by one thread at a time."""

    def __init__(self, base: Base, learning_rate: float) -> None:
        self._base, self.learning_rate = base, learning_rate
        self.budget = TokenBudget(_TRAINED_AT_ONCE)
        self._model: Any = None
        self._head: Any = None
        self._optimiser: Any = None

    @property
    def model(self) -> Any:
        """The model with the weights after the last step."""
        return self._ready()

    def _ready(self) -> Any:
        if self._model is None:
            import torch

            self._model = copy.deepcopy(self._base.model).to(self._base.device).requires_grad_(requires_grad=True).train()
            self._head = torch.nn.Parameter(torch.tensor(self._base.head, dtype=torch.float32, device=self._base.device))
            weights = [*self._model.parameters(), self._head]
            self._optimiser = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=_WEIGHT_DECAY)
        return self._model

    def take(self, weights: dict[str, Any]) -> None:
        """Continue from these weights; the state of AdamW starts empty."""
        self._ready().load_state_dict(weights)

    def step(
        self,
        tokens: Sequence[dict[str, list[int]]],
        labels: Floats,
        weights: Floats,
        theta: Floats,
        *,
        joint: bool,
        loss: str,
    ) -> Floats:
        """Take a gradient step on the mean loss under the head ``theta``; return the head, trained too only if ``joint``."""
        import torch

        with calculating():
            model, device = self._ready(), self._base.device
            with torch.no_grad():
                self._head.copy_(torch.tensor(np.asarray(theta), dtype=torch.float32))
            self._head.requires_grad_(joint)
            lengths = [len(each["input_ids"]) for each in tokens]
            _checkpoint(model, on=max(lengths) > LONG)
            rewards = torch.tensor(np.asarray(labels), dtype=torch.float32, device=device)
            shares = torch.tensor(np.asarray(weights) / np.sum(weights), dtype=torch.float32, device=device)

            def learn(batch: list[int]) -> None:
                inputs = padded([tokens[i] for i in batch], self._base)
                with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=self._base.half):
                    pooled = model(**inputs).logits
                scores = pooled.float() @ self._head
                (losses(scores, rewards[batch], loss) * shares[batch]).sum().backward()

            def restart() -> None:
                self._optimiser.zero_grad(set_to_none=True)

            restart()
            try:
                self.budget.run(lengths, learn, restart)
                self._optimiser.step()
            finally:
                restart()
            return self._head.detach().cpu().numpy().astype(np.float64) if joint else theta


def _checkpoint(model: Any, *, on: bool) -> None:
    """Switch activation checkpointing on or off: while it is on, activations are computed twice instead of being stored.

    Transformers 6 renames the method that does this.
    """
    switch = "enable" if on else "disable"
    method = getattr(model, f"activation_checkpointing_{switch}", None) or getattr(model, f"gradient_checkpointing_{switch}")
    method()


def losses(scores: Any, rewards: Any, loss: str) -> Any:
    """Return the loss of each score."""
    import torch

    if loss == "squared":
        return (scores - rewards) ** 2
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, rewards, reduction="none")

"""The copy of a reranker that is trained while another one serves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from cascade_memory.domain.calculating import calculating
from cascade_memory.encoders.cross_encoder.batching import TokenBudget, padded
from cascade_memory.encoders.cross_encoder.loading import Base
from cascade_memory.ports.policy import Floats

_TRAINED_AT_ONCE = 4_096  # tokens
LONG = 512  # tokens; for longer pairs activations are computed twice instead of being stored
_WEIGHT_DECAY = 1e-5


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

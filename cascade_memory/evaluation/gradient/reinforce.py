"""REINFORCE: makes answers that were rewarded more likely, with one step of AdamW after a batch of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.gradient.loading import Adapter, CausalLM
from cascade_memory.evaluation.gradient.local_chat import Sampled
from cascade_memory.evaluation.gradient.settings import Training

_MEANS = ("exp_avg", "exp_avg_sq")  # AdamW's running means, of the gradient and of its square


class Reinforce:
    """Trains an adapter on the rewards of sampled answers.

    The gradient of an episode is the gradient of the log-probability of the whole answer, multiplied by a weight. The weight is
    the reward minus a penalty for the distance to the untrained model. The log-probability is computed at temperature 1 and
    over all tokens, whatever the settings of the sampling.
    """

    def __init__(self, lm: CausalLM, training: Training, seed: int) -> None:
        import torch

        self._lm, self._training = lm, training
        self.adapter = Adapter(lm, training, seed)
        self._weights = self.adapter.weights
        self._optimiser = torch.optim.AdamW(
            list(self._weights.values()), lr=training.learning_rate, weight_decay=training.weight_decay
        )
        self.steps = 0  # of the optimiser
        self.gathered = 0  # episodes whose gradients wait for the next step

    def learn(self, sampled: Sampled, reward: float) -> float:
        """Learn from an episode; return the log-ratio of its answer: its log-probability minus that of the untrained model."""
        import torch

        now = self.log_probability(sampled)
        with torch.no_grad(), self.adapter.switched_off():
            before = self.log_probability(sampled)
        ratio = float(now.detach() - before)
        worth = reward - self._training.kl * (1.0 if self._training.kl_form == "published" else ratio)
        loss = -worth * now / self._training.batch
        if not torch.isfinite(loss):
            raise CascadeError("the log-probability of an answer is not finite: choose a lower learning rate")
        loss.backward()
        self.gathered += 1
        if self.gathered == self._training.batch:
            self.step()
        return ratio

    def log_probability(self, sampled: Sampled) -> Any:
        """Compute the log-probability of an answer after its prompt; only the answer's tokens count."""
        import torch

        tokens = torch.tensor(sampled.answer, device=self._lm.device)
        logits = self._lm.logits([*sampled.prompt, *sampled.answer], len(sampled.answer) + 1)[:-1]
        logs = torch.log_softmax(logits, dim=-1)
        return logs.gather(-1, tokens.to(logs.device).unsqueeze(-1)).sum()

    def step(self) -> None:
        """Take one step of AdamW on the gradients of a batch."""
        import torch

        torch.nn.utils.clip_grad_norm_(list(self._weights.values()), self._training.clip)
        self._optimiser.step()
        self._optimiser.zero_grad()
        self.gathered = 0
        self.steps += 1

    def state(self) -> dict[str, Any]:
        """Return the adapter and the optimiser's running means as tensors; gathered gradients are not part of it."""
        tensors: dict[str, Any] = {}
        for name, weight in self._weights.items():
            tensors[f"weight/{name}"] = weight.detach().cpu().contiguous()
            for mean in _MEANS:
                if mean in self._optimiser.state[weight]:
                    tensors[f"{mean}/{name}"] = self._optimiser.state[weight][mean].cpu().contiguous()
        return tensors

    def load(self, tensors: Mapping[str, Any], steps: int) -> None:
        """Go on from a state that was saved after this number of steps."""
        import torch

        parts = ("weight", *(_MEANS if steps else ()))
        expected = {f"{part}/{name}": weight for part in parts for name, weight in self._weights.items()}
        if tensors.keys() != expected.keys() or any(not _fits(tensors[name], expected[name]) for name in expected):
            raise InvalidInput("the tensors of the checkpoint are not those of this model's adapter")
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(tensors[f"weight/{name}"])
                if steps:
                    means = {mean: tensors[f"{mean}/{name}"].to(weight.device) for mean in _MEANS}
                    self._optimiser.state[weight] = {"step": torch.tensor(float(steps)), **means}
        self.steps = steps

    def close(self) -> None:
        """Take the adapter out of the model."""
        self.adapter.remove()


def _fits(found: Any, weight: Any) -> bool:
    shapes: Sequence[Any] = (found.shape, weight.shape)
    return shapes[0] == shapes[1] and found.dtype == weight.dtype and bool(found.isfinite().all())

"""A LoRA adapter on the query and value projections of a model."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.gradient.loading import EXTRA, CausalLM
from cascade_memory.evaluation.gradient.settings import Training

PROJECTIONS = ("q_proj", "v_proj")


class Adapter:
    """Trainable matrices inside a model; they change nothing at first. ``remove`` takes them out again.

    The model's own weights stay as they are.
    """

    def __init__(self, lm: CausalLM, training: Training, seed: int) -> None:
        try:
            from peft import LoraConfig, get_peft_model
        except ImportError as error:
            raise MissingExtra(f"REINFORCE + LoRA {EXTRA}") from error
        _check_projections(lm)
        config = LoraConfig(
            r=training.rank,
            lora_alpha=training.scaling,  # pyright: ignore[reportArgumentType] - any number will do
            target_modules=list(PROJECTIONS),
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
        )
        with _seeded(seed), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # peft, with newer transformers
            self._inside = get_peft_model(lm.model, config)
        self._inside.eval()
        self.weights: dict[str, Any] = {
            name: weight for name, weight in self._inside.named_parameters() if weight.requires_grad
        }

    def switched_off(self) -> AbstractContextManager[Any]:
        """Return a context manager: inside its block, the model computes as it did before the training."""
        return self._inside.disable_adapter()

    def remove(self) -> None:
        """Take the adapter out of the model."""
        self._inside.unload()
        self.weights = {}


def _check_projections(lm: CausalLM) -> None:
    names = sorted(
        {
            place.rpartition(".")[2]
            for place, module in lm.model.named_modules()
            if getattr(module, "weight", None) is not None and module.weight.ndim == 2
        }
    )
    lacking = [one for one in PROJECTIONS if one not in names]
    if lacking:
        raise InvalidInput(
            f"{lm.name} has no layers named {' and '.join(lacking)}, which REINFORCE + LoRA adapts: it has {', '.join(names)}. "
            "Choose a model with separate query and value projections, such as Qwen3 or Llama"
        )


@contextmanager
def _seeded(seed: int) -> Generator[None]:
    """Seed torch's generators inside the block; afterwards they are as before."""
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield

"""How a local model samples its answers, and how it is trained on their rewards: the paper's settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeVar

from cascade_memory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The settings of sampling. First the temperature is applied, then ``top_k``, then ``top_p``.

    >>> Sampling().temperature
    0.1
    """

    temperature: float = 0.1
    top_p: float = 0.8
    top_k: int = 20
    max_tokens: int = 2_048  # the longest answer

    def __post_init__(self) -> None:
        _check_numbers(self)
        if not (self.temperature > 0 and 0 < self.top_p <= 1 and self.top_k >= 1 and self.max_tokens >= 1):
            raise InvalidInput(
                "sampling needs a temperature above 0, a top_p above 0 and at most 1, a top_k and max_tokens of at least 1, "
                f"not {asdict(self)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The settings of REINFORCE + LoRA.

    ``kl_form`` is the way in which the distance to the untrained model counts. "published" is the form of the paper's authors:
    the log-ratio of the sampled answer is part of the loss. The gradient of this part only lowers every reward by ``kl``, as a
    baseline does. "penalty" is the gradient of the divergence itself: the reward is lowered by ``kl`` times the log-ratio of
    the answer.

    >>> Training(learning_rate=1e-5).batch
    32
    """

    learning_rate: float = 1e-4  # the paper chooses one of 3e-6, 1e-5, 3e-5 and 1e-4 for each task; nearly always the last
    batch: int = 32  # episodes whose gradients are added up for one step of the optimiser
    kl: float = 0.1
    kl_form: Literal["published", "penalty"] = "published"
    rank: int = 8
    scaling: float = 16.0  # LoRA's alpha: its product of matrices is multiplied by scaling / rank
    weight_decay: float = 1e-5
    clip: float = 1.0  # the largest norm of the gradient of a step

    def __post_init__(self) -> None:
        _check_numbers(self)
        if not (self.learning_rate > 0 and self.scaling > 0 and self.clip > 0 and self.batch >= 1 and self.rank >= 1):
            raise InvalidInput(
                f"learning_rate, scaling and clip must be above 0, batch and rank at least 1: not so in {asdict(self)}"
            )
        if self.kl < 0 or self.weight_decay < 0 or self.kl_form not in ("published", "penalty"):
            raise InvalidInput(
                f'kl and weight_decay must not be negative, and kl_form is "published" or "penalty": not so in {asdict(self)}'
            )


def _check_numbers(settings: Sampling | Training) -> None:
    for one in fields(settings):
        value = getattr(settings, one.name)
        if isinstance(one.default, str):
            continue
        whole = isinstance(one.default, int)
        right = isinstance(value, int) if whole else isinstance(value, (int, float)) and math.isfinite(value)
        if isinstance(value, bool) or not right:
            raise InvalidInput(f"{one.name} must be {'a whole number' if whole else 'a number'}, not {value!r}")


Settings = TypeVar("Settings", Sampling, Training)


def settings_from(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """Make settings from a JSON object; an unknown name is refused.

    >>> settings_from(Training, {"learning_rate": 3e-5}).learning_rate
    3e-05
    """
    names = [one.name for one in fields(kind)]
    if unknown := [name for name in given if name not in names]:
        raise InvalidInput(f"there is no setting {unknown[0]!r}; there are {', '.join(names)}")
    return kind(**given)

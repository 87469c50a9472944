"""A language model in this process as the model of the benchmark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.gradient.loading import CausalLM
from cascade_memory.evaluation.gradient.sampling import sample
from cascade_memory.evaluation.gradient.settings import Sampling
from cascade_memory.evaluation.model.chat import Message, Note, Reply, Try


@dataclass(frozen=True, slots=True)
class Sampled:
    """The tokens of a prompt, and those of the answer that was sampled."""

    prompt: list[int]
    answer: list[int]


class LocalChat:
    """Samples answers from a model. The random numbers depend on the seed and on ``draw`` alone.

    The caller sets ``draw`` to the place of the task in its stream. So a task that is repeated after a crash gets the same
    answer as before, and all methods have the same random numbers for the same task.
    """

    def __init__(self, lm: CausalLM, sampling: Sampling, seed: int, *, name: str) -> None:
        self._lm, self._sampling, self._seed = lm, sampling, seed
        self.name = name
        self.settings: Mapping[str, Any] = asdict(sampling)
        self.draw = 0
        self.last: Sampled | None = None  # what was sampled for the last request

    def complete(self, messages: Sequence[Message], note: Note = lambda _: None) -> Reply:
        """Return the model's reply to these messages, and pass the reply and its time to ``note``."""
        began = time.monotonic()
        prompt = prompt_tokens(self._lm, messages)
        answer = sample(self._lm, prompt, self._sampling, np.random.default_rng([self._seed, 11, self.draw]))
        self.last = Sampled(prompt, answer)
        text = str(self._lm.tokenizer.decode(answer, skip_special_tokens=True))
        reply = Reply(text, len(prompt), len(answer))
        note(Try(number=1, seconds=time.monotonic() - began, reply=reply))
        return reply


def prompt_tokens(lm: CausalLM, messages: Sequence[Message]) -> list[int]:
    """Convert messages to tokens: with the tokenizer's chat template, or else as plain text.

    The template is asked not to let the model think, as in the paper. If the template takes no system message, the text of
    that message is put before the text of the first other message.
    """
    tokenizer = lm.tokenizer
    if not tokenizer.chat_template:
        text = "\n\n".join(message["content"] for message in messages) + "\n"
        found = tokenizer(text)["input_ids"]
        return found[:-1] if found and found[-1] in lm.stops else found  # some tokenizers end every text
    why: Exception | None = None
    for form in (list(messages), _in_one(messages)):
        try:
            text = tokenizer.apply_chat_template(form, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        except Exception as error:  # noqa: BLE001 - a template raises whatever its author wanted
            why = error
            continue
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    raise InvalidInput(f"the chat template of {lm.name} cannot show a question: {why}")


def _in_one(messages: Sequence[Message]) -> list[Message]:
    system = [message["content"] for message in messages if message["role"] == "system"]
    first, *rest = [message for message in messages if message["role"] != "system"]
    return [{"role": first["role"], "content": "\n\n".join([*system, first["content"]])}, *rest]

"""A language model in this process that answers many prompts at once, always with the likeliest token."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.gradient.loading import CausalLM, load_causal_lm
from cascade_memory.evaluation.gradient.local_chat import prompt_tokens
from cascade_memory.evaluation.model.chat import Message, Note, PromptTooLong, Reply, Try

_WAIT = 0.05  # seconds that a batch waits for one more prompt
_SHARED = 48  # a beginning that all prompts of a batch share is read once if it has as many tokens
_PADDED = 1_024  # tokens of padding that cost more than the steps of one more batch


@dataclass(frozen=True, slots=True)
class _Asked:
    tokens: list[int]
    answer: Future[list[int]] = field(default_factory=lambda: Future[list[int]]())


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The common beginning of prompts, and the model's cache (keys and values) for it."""

    tokens: list[int]
    layers: list[tuple[Any, Any]]


class LocalBatches:
    """Answers in batches: each caller waits, and those who wait at the same time share each step of the model.

    The same prompt gets the same answer, except in rare ties, which may be rounded differently in a batch of other prompts.

    Args:
        folder: A causal language model with its tokenizer.
        most: The largest number of tokens of an answer.
        batch: The largest number of prompts that are answered at once.
        dtype: What a CPU computes with, "float32" or "bfloat16"; by default whichever is faster on this machine.
    """

    def __init__(self, folder: str, *, most: int = 256, batch: int = 32, dtype: str | None = None) -> None:
        if most < 1 or batch < 1:
            raise InvalidInput(f"most and batch must be at least 1, not {most} and {batch}")
        if dtype not in (None, "float32", "bfloat16"):
            raise InvalidInput(f'dtype must be "float32" or "bfloat16", not {dtype!r}')
        self._lm = load_causal_lm(folder, dtype=dtype)
        if dtype not in (None, self._lm.dtype):
            raise InvalidInput(f"{self._lm.name} computes in {self._lm.dtype} on this machine, so it cannot do so in {dtype}")
        self._most, self._batch = most, batch
        self.name = self._lm.name
        self.settings: Mapping[str, Any] = {"temperature": 0, "max_tokens": most}
        self._waiting: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._beginning: _Beginning | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """What identifies the model: its weights, its type of numbers and its chat template."""
        template = hashlib.blake2b(str(self._lm.tokenizer.chat_template).encode(), digest_size=8).hexdigest()
        return {"server": "in this process", "weights": self._lm.identity, "dtype": self._lm.dtype, "template": template}

    def complete(self, messages: Sequence[Message], note: Note = lambda _: None) -> Reply:
        """Return the reply, once its batch has been answered."""
        began = time.monotonic()
        prompt = prompt_tokens(self._lm, messages)
        if len(prompt) + self._most > self._lm.positions:
            said = f"{self.name} reads {self._lm.positions:,} tokens with the answer, and the prompt has {len(prompt):,}"
            note(Try(number=1, seconds=0.0, error=said, too_long=True))
            raise PromptTooLong(said)
        asked = _Asked(prompt)
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._answer, name="local-batches", daemon=True)
                self._thread.start()
        self._waiting.put(asked)
        answer = asked.answer.result()
        reply = Reply(str(self._lm.tokenizer.decode(answer, skip_special_tokens=True)), len(prompt), len(answer))
        note(Try(number=1, seconds=time.monotonic() - began, reply=reply))
        return reply

    def close(self) -> None:
        """Stop answering; a later request is an error."""
        self._waiting.put(None)

    def _answer(self) -> None:
        stopped = False
        while not stopped:
            batch, stopped = self._collected()
            if batch:
                self._answer_batch(batch)
        while True:  # whoever asks after the end
            late = self._waiting.get()
            if late is not None:
                late.answer.set_exception(ModelUnavailable(f"{self.name} was closed"))

    def _answer_batch(self, batch: list[_Asked]) -> None:
        try:
            import torch

            with torch.inference_mode():
                self._read_beginning([asked.tokens for asked in batch])
                for part in _of_like_length(batch):
                    for asked, answer in zip(part, self._decoded([one.tokens for one in part]), strict=True):
                        asked.answer.set_result(answer)
        except Exception as error:  # noqa: BLE001 - those who wait have to know, whatever it was
            for asked in batch:
                if not asked.answer.done():
                    asked.answer.set_exception(ModelUnavailable(f"{self.name} failed: {type(error).__name__}: {error}"))

    def _collected(self) -> tuple[list[_Asked], bool]:
        """Wait for a prompt, and for more until none comes for a moment; return them, and whether this object was closed."""
        first = self._waiting.get()
        batch = [] if first is None else [first]
        while batch and len(batch) < self._batch:
            try:
                more = self._waiting.get(timeout=_WAIT)
            except queue.Empty:
                return batch, False
            if more is None:
                return batch, True
            batch.append(more)
        return batch, not batch

    def _read_beginning(self, prompts: list[list[int]]) -> None:
        """Let the model read the beginning that these prompts share, unless it is cached, or too short to be worth it."""
        known = self._beginning
        if known is not None and all(prompt[: len(known.tokens)] == known.tokens for prompt in prompts):
            return
        self._beginning = None
        shortest = min(map(len, prompts)) - 1  # at least one token of each prompt is left to be read
        first = prompts[0]
        same = next((i for i in range(shortest) if any(prompt[i] != first[i] for prompt in prompts)), shortest)
        if len(prompts) < 2 or same < _SHARED:
            return
        cache = getattr(self._run(ids=[first[:same]], mask=None, at=None, cache=None), self._lm.cache)
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        self._beginning = _Beginning(first[:same], layers)

    def _decoded(self, prompts: list[list[int]]) -> list[list[int]]:
        import torch
        from transformers import DynamicCache

        lm, known = self._lm, self._beginning
        rows = prompts if known is None else [prompt[len(known.tokens) :] for prompt in prompts]
        longest = max(map(len, rows))
        pad = int(lm.tokenizer.pad_token_id or 0)
        ids = [[pad] * (longest - len(row)) + row for row in rows]
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=lm.device)
        at = (mask.cumsum(1) - 1).clamp(min=0)
        cache = DynamicCache()
        if known is not None:
            for number, (keys, values) in enumerate(known.layers):
                wide = (keys.expand(len(rows), -1, -1, -1), values.expand(len(rows), -1, -1, -1))
                cache.update(wide[0].contiguous(), wide[1].contiguous(), number)
            at = at + len(known.tokens)
            mask = torch.cat([mask.new_ones(len(rows), len(known.tokens)), mask], 1)
        output = self._run(ids=ids, mask=mask, at=at, cache=cache)
        answers: list[list[int]] = [[] for _ in rows]
        alive, last = list(range(len(rows))), at[:, -1]
        while True:
            tokens = output.logits[:, -1].argmax(-1)
            going: list[int] = []  # places in the batch
            for place, (row, token) in enumerate(zip(alive, tokens.tolist(), strict=True)):
                if token not in lm.stops:
                    answers[row].append(token)
                    if len(answers[row]) < self._most:
                        going.append(place)
            if not going:
                return answers
            if len(going) < len(alive):  # those that ended take no further step
                kept = torch.tensor(going, device=lm.device)
                cache.batch_select_indices(kept)
                mask, last, tokens, alive = mask[kept], last[kept], tokens[kept], [alive[place] for place in going]
            mask = torch.cat([mask, mask.new_ones(len(alive), 1)], 1)
            last = last + 1
            output = self._run(ids=tokens[:, None], mask=mask, at=last[:, None], cache=cache)

    def _run(self, *, ids: Any, mask: Any, at: Any, cache: Any) -> Any:
        import torch

        lm: CausalLM = self._lm
        ids = ids if isinstance(ids, torch.Tensor) else torch.tensor(ids, device=lm.device)
        options = {"logits_to_keep": 1} if lm.keeps_logits else {}
        return lm.model(input_ids=ids, attention_mask=mask, position_ids=at, use_cache=True, **{lm.cache: cache}, **options)


def _of_like_length(batch: list[_Asked]) -> list[list[_Asked]]:
    """Split a batch where that saves much padding: in a batch, each prompt takes as long to read as the longest one."""
    ordered = sorted(batch, key=lambda asked: len(asked.tokens))
    longest = len(ordered[-1].tokens)
    saved = [place * (longest - len(ordered[place - 1].tokens)) for place in range(1, len(ordered))]
    if max(saved, default=0) <= _PADDED:
        return [ordered]
    cut = saved.index(max(saved)) + 1
    return [*_of_like_length(ordered[:cut]), *_of_like_length(ordered[cut:])]

"""Pairs as tokens: each pair tokenised once, batches of like lengths, and less at a time when memory runs out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from cascade_memory.encoders.cross_encoder.loading import Base

Value = TypeVar("Value")

_GRAIN = 16  # tokens


class Remembered(Generic[Value]):
    """The last values that were asked for, by key; the lock is held for microseconds."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key.

        >>> kept = Remembered[int](most=1)
        >>> kept.put("a", 1); kept.put("b", 2); kept.get("a"), kept.get("b")
        (None, 2)
        """
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, and let go of the one that nobody asked for the longest."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)


class TokenBudget:
    """How many tokens go through the model at once: halved whenever memory runs out, and never raised again."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield places of sequences of like lengths, shortest first, no more of them than fit: 1, 2, 4, 8, ... at a time.

        >>> list(TokenBudget(8).batches([4, 1, 9, 3]))
        [[1, 3], [0], [2]]
        """
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lengths.__getitem__):
            if batch and (len(batch) + 1) * lengths[place] > self.tokens:
                yield from _powers_of_two(batch)
                batch = []
            batch.append(place)
        yield from _powers_of_two(batch)

    def run(self, lengths: Sequence[int], work: Callable[[list[int]], None], restart: Callable[[], None]) -> None:
        """Do the work batch by batch; when memory runs out, start again with half as much at a time."""
        import torch

        lengths = [_rounded(length) for length in lengths]
        enough = self.tokens
        while True:
            try:
                for batch in self.batches(lengths):
                    work(batch)
                return
            except torch.cuda.OutOfMemoryError:
                if self.tokens <= max(lengths):
                    self.tokens = enough  # one pair alone is too much: smaller batches were no help
                    raise
                self.tokens //= 2
            restart()
            torch.cuda.empty_cache()


def _powers_of_two(batch: list[int]) -> Iterator[list[int]]:
    """Cut a batch, so that few shapes occur: a processor's kernels are compiled, and kept, for every shape that it meets.

    >>> [len(part) for part in _powers_of_two(list(range(13)))]
    [8, 4, 1]
    """
    while batch:
        size = 1 << (len(batch).bit_length() - 1)
        yield batch[:size]
        batch = batch[size:]


def _rounded(length: int) -> int:
    """Return the length that a pair is padded to.

    >>> _rounded(16), _rounded(17)
    (16, 32)
    """
    return -(-length // _GRAIN) * _GRAIN


def padded(tokens: Sequence[dict[str, list[int]]], base: Base) -> dict[str, Any]:
    """Return sequences of tokens as one batch of tensors, whose length is one of few, for the same reason."""
    longest = max(len(each["input_ids"]) for each in tokens)
    length = max(longest, min(base.max_tokens, _rounded(longest)))
    batch = base.tokenizer.pad(list(tokens), padding="max_length", max_length=length, return_tensors="pt")
    return {name: tensor.to(base.device) for name, tensor in batch.items()}

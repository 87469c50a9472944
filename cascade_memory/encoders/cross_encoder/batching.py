"""Batches of pairs: each pair is tokenised once, batches have similar lengths, and become smaller if memory runs out."""

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
    """A cache of the values that were used last, by key; its lock is held for microseconds."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None.

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
        """Store a value; if there are too many, remove the one that was not used for the longest time."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)


class TokenBudget:
    """How many tokens the model gets at once: halved if memory runs out, and restored only if smaller batches do not help."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield indices of sequences, sorted by length, the shortest first, in batches of 1, 2, 4, 8, ... that fit.

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
        """Do the work batch by batch; if memory runs out, start again with batches of half the size."""
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
                    self.tokens = enough  # a single pair needs too much memory, so smaller batches did not help
                    raise
                self.tokens //= 2
            restart()
            torch.cuda.empty_cache()


def _powers_of_two(batch: list[int]) -> Iterator[list[int]]:
    """Split a batch so that few shapes occur: the CPU's kernels are compiled and stored for every new shape.

    >>> [len(part) for part in _powers_of_two(list(range(13)))]
    [8, 4, 1]
    """
    while batch:
        size = 1 << (len(batch).bit_length() - 1)
        yield batch[:size]
        batch = batch[size:]


def _rounded(length: int) -> int:
    """Return the length to which a pair is padded.

    >>> _rounded(16), _rounded(17)
    (16, 32)
    """
    return -(-length // _GRAIN) * _GRAIN


def padded(tokens: Sequence[dict[str, list[int]]], base: Base) -> dict[str, Any]:
    """Return sequences of tokens as one batch of tensors, padded to one of few lengths, so that few shapes occur."""
    longest = max(len(each["input_ids"]) for each in tokens)
    length = max(longest, min(base.max_tokens, _rounded(longest)))
    batch = base.tokenizer.pad(list(tokens), padding="max_length", max_length=length, return_tensors="pt")
    return {name: tensor.to(base.device) for name, tensor in batch.items()}

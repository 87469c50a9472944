"""Whether ``async with memory.episode(...)`` holds up the event loop: its embedder waits for a task of that loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from cascade_memory.encoders.hashing import HashingEmbedder


class _Waiting(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()
        self.was_let_go = True

    def embed(self, texts: Any) -> Any:
        self.was_let_go = self.may_go.wait(5.0) and self.was_let_go  # the time is over only if the test fails
        return super().embed(texts)


async def block_leaves_the_loop_free(make: Callable[..., Any]) -> bool:
    """Open a block, and say whether the loop went on while it recalled. ``make`` takes the options of a memory."""
    embedder = _Waiting()
    memory = make(embedder=embedder, deadline=None)

    async def let_go() -> None:
        embedder.may_go.set()

    going = asyncio.ensure_future(let_go())
    async with memory.episode("cool some mug") as episode:
        episode.solution = "put it into the fridge"
        assert episode.recall.error is None
        assert episode.recall is episode.recall
        assert memory.episodes.get(episode.id).status == "open"
    await going
    assert memory.stats().recalls == 1
    return embedder.was_let_go

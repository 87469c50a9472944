"""mem0 as a memory of solved tasks, without its language model: it stores each task as it is, and searches by vectors."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.rivals.playing import Shown
from cascade_memory.ports import Embedder

_WHO = "agent"  # mem0 wants to know whose memories they are; each instance has a store of its own
_DOWNLOADING = ("spacy", "fastembed")  # if they are there, mem0 fetches models for them; ALFWorld brings the first
_ON = ("true", "1", "yes")  # how mem0 reads MEM0_TELEMETRY
# mem0 begins with a client for each, which wants a key. Neither is called: nothing is inferred, and we give the vectors.
_NOT_CALLED = {"provider": "openai", "config": {"api_key": "not used"}}


class Mem0:
    """mem0's open-source ``Memory``, as ``pip install mem0ai`` gives it: what succeeded is added, and nothing is learned.

    A success is added with ``infer=False``, so no language model reads it: the task is the text of the memory, and the solution
    lies beside it as metadata. A search has mem0's defaults, apart from ``top_k=1``: the cosine must reach 0.1, and nothing
    ranks again what was found. With fastembed mem0 would also count words (BM25), with spaCy also names. It downloads models
    for both, so they have no part here. The vectors are those of the embedder that all other memories use. They lie in RAM, in
    Qdrant, which is mem0's default, and so does mem0's history.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._memory = _imported().Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": ":memory:", "embedding_model_dims": embedder.dimension},
                },
                "llm": _NOT_CALLED,
                "embedder": _NOT_CALLED,
                "history_db_path": ":memory:",
            }
        )
        self._memory.embedding_model = _Vectors(embedder)

    def recall(self, task: str) -> Shown:
        """Return the success that mem0 finds first; nothing if none reaches its threshold."""
        found = self._memory.search(task, top_k=1, filters={"user_id": _WHO})["results"]
        return [(str(one["memory"]), str(one["metadata"]["solution"])) for one in found]

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Add a success."""
        del shown
        if reward == 1.0:
            self._memory.add(task, user_id=_WHO, metadata={"solution": solution}, infer=False)

    def close(self) -> None:
        """Let go of what is in RAM. mem0 closes its history only, so its store is closed here."""
        self._memory.vector_store.client.close()
        self._memory.close()


class _Vectors:
    """Gives mem0 the vectors of our embedder: it has what mem0 asks of an embedding model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text; what it is for makes no difference."""
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        """Return the vectors of some texts."""
        del memory_action
        vectors: list[list[float]] = np.asarray(self._embedder.embed(texts), np.float64).tolist()
        return vectors


def _imported() -> Any:
    """Import mem0 if it will stay off the network; otherwise say what to do."""
    if (there := [name for name in _DOWNLOADING if find_spec(name) is not None]) and find_spec("mem0") is not None:
        raise InvalidInput(f"mem0 would download models for {' and '.join(there)}: play it in an environment without")
    if os.environ.get("MEM0_TELEMETRY", "").lower() in _ON:
        raise InvalidInput("MEM0_TELEMETRY asks mem0 to report on this run, and a benchmark sends nothing: set it to False")
    with _at_import():
        try:
            mem0: Any = importlib.import_module("mem0")
            telemetry: Any = importlib.import_module("mem0.memory.telemetry")
        except ImportError as error:
            raise InvalidInput("mem0's store needs another package: pip install mem0ai") from error
    if telemetry.MEM0_TELEMETRY:
        raise InvalidInput("mem0 was imported with its telemetry on: set MEM0_TELEMETRY=False before anything imports it")
    return mem0


@contextmanager
def _at_import() -> Generator[None, None, None]:
    """Set what mem0 reads from the environment while it is imported, and then never again.

    It writes the file of its telemetry then. That one goes into a folder that is removed at once: a program that uses mem0 for
    itself gets an error there later, and does not lose what it stores. A folder that the user has named is left as it is.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted = {"MEM0_TELEMETRY": "False", "MEM0_DIR": os.environ.get("MEM0_DIR") or folder}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

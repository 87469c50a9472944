"""Rivals in their model-free form: lexical search, a hybrid of words and vectors, and rules that papers describe."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import loaded_by_name
from cascade_memory.evaluation.rivals.mem0_store import Mem0
from cascade_memory.evaluation.rivals.playing import MakeRival, Shown
from cascade_memory.evaluation.search.local import words_of
from cascade_memory.ports import Embedder

_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:Class
_K1, _B = 1.2, 0.75  # BM25's usual constants
_FUSED = 60.0  # of reciprocal rank fusion, as its paper has it
_ALIKE, _NEAREST = 0.5, 32  # MemRL: weight of the similarity against Q; and among how many candidates it chooses
_RATE = 0.1  # MemRL: how far one reward moves Q


class _Bank:
    """Keeps successes, with their vectors and words. A case that is dropped keeps its place, with a score below all others."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.cases: list[tuple[str, str]] = []
        self.dropped: list[bool] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._words: list[Counter[str]] = []
        self._documents: Counter[str] = Counter()

    def keep(self, task: str, solution: str) -> None:
        words = Counter(words_of(task))
        self.cases.append((task, solution))
        self.dropped.append(False)
        self._vectors.append(self._embedder.embed([task])[0])
        self._words.append(words)
        self._documents.update(words.keys())

    def drop(self, task: str, solution: str) -> None:
        """Drop the newest case with this task and solution, if there is one."""
        for place in reversed(range(len(self.cases))):
            if self.cases[place] == (task, solution) and not self.dropped[place]:
                self.dropped[place] = True
                self._documents.subtract(self._words[place].keys())
                return

    def correct(self, task: str, solution: str, reward: float) -> None:
        """Keep a success that was called a failure, or drop a failure that was called a success."""
        if reward == 1.0:
            self.keep(task, solution)
        else:
            self.drop(task, solution)

    def best(self, scores: NDArray[np.floating]) -> Shown:
        place = int(np.argmax(scores))
        return [] if self.dropped[place] else [self.cases[place]]

    def cosines(self, task: str) -> NDArray[np.float32]:
        found = np.stack(self._vectors) @ self._embedder.embed([task])[0]
        return np.where(self.dropped, np.float32(-2.0), found)

    def bm25(self, task: str) -> NDArray[np.float64]:
        lengths = np.array([words.total() for words in self._words], np.float64)
        norm = _K1 * (1.0 - _B + _B * lengths / max(float(lengths.mean()), 1.0))
        scores, cases = np.zeros(len(self._words)), len(self._words) - sum(self.dropped)
        for word in set(words_of(task)):
            known = self._documents[word]
            if known:
                rarity = math.log(1.0 + (cases - known + 0.5) / (known + 0.5))
                counts = np.array([words[word] for words in self._words], np.float64)
                scores += rarity * counts * (_K1 + 1.0) / (counts + norm)
        return np.where(self.dropped, -1.0, scores)


class BM25:
    """Shows the success whose task shares most rare words with the new one."""

    def __init__(self, embedder: Embedder) -> None:
        self._bank = _Bank(embedder)

    def recall(self, task: str) -> Shown:
        """Return the best case by BM25."""
        return self._bank.best(self.scores(task)) if self._bank.cases else []

    def scores(self, task: str) -> NDArray[np.float64]:
        """Return a score for each case."""
        return self._bank.bm25(task)

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Keep a success."""
        del shown
        if reward == 1.0:
            self._bank.keep(task, solution)

    def correct(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Keep a success after all, or drop a case that was none."""
        del shown
        self._bank.correct(task, solution, reward)


class Hybrid(BM25):
    """Fuses the ranks by BM25 and by the cosine (reciprocal rank fusion), as search engines do."""

    def scores(self, task: str) -> NDArray[np.float64]:
        """Return the sum of the reciprocal ranks."""
        by_words, by_vectors = _ranks(self._bank.bm25(task)), _ranks(self._bank.cosines(task))
        return np.asarray(1.0 / (_FUSED + by_words) + 1.0 / (_FUSED + by_vectors), np.float64)


def _ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rank of each score, 1 for the highest; of equal ones, the older case comes first."""
    return (np.argsort(np.argsort(-scores, kind="stable"), kind="stable") + 1).astype(np.float64)


class MemRL:
    """The rule in MemRL's code: among the nearest cases, half the similarity and half a Q-value, both standardised.

    A case's Q-value begins at zero, and each reward of a task for which it was shown moves it by a tenth of the difference.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._bank = _Bank(embedder)
        self._q: list[float] = []
        self._shown: dict[str, int] = {}  # the place of the case that was last shown for a task

    def recall(self, task: str) -> Shown:
        """Return the best case by the rule."""
        if not self._q:
            return []
        cosines = self._bank.cosines(task)
        near = np.argsort(-cosines, kind="stable")[:_NEAREST]
        near = near[~np.array(self._bank.dropped)[near]]
        if not len(near):
            return []
        score = _ALIKE * _standardised(cosines[near]) + (1.0 - _ALIKE) * _standardised(np.array(self._q)[near])
        self._shown[task] = int(near[np.argmax(score)])
        return [self._bank.cases[self._shown[task]]]

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Move the Q-value of what was shown, and keep a success."""
        if shown:
            place = self._shown[task]
            self._q[place] += _RATE * ((1.0 if reward == 1.0 else -1.0) - self._q[place])
        if reward == 1.0:
            self._bank.keep(task, solution)
            self._q.append(0.0)

    def correct(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Learn the right reward as one more, since no movement of Q can be taken back; drop a case that was no success."""
        self.reward(task, shown, solution, reward)
        if reward != 1.0:
            self._bank.drop(task, solution)


def _standardised(values: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-9), np.float64)


class ExpRAG:
    """Looks at the four most similar experiences, as Evo-Memory's ExpRAG does. Failures are experiences too: they take places.

    Evo-Memory shows them to a model, with a mark; an agent without a model cannot use them, so here they are left out.
    """

    MOST = 4

    def __init__(self, embedder: Embedder) -> None:
        self._bank = _Bank(embedder)
        self._succeeded: list[bool] = []

    def recall(self, task: str) -> Shown:
        """Return the successes among the most similar experiences."""
        if not self._succeeded:
            return []
        near = np.argsort(-self._bank.cosines(task), kind="stable")[: self.MOST].tolist()
        return [self._bank.cases[place] for place in near if self._succeeded[place]]

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Keep the experience, whatever its reward."""
        del shown
        self._bank.keep(task, solution)
        self._succeeded.append(reward == 1.0)

    def correct(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Mark the experience anew."""
        del shown
        for place in reversed(range(len(self._succeeded))):
            if self._bank.cases[place] == (task, solution):
                self._succeeded[place] = reward == 1.0
                return


class LangGraphStore:
    """LangGraph's ``InMemoryStore`` with an index of vectors, as its documentation uses it for examples: nothing is learned."""

    def __init__(self, embedder: Embedder) -> None:
        try:
            from langgraph.store.memory import InMemoryStore
        except ImportError as error:
            raise InvalidInput('LangGraph\'s store needs an extra: pip install "cascade-memory[langchain]"') from error

        def embed(texts: Sequence[str]) -> list[list[float]]:
            vectors: list[list[float]] = np.asarray(embedder.embed(texts), np.float64).tolist()
            return vectors

        self._store = InMemoryStore(index={"dims": embedder.dimension, "embed": embed, "fields": ["task"]})
        self._kept = 0

    def recall(self, task: str) -> Shown:
        """Return the most similar success."""
        found = self._store.search(("cases",), query=task, limit=1)
        return [(str(one.value["task"]), str(one.value["solution"])) for one in found]

    def reward(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Put a success into the store."""
        del shown
        if reward == 1.0:
            self._kept += 1
            self._store.put(("cases",), str(self._kept), {"task": task, "solution": solution})

    def correct(self, task: str, shown: Shown, solution: str, reward: float) -> None:
        """Put a success into the store after all, or delete what was none."""
        if reward == 1.0:
            self.reward(task, shown, solution, reward)
            return
        for found in self._store.search(("cases",), filter={"task": task, "solution": solution}):
            self._store.delete(("cases",), found.key)


OTHER_MEMORIES: dict[str, MakeRival] = {
    "BM25": BM25,
    "BM25 and cosine": Hybrid,
    "MemRL's rule": MemRL,
    "ExpRAG": ExpRAG,
    "LangGraph's store": LangGraphStore,
}
# These are played if somebody names them, and are in no suite: no extra of ours installs what they need.
ON_DEMAND: dict[str, MakeRival] = {"mem0's store": Mem0}
_BY_NAME = {**OTHER_MEMORIES, **ON_DEMAND}


def is_rival(method: str) -> bool:
    """Say whether a method is a rival: one of ``OTHER_MEMORIES`` or ``ON_DEMAND``, or a class of one's own, as "module:Class".

    >>> is_rival("BM25"), is_rival("mem0's store"), is_rival("my_memory:Newest"), is_rival("CASCADE")
    (True, True, True, False)
    """
    return method in _BY_NAME or _OWN.fullmatch(method) is not None


def rival_named(method: str) -> MakeRival:
    """Return what makes a rival from an embedder; a class of one's own is imported."""
    if method in _BY_NAME:
        return _BY_NAME[method]
    found = loaded_by_name(method, f"cannot load the memory {method!r}")
    if not callable(found):
        raise InvalidInput(f"{method!r} is no class that takes an embedder")
    return cast("MakeRival", found)

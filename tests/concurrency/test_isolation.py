"""What one namespace does cannot be told from anything that another one shows: bit for bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inside import state_of

from cascade_memory import CascadeMemory, Ranking

_VERBS = ("solve", "solve", "solve", "solve", "fail", "overwrite", "add", "forget", "discard", "search", "forget all")
_WORDS = ("cup", "pan", "egg", "plate", "mug", "lamp")


class _Step(NamedTuple):
    namespace: str
    verb: str
    pick: int


_STEPS = st.lists(
    st.builds(_Step, namespace=st.sampled_from(["a", "b"]), verb=st.sampled_from(_VERBS), pick=st.integers(0, 35)),
    min_size=10,
    max_size=60,
)


class _Tenant:
    """One namespace's user, and everything that he sees."""

    def __init__(self, memory: CascadeMemory, name: str) -> None:
        self._memory, self._name = memory, name
        self._settled: list[str] = []
        self.seen: list[Any] = []

    def do(self, verb: str, pick: int) -> None:
        query = f"heat the {_WORDS[pick % 6]} beside the {_WORDS[pick // 6]}"
        getattr(self, f"_{verb.replace(' ', '_')}")(query, f"step {pick % 4}", pick)

    def _recall(self, query: str) -> str:
        recall = self._memory.acting(namespace=self._name).recall(query, k=2)
        self._note(recall)
        return recall.episode_id

    def _note(self, recall: Any) -> None:
        why = recall.explain()
        table = [
            (one.query, one.similarity, one.value, one.uncertainty, one.score, one.utility, one.chosen, one.contributions)
            for one in why.candidates
        ]
        shown = [(case.query, case.solution) for case in recall.cases]
        self.seen.append((repr(table), shown, repr(why.baseline), why.abstained, why.rewards))

    def _solve(self, query: str, solution: str, pick: int) -> None:
        episode = self._recall(query)
        self._memory.acting(namespace=self._name).reward(episode, 1.0, solution=solution)
        self._settled.append(episode)

    def _fail(self, query: str, solution: str, pick: int) -> None:
        self._memory.acting(namespace=self._name).reward(self._recall(query), 0.0)

    def _overwrite(self, query: str, solution: str, pick: int) -> None:
        if self._settled:
            episode = self._settled[pick % len(self._settled)]
            self._memory.acting(namespace=self._name).reward(episode, 0.0, overwrite=True)
            self._settled.remove(episode)

    def _add(self, query: str, solution: str, pick: int) -> None:
        self._memory.acting(namespace=self._name).add(query, solution)

    def _forget(self, query: str, solution: str, pick: int) -> None:
        found = self._memory.acting(namespace=self._name).cases.search(query, k=1).cases
        if found:
            self._memory.acting(namespace=self._name).forget(found[0].id)
            self._settled.clear()  # some of these episodes may have gone with the case

    def _discard(self, query: str, solution: str, pick: int) -> None:
        self._memory.acting(namespace=self._name).episodes.discard(self._recall(query))

    def _search(self, query: str, solution: str, pick: int) -> None:
        self._note(self._memory.acting(namespace=self._name).cases.search(query, k=3))

    def _forget_all(self, query: str, solution: str, pick: int) -> None:
        if pick < 6:  # seldom, or there would never be much to know
            self._memory.acting(namespace=self._name).forget(everything=True)
            self._settled.clear()


def _renumbered(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a policy's state with its solutions numbered in order: the ledger counts them across namespaces."""
    numbers: dict[float, int] = {}

    def ordered(groups: np.ndarray) -> np.ndarray:
        return np.array([numbers.setdefault(group, len(numbers)) for group in groups.tolist()])

    renumbered = {name: ordered(state[name]) for name in ("records.order", "records.groups")}
    bandit = state["head.bandit"].copy()
    bandit[:, -1] = ordered(bandit[:, -1])
    pairs = state["process.numbers"].copy()
    for column in (0, 1):  # the solution and its family
        pairs[:, column] = ordered(pairs[:, column])
    families = ordered(state["process.families"].ravel())
    return {**state, **renumbered, "head.bandit": bandit, "process.numbers": pairs, "process.families": families}


def _lived(steps: list[_Step], first: str, *, abstain: bool) -> tuple[Any, ...]:
    """Return all that tenant "a" saw, and what was learned for him."""
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=abstain)) as memory:
        tenants = {name: _Tenant(memory, name) for name in dict.fromkeys([first, *(step.namespace for step in steps)])}
        for name in tenants:
            state_of(memory, name)
        for step in steps:
            tenants[step.namespace].do(step.verb, step.pick)
        state: Any = state_of(memory, "a")
        encoder = state.encoder
        clusters = encoder.clusters
        words = (encoder.words.texts, encoder.words.counts.tobytes(), encoder.letters.counts.tobytes())
        grown = [(n, total.tobytes()) for total, n in clusters.several.values()]
        groups = (len(clusters.single), grown, clusters.scatter.tobytes(), [row.tobytes() for row in clusters.deviations])
        learned = {name: (array.shape, array.tobytes()) for name, array in _renumbered(state.policy.state_dict()).items()}
        return tenants["a"].seen, words, groups, learned, len(state.policy.expected)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_a_namespace_is_the_same_whether_or_not_another_one_is_busy(steps: list[_Step]):
    alone = [step for step in steps if step.namespace == "a"]
    assert _lived(steps, "a", abstain=True) == _lived(alone, "a", abstain=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_nor_does_it_matter_which_namespace_was_there_first(steps: list[_Step]):
    # Whether a case is shown is decided by a draw, seeded with the number of the namespace: not a matter of what it knows.
    assert _lived(steps, "b", abstain=False) == _lived(steps, "a", abstain=False)

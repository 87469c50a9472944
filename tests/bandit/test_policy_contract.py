"""The contract of policies finds those that learn nothing, or the wrong thing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cascade_memory.bandit.light import LightPolicy
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.similarity import SimilarityPolicy
from cascade_memory.ports.policy import Feedback, Floats, Policy, State
from cascade_memory.testing import PolicyContract


class LearnsNothing(LightPolicy):
    """Counts its rewards, and that is all."""

    def _learn(self, outcome: Feedback) -> None:
        self._rewards += outcome.weight


class LearnsTheOpposite(LightPolicy):
    """Takes failures for successes."""

    def __init__(self) -> None:
        super().__init__(5, hindsight=False)

    def update(self, feedback: Sequence[Feedback]) -> None:
        super().update([dataclasses.replace(one, reward=1.0 - one.reward) for one in feedback])


class ForgetsOnRebuilding(LightPolicy):
    """Drops what it learned, and leaves it at that, but for the count."""

    def rebuild(self, history: Sequence[Feedback]) -> None:
        self._reset()
        self._rewards = float(len(history))
        super().update([])


class RebuildsOnTop(LightPolicy):
    """Learns the history on top of what it knows."""

    def rebuild(self, history: Sequence[Feedback]) -> None:
        if history:
            self._rewards = 0.0
            self.update(history)
        else:
            self._reset()


class LosesItsWindow(NeuralLinLogUCB):
    """Chooses as before once its state is loaded, but has forgotten from what it learned that."""

    def __init__(self) -> None:
        super().__init__(np.array([2.0, 0, 0, 0, 0]), refit="exact")

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(
            {**state, "window.pairs": np.zeros((0, 5), np.float32), "window.labels": np.zeros((0, 2))},
        )


class LoadsOnlyOnce(LightPolicy):
    """Ignores a state if it has learned anything."""

    def load_state_dict(self, state: State) -> None:
        if not self.rewards:
            super().load_state_dict(state)


class SavesNoWeights(LightPolicy):
    """Saves all but the weights of its ranking head."""

    def state_dict(self) -> dict[str, Floats]:
        state = super().state_dict()
        empty = LightPolicy(5).state_dict()
        return {name: empty[name] if name.startswith("head") else array for name, array in state.items()}


CAUGHT: dict[str, tuple[Callable[[], Policy], str]] = {
    "learns nothing": (lambda: LearnsNothing(5), "test_what_is_rewarded_is_chosen_first_more_often"),
    "learns the opposite": (LearnsTheOpposite, "test_what_is_rewarded_is_chosen_first_more_often"),
    "does not say that it learns nothing": (SimilarityPolicy, "test_what_is_rewarded_is_chosen_first_more_often"),
    "forgets on rebuilding": (lambda: ForgetsOnRebuilding(5), "test_rebuilding_learns_from_the_history_alone"),
    "rebuilds on top": (lambda: RebuildsOnTop(5), "test_rebuilding_learns_from_the_history_alone"),
    "loses its window": (LosesItsWindow, "test_a_state_replaces_what_was_learned_and_is_learned_on_from"),
    "loads only once": (lambda: LoadsOnlyOnce(5), "test_a_state_replaces_what_was_learned_and_is_learned_on_from"),
    "saves no weights": (lambda: SavesNoWeights(5), "test_a_state_that_travelled_chooses_alike"),
}


def contract_of(make: Callable[[], Policy], *, learns: bool = True) -> PolicyContract:
    contract = PolicyContract()
    contract.make = make
    contract.learns = learns
    return contract


@pytest.mark.parametrize("kind", CAUGHT)
def test_a_policy_that_learns_wrongly_is_caught(kind: str):
    make, test = CAUGHT[kind]
    with pytest.raises(AssertionError):
        getattr(contract_of(make), test)()


def test_whoever_says_that_it_learns_nothing_must_not_learn():
    contract = contract_of(lambda: LightPolicy(5), learns=False)
    with pytest.raises(AssertionError, match="rewards change its choices"):
        contract.test_what_is_rewarded_is_chosen_first_more_often()


class Spare(PolicyContract):
    """Asks for more than the contract does."""

    def firsts_after(self, rewarded: int) -> int:
        policy = self.make()
        self._taught(policy, rewarded)
        return self._firsts(policy).count(rewarded)


@pytest.mark.parametrize("hindsight", [True, False])
def test_what_learns_well_passes_with_room_to_spare(*, hindsight: bool):
    """So the bound of the contract is no matter of luck."""
    contract = Spare()
    contract.make = lambda: LightPolicy(5, hindsight=hindsight)
    assert min(contract.firsts_after(rewarded) for rewarded in (1, 2)) >= 57  # of 60

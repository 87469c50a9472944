"""The learning of the paper's Algorithm 1: the linear head learns after every reward, the encoder after every H rewards."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from cascade_memory.bandit.checked import checked_array
from cascade_memory.bandit.neural_linlogucb import WINDOW, NeuralLinLogUCB
from cascade_memory.ports.policy import Feedback, Floats, Slate, State

Ref: TypeAlias = tuple[int, int]  # which pair: (recall, case)
Lesson: TypeAlias = tuple[Ref, float, float]  # a pair, its label, its weight

_GREATEST_KEY = 2.0**53  # the largest key of a ledger row
_LESSONS = 1_024  # the most lessons that may wait for a training step of the encoder


class Trainee(Protocol):
    """A pair encoder that can be trained. It is immutable: training returns a new one."""

    def features(self, refs: Sequence[Ref]) -> Floats:
        """Encode each pair (the keys of a recall and a case) as one row; the row is nan if the pair has been forgotten."""
        ...

    def trained(self, lessons: Sequence[Lesson], theta: Floats, *, joint: bool) -> tuple[Trainee, Floats]:
        """Take one training step on the paper's loss (Eq. loss); return the new encoder and the head.

        A lesson is (pair, label, weight). ``theta`` is the head; it is trained too if ``joint``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How an encoder is trained.

    Args:
        every: H, the number of rewards between two training steps of the encoder; each step uses the pairs of these rewards.
        head: "kept": the encoder is trained with the present head, and that head stays. "reread": it is trained with the
            head as it was after the last step, and that head is put back. "joint": head and encoder are trained together,
            starting from the head of the last step; what the head learned in between (Eq. linear-grad) is dropped, as in the
            authors' code.
        reencode: How many pairs are encoded again after each step, at least the H newest; the others wait for their turn. None:
            all of the last 2,048, as in the paper.
        hindsight: How many further candidates per success the encoder is trained on, labelled by their agreement with the
            verified solution.
    """

    every: int = 32
    head: Literal["kept", "reread", "joint"] = "kept"
    reencode: int | None = 64
    hindsight: int = 0


class NeuralBandit:
    """A linear head on a trainable encoder. ``now`` holds the (encoder, policy) that belong together; read both at once."""

    def __init__(self, encoder: Trainee, policy: NeuralLinLogUCB, schedule: Schedule) -> None:
        self.now = (encoder, policy)
        self._schedule = schedule
        self._epoch: list[Lesson] = []  # since the last step of the encoder
        self._epoch_theta = policy.theta
        self._refs: deque[Ref] = deque(maxlen=WINDOW)  # the pairs in the policy's window, in the same order
        self._encoded: deque[int] = deque(maxlen=WINDOW)  # after how many training steps each of them was encoded last
        self._since = 0.0  # rewards since the encoder's last training step; an episode of several recalls counts once
        self.steps = 0  # training steps of the encoder so far

    def learn(self, outcome: Feedback, refs: Sequence[Ref], extra: Sequence[Lesson] = ()) -> bool:
        """Learn from an outcome, whose chosen pairs are ``refs``; return True if the encoder was trained.

        ``extra`` are lessons (pair, label, weight) from hindsight: only the encoder learns from them.
        """
        encoder, policy = self.now
        if not len(outcome.chosen) or not outcome.shown:
            return False
        features = encoder.features(refs)
        if not refs or np.isnan(features).any():
            policy.withdraw(outcome.key)
            return False  # one of the cases has been forgotten, so its features cannot be computed
        outcome = on_chosen_pairs(outcome, features)
        policy.observe(outcome)
        self._refs += refs
        self._encoded += [self.steps] * len(refs)
        self._epoch += [(refs[place], outcome.reward, outcome.weight) for place in policy.credited(outcome)]
        self._epoch += extra
        self._since += outcome.weight
        if self._since + 1e-6 < self._schedule.every:
            policy.step(outcome)
            policy.settle()
            return False
        self._since = 0.0  # reset even if training fails: then the next attempt, H rewards later, has these lessons too
        del self._epoch[:-_LESSONS]
        self._train(encoder, policy)
        return True

    def _train(self, encoder: Trainee, policy: NeuralLinLogUCB) -> None:
        theta = policy.theta if self._schedule.head == "kept" else self._epoch_theta
        encoder, theta = encoder.trained(self._epoch, theta, joint=self._schedule.head == "joint")
        self._epoch, self._epoch_theta = [], theta
        self.steps += 1
        places = self._due()
        try:
            features = encoder.features([self._refs[place] for place in places])
        except BaseException:  # the encoder is trained by now: keep it; the window keeps its old features until the next step
            self.now = (encoder, policy.renewed(theta, [], np.zeros((0, len(theta)))))
            raise
        known = ~np.isnan(features).any(axis=1)
        policy = policy.renewed(theta, np.asarray(places)[known].tolist(), features[known])
        policy.settle()
        self.now = (encoder, policy)
        for place in places:
            self._encoded[place] = self.steps

    def _due(self) -> list[int]:
        """Return the places in the window of the pairs to encode again: the newest, and of the others the longest waiting."""
        n, most = len(self._refs), self._schedule.reencode
        if most is None or n <= most:
            return list(range(n))
        newest = min(self._schedule.every, most)
        waiting = np.array(self._encoded)[: n - newest]
        longest = np.argsort(waiting, kind="stable")[: most - newest]
        return [*sorted(longest.tolist()), *range(n - newest, n)]

    def rebuild(self, policy: NeuralLinLogUCB, history: Sequence[tuple[Feedback, Sequence[Ref]]]) -> None:
        """Teach these outcomes to ``policy``, the new head; the encoder stays as it is, since it cannot unlearn."""
        encoder, _ = self.now
        fresh = NeuralBandit(encoder, policy, self._schedule)
        features = encoder.features([ref for _, refs in history for ref in refs])
        lessons: dict[Ref, float] = {}
        seen: list[Feedback] = []
        for outcome, refs in history:
            rows, features = features[: len(refs)], features[len(refs) :]
            if len(refs) and not np.isnan(rows).any():
                seen.append(on_chosen_pairs(outcome, rows))
                lessons.update(dict.fromkeys(refs, outcome.reward))
                fresh._refs += refs
                fresh._encoded += [self.steps] * len(refs)
        policy.update(seen)
        # The lessons that wait for the encoder's next step are kept, with the present labels.
        fresh._epoch = [(ref, lessons[ref], weight) for ref, _, weight in self._epoch if ref in lessons]
        fresh.steps, fresh._since = self.steps, self._since
        vars(self).update(vars(fresh))

    def state_dict(self) -> dict[str, Floats]:
        """Export everything learned except the encoder's weights."""
        refs = np.array(self._refs, np.float64).reshape(-1, 2)  # keys stay below 2^53
        epoch = np.array([[*ref, label, weight] for ref, label, weight in self._epoch], np.float64).reshape(-1, 4)
        encoded, counters = np.array(self._encoded, np.float64), np.array([self.steps, self._since], np.float64)
        arrays = {"refs": refs, "encoded": encoded, "epoch": epoch, "epoch_theta": self._epoch_theta, "counters": counters}
        return {**self.now[1].state_dict(), **{f"training.{name}": array for name, array in arrays.items()}}

    def load_state_dict(self, state: State) -> None:
        """Load what ``state_dict`` returned; the encoder must have its weights already."""
        policy = self.now[1]
        refs = checked_array(state, "training.refs", (None, 2), 0.0, _GREATEST_KEY)
        epoch = checked_array(state, "training.epoch", (None, 4), 0.0, _GREATEST_KEY)
        theta = checked_array(state, "training.epoch_theta", (len(policy.theta),))
        steps, since = checked_array(state, "training.counters", (2,), low=0.0).tolist()
        encoded = checked_array(state, "training.encoded", (len(refs),), 0.0, steps)  # a later step would never come
        if len(refs) != len(state["window.pairs"]) or not ((epoch[:, 2:] >= 0.0) & (epoch[:, 2:] <= 1.0)).all():
            raise ValueError("the pairs of the encoder do not match those of the policy's window")
        policy.load_state_dict(state)
        self._refs = deque(((int(recall), int(case)) for recall, case in refs), maxlen=WINDOW)
        self._encoded = deque(encoded.astype(int).tolist(), maxlen=WINDOW)
        self._epoch = [((int(recall), int(case)), float(label), float(weight)) for recall, case, label, weight in epoch]
        self._epoch_theta = theta
        self.steps, self._since = int(steps), since


def on_chosen_pairs(outcome: Feedback, features: Floats) -> Feedback:
    """Return an outcome reduced to its chosen candidates, with these features for them."""
    chosen, slate = outcome.chosen, outcome.slate
    return dataclasses.replace(
        outcome,
        slate=Slate(features=features, similarity=slate.similarity[chosen], groups=slate.groups[chosen]),
        chosen=np.arange(len(chosen)),
        agreement=None if outcome.agreement is None else outcome.agreement[chosen],
    )

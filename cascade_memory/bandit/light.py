"""The light ranker's policy: a ranking head for the order, case values for whether to show anything."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.case_value import CaseValue, contexts_of
from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.credit import Credit, credit_matched
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.linear_models import Posterior, softmax
from cascade_memory.bandit.ranking_head import RankingHead
from cascade_memory.bandit.records import Records, Standing
from cascade_memory.bandit.similarity import best_first
from cascade_memory.bandit.success_process import Fitted, Forecast, SuccessProcess
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State, Taught

COSINE_WEIGHT = 2.0  # of the standardised cosine before any reward: one standard deviation more is e^2 times as likely
BANDIT_WEIGHT = 0.25  # of a reward alone; hindsight weighs 1. A reward is noisier: it also depends on how hard the task was
# The context is [1, log odds of the chosen solutions, cosine, whether it is no more similar than unrelated texts are]. At first
# the log odds of the ranking are trusted as they are, and what may be unrelated is expected not to help, until outcomes differ.
CONTEXT_PRIOR = np.array([0.0, 1.0, 0.0, -16.0])
_OLD_CONTEXT = 3  # numbers of a context before there was a floor
_MISSING = 0.5  # largest share of features that a row may lack: if it lacks more, another encoder wrote it
_MAX_EXPECTED = 1024
*_, _SHIFT, _DOUBT = range(len(Standing._fields))
_RARE = 0.02  # share of outcomes below which a solution that recurs is an exception
_KNOWN_BARE = 8  # outcomes from which it is judged whether rewards are all that teaches
_MEMORY = 0.999  # discount, per success, in the estimate of how often solutions recur


@dataclass(frozen=True, slots=True)
class _Ready:
    """The state that ``select`` reads: it is replaced as a whole and never changed, so readers need no lock."""

    posterior: Posterior
    rewards: int
    version: int
    process: Fitted | None = None  # what bare rewards taught; None where hindsight teaches


class LightPolicy:
    """Conditional-logit ranking with hindsight, an upper confidence bonus, and the option to show nothing.

    The first feature must be the similarity: an untrained policy ranks by it. ``start`` gives other weights to begin with.

    >>> policy = LightPolicy(dimension=2)
    >>> slate = Slate(features=np.array([[1.0, 0.0], [-1.0, 0.0]]), similarity=np.array([0.9, 0.2]), groups=np.array([7, 8]))
    >>> policy.select(slate, k=1, abstain=False, seed=0).chosen
    array([0])
    """

    REFIT_EVERY = 8
    REFIT_UNTIL = 64  # with shared weights as the prior, the head is refitted after each of the first 64 outcomes

    def __init__(
        self,
        dimension: int,
        *,
        exploration: UpperConfidence | None = None,
        precision: float = 1.0,
        hindsight: bool = True,
        lean_on: Callable[[], Floats] | None = None,
        credit: Credit = credit_matched,
        start: Floats | None = None,
    ) -> None:
        prior = np.append(COSINE_WEIGHT, np.zeros(dimension - 1)) if start is None else np.array(start, np.float64)
        if prior.shape != (dimension,) or not np.isfinite(prior).all():
            raise ValueError(f"start must be {dimension} finite numbers, one for each signal; it has the shape {prior.shape}")
        self._prior, self._precision = prior, precision
        self._hindsight, self._credit = hindsight, credit
        self._lean_on = lean_on  # shared weights as the mean of the prior, instead of ``start``
        self.name = "light-1" if lean_on is None else "light-1-shared"
        self.exploration = exploration or UpperConfidence()
        self._publishing = threading.Lock()  # held for microseconds, never by ``select``
        self._reset()

    def _reset(self) -> None:
        self.head = RankingHead(self._leaning(), self._precision)
        self.value = CaseValue(CONTEXT_PRIOR)
        self.records = Records()
        self.process = SuccessProcess()
        self.expected: dict[int, Floats] = {}  # chosen pairs whose reward is still pending
        self._since_fit = 0
        self._rewards = 0.0
        self._version = 0
        # Outcomes with candidates; successes with a solution; those of them in which a candidate had the same solution.
        self._outcomes = self._verified = self._recurred = 0.0
        self._ready = _Ready(self.head.posterior, 0, 0)

    def _leaning(self) -> Floats:
        return self._prior if self._lean_on is None else np.array(self._lean_on())

    @property
    def version(self) -> int:
        """Number of times the order may have changed."""
        return self._ready.version

    @property
    def weights(self) -> Floats:
        """The present weights of the features."""
        return self._ready.posterior.mean

    @property
    def rewards(self) -> int:
        """Number of rewards learned from."""
        return self._ready.rewards

    def taught(self) -> Taught:
        """Describe what was learned so far."""
        ready = self._ready
        fitted = ready.process
        return Taught(
            by="hindsight" if fitted is None else "rewards",
            rewards=ready.rewards,
            start=self._leaning(),
            weights=ready.posterior.mean,
            trust=math.nan if fitted is None else fitted.trusted,
            families=() if fitted is None else fitted.family_sizes(),
            shows_unrelated=self.value.unrelated_help,
            paused=self.value.account.closed_for,
        )

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Choose the highest upper confidence bounds, at most k; abstain if a case is expected to do worse than none."""
        ready = self._ready
        features = np.asarray(slate.features, np.float64)
        value = features @ ready.posterior.mean
        uncertainty = ready.posterior.uncertainty(features - features.mean(axis=0))
        bonus = self.exploration.bonus(uncertainty, ready.rewards)
        learned = None if ready.process is None else ready.process.predict(slate)
        chosen, standing = self._best(slate, value + bonus, k, learned)
        value = value if standing is None else value + standing[:, _SHIFT]
        doubt = None if standing is None else standing[:, _DOUBT]
        if abstain and len(chosen) > 1:
            chosen = self.value.without_unrelated(slate, value, doubt, chosen)
            chosen = chosen[: self.value.how_many(len(chosen), np.random.default_rng([seed, 2]))]
        predicted, context = self.value.predict_for(slate, value, doubt, chosen)
        shown = not abstain or self.value.worth_showing(context, np.random.default_rng(seed))
        propensity = np.zeros(len(value))
        propensity[chosen] = float(shown)
        return Choice(
            chosen=chosen,
            value=value,
            uncertainty=uncertainty,
            score=value + bonus,
            utility=predicted.utility,
            propensity=propensity,
            baseline=predicted.baseline,
            abstained=not shown,
            context=context,
            version=ready.version,
            contributions=features * ready.posterior.mean,
            standing=standing,
            ease=0.0 if learned is None else learned.ease,
            trust=math.nan if ready.process is None else ready.process.trusted,
            paused=self.value.account.closed_for if abstain else 0,
        )

    def _best(self, slate: Slate, score: Floats, k: int, learned: Forecast | None) -> tuple[NDArray[np.int64], Floats | None]:
        """Return the k best candidates, and a ``records.Standing`` for each candidate, as rows; None if nothing is known.

        Looking up a record costs time, so only the records of candidates that are about to be chosen are looked up.
        """
        groups: list[int] = slate.groups.tolist()
        table = None if learned is None else np.column_stack([*learned[:3], np.zeros(len(score))])
        looked_up: set[int] = set()
        shifted = score if table is None else score + table[:, _SHIFT]
        while True:
            chosen = best_first(slate, shifted)[:k]
            new = {groups[place] for place in chosen.tolist()} - looked_up
            looked_up |= new
            found = self.records.known(new, slate)
            if not found:
                return chosen, table
            table = np.zeros((len(score), len(Standing._fields))) if table is None else table
            for group, standing in found.items():
                same = slate.groups == group
                if learned is None:
                    table[same] = standing
                else:
                    table[same, _SHIFT] += standing.doubt
                    table[same, _DOUBT] = standing.doubt
            if not any(standing.doubt for standing in found.values()):
                return chosen, table  # no record pushes a candidate back, so the order stays
            shifted = score + table[:, _SHIFT]

    def chance_of_showing(self, choice: Choice, *, seed: int) -> float:
        """Estimate the probability that this choice is shown, since showing is decided by a random draw."""
        return self.value.chance_worth_showing(choice.context, np.random.default_rng(seed))

    def context_of(self, slate: Slate, choice: Choice, chosen: NDArray[np.int64]) -> Floats:
        """Compute the context of showing these candidates, which is stored with the recall; see ``case_value.contexts_of``."""
        return contexts_of(slate, choice.value, None if choice.standing is None else choice.standing[:, _DOUBT], chosen)[1]

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Narrow the uncertainty about the chosen pair now, so that a hundred open episodes do not all explore it."""
        if choice.abstained:
            return
        features = np.asarray(slate.features, np.float64)
        share = softmax(choice.value)[choice.chosen[0]]
        pair = (features[choice.chosen[0]] - features.mean(axis=0)) * np.sqrt(share * (1 - share))
        with self._publishing:
            posterior = self._ready.posterior.observe(pair)
            self.expected[key] = pair
            if len(self.expected) > _MAX_EXPECTED:  # the oldest will probably never be rewarded
                posterior = posterior.withdraw(self.expected.pop(next(iter(self.expected))))
            self._publish(posterior)

    def withdraw(self, key: int) -> None:
        """Undo ``expect`` for a recall that will get no reward."""
        with self._publishing:
            pair = self.expected.pop(key, None)
            if pair is not None:
                self._publish(self._ready.posterior.withdraw(pair))

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes, one after the other."""
        for outcome in feedback:
            self._learn(outcome)
            self._since_fit += 1
            early = self._rewards < self.REFIT_UNTIL and (self._lean_on is not None or self._bare)
            if early or self._since_fit >= self.REFIT_EVERY:
                self._refit()
        with self._publishing:
            self._publish(self._ready.posterior)

    def _learn(self, outcome: Feedback) -> None:
        with self._publishing:
            self.expected.pop(outcome.key, None)
        weight = outcome.weight  # the recalls of one episode share its weight, so an episode counts once
        if not len(outcome.slate.groups):
            self._rewards += weight / outcome.trust
            if not outcome.shown:  # else what was shown has been forgotten, so this says nothing about doing without a case
                self.value.observe(None, shown=False, reward=outcome.reward, fitted=None, weight=weight)
            return
        features = self._logged(outcome)
        if features is None:
            return
        self._rewards += weight / outcome.trust
        self._outcomes = _MEMORY * self._outcomes + 1.0
        agreement = self._known_agreement(outcome)
        if not len(outcome.chosen):
            self._learn_without_chosen(outcome, features, agreement)
            return
        fitted = None if agreement is None else float(agreement[outcome.chosen].max())
        trust = self._note_records(outcome, agreement) if outcome.shown else 1.0
        shown, count, weighs = outcome.shown, len(outcome.chosen), weight * trust
        self.value.observe(outcome.context, shown=shown, reward=outcome.reward, fitted=fitted, weight=weighs, count=count)
        if agreement is not None:
            self.head.add_hindsight(features, agreement, weight)
        if outcome.shown and (agreement is None or not agreement.any()):
            self._learn_from_reward(outcome, features, blames=agreement is None)

    def _learn_from_reward(self, outcome: Feedback, features: Floats, *, blames: bool) -> None:
        """Learn from the reward of the shown cases, without hindsight; the ranking head learns from it only if ``blames``."""
        start, together = self._leaning(), outcome.weight / len(outcome.chosen)
        for place in outcome.chosen.tolist():  # it is unknown which of the shown cases the agent followed
            self.process.note(outcome.slate, features, place, outcome.reward, together, start)
        for place in self._credit(outcome).tolist():
            group, weight = int(outcome.slate.groups[place]), BANDIT_WEIGHT * outcome.weight
            share = math.exp(self.records.of(group, outcome.slate).doubt)
            if blames:
                self.head.add_bandit(features[place], outcome.reward, weight, group)
            if share < 1.0:
                self.head.doubt(group, weight * share)
                self.process.doubt(group, share)
        if outcome.descent is not None:
            self.process.descends(*outcome.descent)

    def _note_records(self, outcome: Feedback, agreement: Floats | None) -> float:
        """Add an outcome to the records of the shown solutions; return how much the shared weights should trust it (0 to 1).

        The worse a record was before this outcome, the more the outcome is blamed on that solution alone. (The record *before*
        the outcome decides: a weight that depended on the outcome itself would count failures less than successes.)
        """
        slate, trust = outcome.slate, 1.0
        credited = set(self._credit(outcome).tolist())
        unfitting, fitting = self.value.rates
        for place in outcome.chosen.tolist():
            group, share = int(slate.groups[place]), 1.0
            if place in credited:
                trust = min(trust, math.exp(self.records.of(group, slate).doubt))
            else:
                share = 1.0 / len(outcome.chosen)  # it is unknown which of the shown cases the agent followed
            # If the verified solution is another candidate's, this one gets no credit for the success.
            # If no candidate has the verified solution, agreement says nothing, and the reward counts in full.
            fitted = 1.0 if agreement is None or not agreement.any() else float(agreement[place])
            rates = (unfitting, unfitting + share * max(fitting - unfitting, 0.0))
            self.records.note(group, slate, reward=outcome.reward * fitted, rates=rates, weight=outcome.trust)
        return trust

    def _logged(self, outcome: Feedback) -> Floats | None:
        """Return the features that were logged with an outcome; None if this policy cannot learn from them.

        That is so if another kind of policy, or the fallback, made the choice, or if a number is impossibly large. New features
        are only ever added at the end. A feature that an earlier version did not have yet is filled with 0.
        """
        features = np.asarray(outcome.slate.features, np.float64)
        missing = len(self._prior) - features.shape[1]
        if not 0 <= missing <= _MISSING * len(self._prior) or len(outcome.context) not in (_OLD_CONTEXT, len(CONTEXT_PRIOR)):
            return None
        if not (np.abs(features) <= USUAL).all() or not (np.abs(outcome.context) <= USUAL).all():
            return None  # somebody tampered with this row: such numbers would outweigh everything else
        return np.pad(features, ((0, 0), (0, missing))) if missing else features

    def _learn_without_chosen(self, outcome: Feedback, features: Floats, agreement: Floats | None) -> None:
        """Learn from an outcome whose chosen case has been forgotten: only hindsight, or an abstention, still teaches."""
        if not outcome.shown:
            self.value.observe(None, shown=False, reward=outcome.reward, fitted=None, weight=outcome.weight)
        if agreement is not None:
            self.head.add_hindsight(features, agreement, outcome.weight)

    def _known_agreement(self, outcome: Feedback) -> Floats | None:
        """Return the hindsight labels if they can be relied on, otherwise None.

        Where solutions hardly ever recur (free text, long trajectories), two solutions may differ and both be right. Then a
        recall in which no candidate agrees says nothing.
        """
        if not self._hindsight or outcome.agreement is None:
            return None
        agrees = bool(np.nansum(outcome.agreement) > 0.0)
        self._verified = _MEMORY * self._verified + 1.0
        self._recurred = _MEMORY * self._recurred + float(agrees)
        known = not bool(np.isnan(outcome.agreement).any())
        return outcome.agreement if known and (agrees or (self._recurring and not self._bare)) else None

    @property
    def _recurring(self) -> bool:
        """Whether verified solutions are found among the candidates now and then; also true while it is too early to know."""
        return self._verified < 32 or self._recurred >= _RARE * self._verified

    @property
    def _bare(self) -> bool:
        """Whether the policy must learn from rewards alone, because solutions are not given or hardly ever recur."""
        return self._outcomes >= _KNOWN_BARE and self._recurred < _RARE * self._outcomes

    def _refit(self) -> None:
        self._since_fit = 0
        if self._bare:
            self.process.fit()
        else:
            self.process.fitted = None
            self.head.lean_on(self._leaning())
            self.head.fit(rates=self.value.rates)
        self._version += 1
        with self._publishing:
            posterior = self._posterior()
            for pair in self.expected.values():
                posterior = posterior.observe(pair)
            self._publish(posterior)

    def _posterior(self) -> Posterior:
        """Return the belief about the weights: that of ``process`` where only rewards teach, otherwise the ranking head's."""
        fitted = self.process.fitted
        return self.head.posterior if fitted is None else Posterior(self._leaning() + fitted.weights, fitted.precision)

    def _publish(self, posterior: Posterior) -> None:
        self._ready = _Ready(posterior, round(self._rewards), self._version, self.process.fitted)

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop everything learned, and learn again from these outcomes."""
        self._reset()
        self.update(history)

    def state_dict(self) -> dict[str, Floats]:
        """Export everything learned as named arrays."""
        numbers = [self._rewards, self._version, self._since_fit, self._outcomes, self._verified, self._recurred]
        counters = np.array([*numbers, self.process.fitted is not None], np.float64)
        head = {f"head.{key}": array for key, array in self.head.state().items()}
        value = {f"value.{key}": array for key, array in self.value.state().items()}
        records = {f"records.{key}": array for key, array in self.records.state().items()}
        process = {f"process.{key}": array for key, array in self.process.state().items()}
        return {"counters": counters, **head, **value, **records, **process}

    def load_state_dict(self, state: State) -> None:
        """Load what ``state_dict`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        rewards, version, since_fit, outcomes, verified, recurred, bare = checked_array(state, "counters", (7,), low=0.0)
        head, value = RankingHead(self._leaning(), self._precision), CaseValue(CONTEXT_PRIOR)
        head.load({key[5:]: array for key, array in state.items() if key.startswith("head.")})
        value.load({key[6:]: array for key, array in state.items() if key.startswith("value.")})
        records = Records()
        records.load({key[8:]: array for key, array in state.items() if key.startswith("records.")})
        process = SuccessProcess()
        process.load({key[8:]: array for key, array in state.items() if key.startswith("process.")}, len(self._prior))
        if bare:
            process.fit_again()
        self._reset()
        self.head, self.value, self.records, self.process = head, value, records, process
        self._rewards, self._version, self._since_fit = float(rewards), int(version), int(since_fit)
        self._outcomes, self._verified, self._recurred = float(outcomes), float(verified), float(recurred)
        self._publish(self._posterior())

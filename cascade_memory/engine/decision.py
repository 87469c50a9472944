"""Decides which cases a recall shows; builds the row for the ledger and the ``Recall`` for the caller."""

from __future__ import annotations

import functools
import math
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.chat_turns import turns
from cascade_memory.cycle.recall import Recalled, recall, without
from cascade_memory.cycle.select import Exposure, Selection, select
from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.cost import Spent
from cascade_memory.domain.episode import id_taken
from cascade_memory.domain.recall import Recall, RecalledCase
from cascade_memory.domain.records import Column, Opinion, RecallRecord
from cascade_memory.encoders.one_feature import CosineEncoder
from cascade_memory.engine.embedding import Floor
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.part import EnginePart, Masked
from cascade_memory.engine.parts import Parts
from cascade_memory.engine.request import RecallRequest
from cascade_memory.errors import EpisodeClosed
from cascade_memory.ports.encoders import FindsFurther, PairEncoder, Query
from cascade_memory.ports.policy import Choice, Slate

if TYPE_CHECKING:
    from cascade_memory.domain.explanation import Candidate, Explanation, HeldBack

_PLAIN = CosineEncoder()  # a search needs no more
_SEARCH = Exposure(abstain=False)
_NOTHING = np.zeros(0, np.float32)
_FURTHER = 4  # one candidate in four may be one that the encoder finds, not one of the nearest
_WIDER = 8  # times as many cases are looked at where some of the nearest may not be shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The choice of one recall, the row that records it, and what the caller gets."""

    selection: Selection
    row: RecallRecord
    recall: Recall


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chosen:
    """What was found and chosen for a request, and how: the row and the ``Recall`` are built from it."""

    request: RecallRequest
    query: Query
    namespace_id: int
    episode_id: str
    arm: str
    recalled: Recalled
    selection: Selection
    policy: str
    rewards: int
    encoder: str
    at: float
    opinion: Opinion | None
    held: tuple[HeldBack, ...] = ()

    @property
    def shows(self) -> bool:
        """True if the agent gets to see the chosen cases."""
        choice = self.selection.choice
        return self.arm == "live" and choice is not None and not choice.abstained


class Decider:
    """Finds candidates in a namespace and lets its policy choose; the shadow, if there is one, records its own choice.

    ``masking`` are the parts of capabilities that may hold candidates back. ``note_failure`` is called with "rank" and the
    error if the ranker failed and similarity chose instead.
    """

    def __init__(
        self,
        parts: Parts,
        candidates: int,
        floor: Floor,
        masking: Sequence[EnginePart],
        note_failure: Callable[[str, Exception], object],
    ) -> None:
        self._parts, self._candidates, self._floor = parts, candidates, floor
        self._masking, self._note_failure = masking, note_failure

    def decide(self, request: RecallRequest, query: Query, state: NamespaceState, spent: Spent) -> Decision:
        """Find candidates, choose among them, and look up the cases that are shown."""
        chosen = self._choose(request, query, state, spent)
        if chosen.selection.failure is not None:
            self._note_failure("rank", chosen.selection.failure)
        began = time.perf_counter()
        cases = self._shown(chosen)
        spent.search += time.perf_counter() - began
        found = self._view(chosen, cases, spent)
        row = _row(chosen, found.id, with_features=self._parts.ranker.writes_features)
        return Decision(selection=chosen.selection, row=row, recall=found)

    # -- the choice --------------------------------------------------------------------------------------------------

    def _choose(self, request: RecallRequest, query: Query, state: NamespaceState, spent: Spent) -> _Chosen:
        """Find candidates, then choose; a search chooses by similarity alone."""
        began = time.perf_counter()
        episode_id = request.episode_id or str(uuid.uuid4())
        arm = "live" if request.search else self._arm(request, episode_id)
        exposure = _SEARCH if request.search else request.exposure
        with calculating():
            encoder, learned = state.learner.now
            recalled, held = self._found(request, query, state, episode_id, encoder)
            found = time.perf_counter()
            spent.search = found - began
            policy = self._parts.fallback if request.search else learned
            seed = state.seed()
            selection = select(
                query,
                recalled.candidates,
                recalled.similarity,
                encoder=_PLAIN if request.search else encoder,
                policy=policy,
                fallback=self._parts.fallback,
                k=request.k,
                exposure=exposure,
                seed=seed,
                floors=None if request.search else self._floor.under(query, recalled.candidates, cases=state.index.count),
            )
            opinion = None
            if state.shadow is not None and not request.search:
                choice = selection.choice
                opinion = state.shadow.opinion(query, recalled, choice, request.k, abstain=exposure.abstain, seed=seed)
            spent.rank = time.perf_counter() - found
        return _Chosen(
            request=request,
            query=query,
            namespace_id=state.namespace_id,
            episode_id=episode_id,
            arm=arm,
            recalled=recalled,
            selection=selection,
            policy=policy.name,
            rewards=policy.rewards,
            encoder=state.learner.identity,
            at=time.time(),
            opinion=opinion,
            held=held,
        )

    def _found(
        self, request: RecallRequest, query: Query, state: NamespaceState, episode_id: str, encoder: PairEncoder
    ) -> tuple[Recalled, tuple[HeldBack, ...]]:
        """Find the cases that may be shown; return them, and a description of those that are held back.

        They are the nearest ones, and some that the encoder finds.
        """
        size, limits = max(self._candidates, request.k), state.limits
        finds: FindsFurther | None = getattr(encoder, "further", None) if not request.search else None
        find = functools.partial(
            recall,
            query,
            index=state.index,
            ledger=self._parts.ledger,
            among=self._among(state, request, None if request.search else size),
            verified_after=0.0 if limits is None or limits.ttl is None else time.time() - limits.ttl,
            min_trust=request.min_trust,
            namespace=state.namespace_id,
            further=None if finds is None else finds(query, size // _FURTHER),
            metadata=None if request.search else {**request.expected, **request.metadata},
        )
        told: tuple[HeldBack, ...] = ()
        wanted, who = size, (request.actor, None if request.search else episode_id)
        while True:
            recalled = find(size=wanted)
            masked = [one for part in self._masking if (one := part.mask(state, recalled, *who)) is not None]
            if not masked:
                return recalled, told
            told = told or _told(recalled, masked)
            if wanted > size or len(recalled.ids) < size:  # it has looked further already, or there are no more cases
                return without(recalled, np.logical_or.reduce([one.held for one in masked]), size), told
            wanted = _WIDER * size

    def _arm(self, request: RecallRequest, episode_id: str) -> str:
        """Return the arm of an existing or new episode; raise if the episode is closed or belongs to another namespace."""
        episode = None if request.episode_id is None else self._parts.ledger.episodes.one(episode_id)
        if episode is None:
            return request.exposure.arm_of(episode_id)
        if episode.namespace != request.namespace:
            raise id_taken(episode_id)
        if episode.status != "open":
            raise EpisodeClosed(f"episode {episode_id!r} is {episode.status}; open another one to recall again")
        return episode.arm

    def _among(self, state: NamespaceState, request: RecallRequest, newest: int | None) -> NDArray[np.int64] | None:
        """Return the keys of the cases to choose from; None stands for all cases.

        If the ranker chooses among the newest cases, only the ``newest`` ones are returned.
        """
        ledger, where = self._parts.ledger, request.where
        among = None if where is None else ledger.filtered(state.namespace_id, where)
        if self._parts.ranker.newest and newest is not None:
            if request.min_trust:
                trusted = ledger.trusted(state.namespace_id, request.min_trust)
                among = trusted if among is None else np.intersect1d(among, trusted, assume_unique=True)
            return ledger.newest(state.namespace_id, newest) if among is None else among[-newest:]
        return among

    # -- what the caller gets ----------------------------------------------------------------------------------------

    def _view(self, chosen: _Chosen, cases: tuple[RecalledCase, ...], spent: Spent) -> Recall:
        request, choice, features = chosen.request, chosen.selection.choice, self._parts.ranker.features
        return Recall(
            id=str(uuid.uuid4()),
            episode_id=chosen.episode_id,
            namespace=request.namespace,
            query=request.query,
            cases=cases,
            abstained=choice is not None and choice.abstained and chosen.arm == "live",
            arm=chosen.arm,
            template=request.template,
            as_turns=turns,
            explainer=lambda: _explanation(chosen, features),  # it must not keep the parts of a closed memory alive
            memory=None if request.search else request.memory,
            spent=spent,
            at=chosen.at,
        )

    def _shown(self, chosen: _Chosen) -> tuple[RecalledCase, ...]:
        choice, slate = chosen.selection.choice, chosen.selection.slate
        if choice is None or not chosen.shows:
            return ()
        keys = [int(key) for key in chosen.recalled.candidates.keys[choice.chosen]]
        stored = self._parts.ledger.cases.by_key(keys)
        return tuple(
            RecalledCase(
                id=case.id,
                query=case.query,
                solution=case.solution,
                metadata=case.metadata,
                similarity=float(slate.similarity[i]),
                utility=float(choice.utility[i]),
                uncertainty=float(choice.uncertainty[i]),
                score=float(choice.score[i]),
                trust=case.trust,
                propensity=float(choice.propensity[i]),
            )
            for i, key in zip(choice.chosen.tolist(), keys, strict=True)
            if (case := stored.get(key)) is not None  # if it is None, another process has just forgotten the case
        )


def _told(recalled: Recalled, masked: Sequence[Masked]) -> tuple[HeldBack, ...]:
    """Describe the candidates that are held back, each by the first capability that does so."""
    from cascade_memory.domain.explanation import HeldBack

    why = {place: one.why for one in reversed(masked) for place in np.flatnonzero(one.held).tolist()}
    return tuple(
        HeldBack(
            id=recalled.ids[place],
            actor=recalled.authors[place] if recalled.authors else None,
            similarity=float(recalled.similarity[place]),
            why=why[place](place),
        )
        for place in sorted(why)
    )


def _row(chosen: _Chosen, recall_id: str, *, with_features: bool) -> RecallRecord:
    """Build the ledger row: for a recall, all that learning needs; for a search, only what was shown."""
    request, slate, choice = chosen.request, chosen.selection.slate, chosen.selection.choice
    shown = np.zeros(0, np.int64) if choice is None else choice.chosen
    kept = shown if request.search else slice(None)
    return RecallRecord(
        id=recall_id,
        episode_id=None if request.search else chosen.episode_id,
        namespace=chosen.namespace_id,
        query=request.query,
        vector=chosen.query.vector,
        kind="search" if request.search else "recall",
        k=request.k,
        at=chosen.at,
        policy=chosen.policy,
        policy_version=0 if choice is None else choice.version,
        encoder=chosen.encoder,
        candidates=chosen.recalled.candidates.keys[kept],
        groups=slate.groups[kept],
        features=_NOTHING if request.search or not with_features else np.asarray(slate.features, np.float32),
        numbers=_NOTHING if choice is None else _numbers(slate, choice)[kept],
        chosen=np.arange(len(shown)) if request.search else shown,
        shown=chosen.shows,
        baseline=math.nan if choice is None else choice.baseline,
        context=_NOTHING if request.search or choice is None else np.asarray(choice.context, np.float32),
        arm=chosen.arm,
        holdout=request.exposure.holdout,
        thread=request.thread_id,
        shadow=chosen.opinion,
        metadata=request.metadata,
        opens_episode=request.episode_id is None,
        actor=request.actor,
        channel=request.channel,
        beside=request.beside,
    )


def _numbers(slate: Slate, choice: Choice) -> NDArray[np.float32]:
    numbers = np.empty((len(slate.similarity), len(Column)), np.float32)
    numbers[:, Column.SIMILARITY] = slate.similarity
    numbers[:, Column.VALUE] = choice.value
    numbers[:, Column.UNCERTAINTY] = choice.uncertainty
    numbers[:, Column.SCORE] = choice.score
    numbers[:, Column.UTILITY] = choice.utility
    numbers[:, Column.PROPENSITY] = choice.propensity
    return numbers


def _explanation(chosen: _Chosen, features: tuple[str, ...]) -> Explanation:
    from cascade_memory.domain.explanation import Explanation  # few recalls are explained

    choice = chosen.selection.choice
    return Explanation(
        candidates=_candidates(chosen),
        abstained=choice is not None and choice.abstained,
        baseline=math.nan if choice is None else choice.baseline,
        rewards=chosen.rewards,
        policy=chosen.policy,
        feature_names=(*features, "record"),
        arm=chosen.arm,
        ease=0.0 if choice is None else choice.ease,
        trust=math.nan if choice is None else choice.trust,
        paused=0 if choice is None else choice.paused,
        held=chosen.held,
    )


def _candidates(chosen: _Chosen) -> tuple[Candidate, ...]:
    from cascade_memory.domain.explanation import Candidate

    choice, slate = chosen.selection.choice, chosen.selection.slate
    if choice is None:
        return ()
    best = {int(i) for i in choice.chosen}
    floors = np.full(len(slate), -1.0) if slate.floors is None else slate.floors
    columns = (slate.similarity, floors, choice.value, choice.uncertainty, choice.score, choice.utility)
    standing = np.zeros((len(slate), 3)) if choice.standing is None else choice.standing[:, :3]
    parts = (
        np.zeros((len(slate), 0)) if choice.contributions is None else np.column_stack([choice.contributions, standing[:, 2]])
    )
    rows = zip(*(column.tolist() for column in (*columns, *standing.T)), parts.tolist(), strict=True)
    return tuple(
        Candidate(
            id=chosen.recalled.ids[i],
            query=chosen.recalled.candidates.texts[i],
            similarity=similarity,
            floor=floor,
            value=value,
            uncertainty=uncertainty,
            score=score,
            utility=utility,
            chosen=i in best,
            contributions=tuple(contributions),
            tried=tried,
            succeeded=succeeded,
            record=record,
        )
        for i, (similarity, floor, value, uncertainty, score, utility, tried, succeeded, record, contributions) in enumerate(
            rows
        )
    )

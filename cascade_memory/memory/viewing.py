"""Looking at a memory as people do: a page at a time, with the decisions and outcomes behind what they see."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import AuditEntry
from cascade_memory.domain.case import Case
from cascade_memory.domain.episode import Episode, Status, check_source, check_status
from cascade_memory.domain.records import Column
from cascade_memory.domain.validation import check_k, check_text, check_word
from cascade_memory.domain.viewed import (
    CaseOrder,
    JudgedEpisode,
    Neighbour,
    Page,
    PastOutcome,
    RecordedCandidate,
    RecordedRecall,
    Sort,
    State,
)
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.measuring import prediction
from cascade_memory.memory.episodes import EpisodeVerbs
from cascade_memory.memory.paging import page_of, place_after, place_of
from cascade_memory.ports.ledger_viewing import StoredRecall
from cascade_memory.ports.policy import SaysWhatItLearned

_WORDS, _LETTERS = 16, 200  # that a search may have
_LOOKED_AT, _AT_ONCE, _ENOUGH = 2_000, 250, 10  # recalls that shown_in searches, and the episodes that it looks for


class Viewing(EpisodeVerbs):
    """The verbs behind the inspector's pages. They change nothing."""

    def page_of_cases(
        self,
        *,
        search: str = "",
        sort: Sort = "newest",
        source: str | None = None,
        where: Mapping[str, Any] | None = None,
        state: State | None = None,
        after: str | None = None,
        limit: int = 50,
        order: CaseOrder | None = None,
    ) -> Page[Case]:
        """Return a page of cases, and where the next one begins.

        Args:
            search: Words that must all occur in the task or in the beginning of the solution (or the id of a case).
            sort: "newest", "oldest", "shown" (most often first), "successes" (the sum of the rewards when it was shown), or
                "use" (how new a case was when it was stored, times how often it was right: what eviction goes by, too).
            source: Only cases that this source has verified first.
            where: A metadata filter, with Chroma's operators.
            state: "pinned" or "hidden": only such cases.
            after: The ``after`` of the page before.
            limit: The greatest number of cases on the page.
            order: What ``order_of_cases`` returned a moment ago, so that all cases need not be read and sorted for each page;
                used where there is no other filter.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge"), ("heat some egg", "microwave"), ("heat some mug", "microwave")])
        >>> first = memory.page_of_cases(search="HEAT", limit=1)
        >>> [case.query for case in first.items]
        ['heat some mug']
        >>> [case.query for case in memory.page_of_cases(search="HEAT", limit=1, after=first.after).items]
        ['heat some egg']
        """
        state = None if state is None else cast("State", check_word(state, get_args(State), "state"))
        sort = _check_sort(sort)
        ledger, namespace_id = self._open().parts.ledger, self._namespace_id()
        limit, start = check_k(limit, "limit"), None if after is None else place_of(after)
        search = check_text(search, "search", 2 * _WORDS * _LETTERS, allow_empty=True)
        words = _words(search)
        if words and start is None and (named := ledger.cases.by_id([search.strip()], namespace_id)):
            return Page(items=tuple(named), after=None)
        source = None if source is None else check_source(source)
        if order is not None and not words and source is None and where is None and state is None:
            pairs = order.following(start, limit + 1)
        else:
            pairs = ledger.viewing.cases(
                namespace_id, limit + 1, sort=sort, after=start, words=words, source=source, where=where, state=state
            )
        found = ledger.cases.by_key([key for _, key in pairs[:limit]])
        items = tuple(found[key] for _, key in pairs[:limit] if key in found)
        return Page(items=items, after=place_after(pairs[limit - 1]) if len(pairs) > limit else None)

    def order_of_cases(self, sort: Sort) -> CaseOrder:
        """Return all cases in an order by their use, for ``page_of_cases(order=...)``: it reads a few numbers of each case."""
        sort = _check_sort(sort)
        return CaseOrder.of(self._open().parts.ledger.viewing.use(self._namespace_id()), sort)

    def page_of_episodes(
        self,
        *,
        status: Status | None = None,
        source: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page[Episode]:
        """Return a page of episodes, newest first, and where the next one begins; the filters are those of ``episodes``."""
        wanted = None if status is None else check_status(status)
        limit = check_k(limit, "limit")
        found = self._caught_up().parts.ledger.episodes.page(
            self._namespace_id(),
            limit + 1,
            after=None if after is None else place_of(after)[1],
            newest_first=True,
            status=wanted,
            source=None if source is None else check_source(source),
        )
        return page_of(found, limit)

    def page_of_audit(self, *, after: str | None = None, limit: int = 50) -> Page[AuditEntry]:
        """Return a page of the audit log, newest first, and where the next one begins."""
        limit, start = check_k(limit, "limit"), None if after is None else place_of(after)[1]
        found = self._open().parts.ledger.actions.page(self._namespace_id(), limit + 1, after=start, newest_first=True)
        return page_of(found, limit)

    def decisions(self, episode_id: str) -> list[RecordedRecall]:
        """Return how the recalls of an episode chose, oldest first: what ``recall.explain()`` shows, from any process.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.add("cool some mug", "put it into the fridge")
        >>> (decision,) = memory.decisions(memory.recall("cool a mug").episode_id)
        >>> [(one.query, one.chosen, one.propensity) for one in decision.candidates]
        [('cool some mug', True, 1.0)]
        """
        episode, engine = self._known(episode_id), self._open()
        weights, names = self._weights(episode.namespace), engine.parts.ranker.features
        return [self._decision(one, names, weights) for one in engine.parts.ledger.viewing.recalls(episode.id)]

    def _decision(self, one: StoredRecall, names: Sequence[str], weights: NDArray[np.floating[Any]] | None) -> RecordedRecall:
        rows = self._open().parts.ledger.viewing.named(one.candidates.tolist())
        width = one.features.shape[1]
        # A newer version may have more signals at the end; those of another ranker have no names.
        labels = tuple(names[:width]) if len(names) >= width else tuple(f"signal {place + 1}" for place in range(width))
        known = weights is not None and len(weights) >= width > 0
        adds = one.features * weights[:width] if known and weights is not None else one.features[:, :0]
        chosen = set(one.chosen.tolist())
        candidates: list[RecordedCandidate] = []
        for place, key in enumerate(one.candidates.tolist()):
            row, numbers = rows.get(key), one.numbers[place].tolist()
            candidates.append(
                RecordedCandidate(
                    id=None if row is None else row[0],
                    query=None if row is None else row[1],
                    similarity=numbers[Column.SIMILARITY],
                    value=numbers[Column.VALUE],
                    uncertainty=numbers[Column.UNCERTAINTY],
                    score=numbers[Column.SCORE],
                    utility=numbers[Column.UTILITY],
                    propensity=numbers[Column.PROPENSITY],
                    chosen=place in chosen,
                    signals=tuple(one.features[place].tolist()),
                    contributions=tuple(adds[place].tolist()),
                )
            )
        candidates.sort(key=lambda found: (not found.chosen, -found.score if not math.isnan(found.score) else math.inf))
        return RecordedRecall(
            at=one.at,
            query=one.query,
            k=one.k,
            policy=one.policy,
            version=one.version,
            shown=one.shown,
            baseline=one.baseline,
            forgot=one.forgot,
            whole=width > 0 or not len(one.candidates),
            signals=labels,
            candidates=tuple(candidates),
        )

    def _weights(self, namespace: str) -> NDArray[np.floating[Any]] | None:
        """Return the weights of the signals today, if the namespace is loaded and its ranker can say."""
        state = self._open().loaded_state(namespace)
        if state is None or not isinstance(state.policy, SaysWhatItLearned):
            return None
        return np.asarray(state.policy.taught().weights)

    def outcomes(self, *, episode_id: str | None = None, case_id: str | None = None) -> list[PastOutcome]:
        """Return all outcomes of an episode, or those that verified a case: oldest first, also those that were replaced.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> episode_id = memory.recall("cool some mug").episode_id
        >>> case_id = memory.reward(episode_id, 1.0, solution="put it into the freezer")
        >>> memory.reward(episode_id, 0.0, source="human", overwrite=True)
        >>> [(one.value, one.source, one.withdrawn_at is None) for one in memory.outcomes(episode_id=episode_id)]
        [(1.0, 'host', False), (0.0, 'human', True)]
        """
        if (episode_id is None) == (case_id is None):
            raise InvalidInput("outcomes needs episode_id= or case_id=, and not both")
        viewing = self._open().parts.ledger.viewing
        if episode_id is not None:
            return viewing.outcomes(self._known(episode_id).id)
        return viewing.verifications(self.get(cast("str", case_id)).key)

    def shown_in(self, case_id: str, *, after: str | None = None) -> Page[Episode]:
        """Return episodes in which a case was shown, newest first; a page searches up to 2,000 recalls."""
        case = self.get(case_id)
        viewing, namespace_id = self._caught_up().parts.ledger.viewing, self._namespace_id()
        before = None if after is None else place_of(after)[1]
        found: dict[str, Episode] = {}
        for _ in range(_LOOKED_AT // _AT_ONCE):
            some, before = viewing.shown_in(namespace_id, case.key, _AT_ONCE, before=before)
            found |= {one.id: one for one in some}
            if before is None or len(found) >= _ENOUGH:
                break
        return Page(items=tuple(found.values()), after=None if before is None else place_after((0.0, before)))

    def neighbours(self, case_id: str, *, k: int = 6) -> list[Neighbour]:
        """Return the cases nearest to a case, the nearest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ids = memory.add([("cool some mug", "fridge"), ("cool some cup", "fridge"), ("reset my password", "send a link")])
        >>> [one.case.query for one in memory.neighbours(ids[0], k=1)]
        ['cool some cup']
        """
        engine, name, case = self._open(), self._namespace, self.get(case_id)
        vector = engine.parts.ledger.viewing.vector(case.key)
        if vector is None:
            return []
        engine.follow()
        keys, similarity = engine.namespace_state(name).index.nearest(vector, check_k(k) + 1)
        found = engine.parts.ledger.cases.by_key(keys.tolist())
        pairs = zip(keys.tolist(), similarity.tolist(), strict=True)
        near = [Neighbour(case=found[key], similarity=cosine) for key, cosine in pairs if key in found and key != case.key]
        return near[:k]

    def judged(self) -> list[JudgedEpisode]:
        """Return all episodes that somebody else than their agent has judged, oldest first, with what was predicted.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.reward(memory.recall("cool some mug").episode_id, 0.0)
        >>> [(one.reward, one.showed) for one in memory.judged()]
        [(0.0, False)]
        """
        found = self._open().parts.ledger.insight.judged(self._namespace_id())
        return [JudgedEpisode(reward=one.lesson.reward, showed=one.showed, predicted=float(prediction(one))) for one in found]


def _check_sort(sort: Sort) -> Sort:
    return cast("Sort", check_word(sort, get_args(Sort), "sort"))


def _words(search: str) -> list[str]:
    words = search.split()
    if len(words) > _WORDS or any(len(word) > _LETTERS for word in words):
        raise InvalidInput(f"a search takes up to {_WORDS} words of up to {_LETTERS} letters")
    return words

"""``memory.episodes``: tasks that were asked, how they went, and what was shown for them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.episode import Episode, Status, check_source, check_status
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import Column, StoredRecall
from cascade_memory.domain.tickets import NONE_HERE, ticket_of
from cascade_memory.domain.validation import Moment, check_id, check_k, check_seconds
from cascade_memory.domain.viewed import JudgedEpisode, Page, PastOutcome, RecordedCandidate, RecordedRecall
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.measuring import prediction
from cascade_memory.insight.plot import Plot, plot_rewards
from cascade_memory.memory.bound import warned
from cascade_memory.memory.ending import Ending
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.rows import AT_ONCE, page_of, place_of, through_pages
from cascade_memory.memory.session import MakesRecall
from cascade_memory.memory.threads import in_thread
from cascade_memory.ports.policy import SaysWhatItLearned


@explained
class Episodes(Ending):
    """The episodes of a namespace."""

    def all(
        self,
        *,
        status: Status | None = None,
        source: str | None = None,
        by_actor: str | None = None,
        by_channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        newest_first: bool = False,
    ) -> Iterator[Episode]:
        """Iterate over the episodes of a namespace, oldest first.

        Args:
            status: Only those with this status: "open", "settled" (they have a reward), "censored" or "expired".
            source: Only those with a reward from this source: "host", "human", "env", "judge", "user" or "agent".
            by_actor: Only those in which this actor asked; "": only those without an actor.
            by_channel: Only those that came through this channel.
            since: Only those that were opened at this moment or later, given as in ``cases.all``.
            until: Only those that were opened before this moment.
            newest_first: Begin with the episode that was opened last.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> first, second = memory.recall("cool some mug"), memory.recall("heat some egg")
        >>> case_id = memory.reward(first.episode_id, 1.0, solution="put it into the fridge")
        >>> [(episode.query, episode.reward) for episode in memory.episodes.all(status="settled")]
        [('cool some mug', 1.0)]
        """
        namespace_id = self._namespace_id()
        wanted = None if status is None else check_status(status)
        by, of = None if source is None else check_source(source), Wanted.of(by_actor, by_channel, since, until)

        def read(after: int | None) -> Sequence[tuple[int, Episode]]:
            episodes = self._caught_up().parts.ledger.episodes
            return episodes.page(
                namespace_id, AT_ONCE, after=after, newest_first=newest_first, status=wanted, source=by, wanted=of or None
            )

        return through_pages(read)

    def latest(self, thread_id: str) -> Episode | None:
        """Return the newest episode of a conversation, or None."""
        thread_id = check_id(thread_id, "thread_id")
        ledger = self._caught_up(thread=thread_id).parts.ledger
        return ledger.episodes.latest(self._namespace_id(), thread_id)

    def pending(self) -> list[Episode]:
        """Return the episodes that wait for their reward, oldest first."""
        ledger = self._caught_up().parts.ledger
        return ledger.episodes.listed(self._namespace_id(), status="open")

    def page(
        self,
        *,
        status: Status | None = None,
        source: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page[Episode]:
        """Return a page of episodes, newest first, and where the next page begins; the filters are those of ``all``."""
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

    def knows(self, episode_id: str) -> bool:
        """Say whether an episode id exists in any namespace."""
        engine, episode_id = self._open(), check_id(episode_id, "episode_id")
        return engine.recording.holds(episode_id) or engine.parts.ledger.episodes.one(episode_id) is not None

    # -- how they went ---------------------------------------------------------------------------------------------------

    def decisions(self, episode_id: str) -> list[RecordedRecall]:
        """Return how each recall of an episode chose its cases, oldest first.

        This is what ``recall.explain()`` shows, but it can be read later and in any process.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case_id = memory.add("cool some mug", "put it into the fridge")
        >>> (decision,) = memory.episodes.decisions(memory.recall("cool a mug").episode_id)
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
        """Return the present weights of the signals; None if the namespace is not loaded or its ranker cannot say them."""
        state = self._open().loaded_state(namespace)
        if state is None or not isinstance(state.policy, SaysWhatItLearned):
            return None
        return np.asarray(state.policy.taught().weights)

    def outcomes(self, *, episode_id: str | None = None, case_id: str | None = None) -> list[PastOutcome]:
        """Return all outcomes of an episode, or all that verified a case, oldest first; replaced ones are included.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> episode_id = memory.recall("cool some mug").episode_id
        >>> case_id = memory.reward(episode_id, 1.0, solution="put it into the freezer")
        >>> memory.reward(episode_id, 0.0, source="human", overwrite=True)
        >>> [(one.value, one.source, one.withdrawn_at is None) for one in memory.episodes.outcomes(episode_id=episode_id)]
        [(1.0, 'host', False), (0.0, 'human', True)]
        """
        if (episode_id is None) == (case_id is None):
            raise InvalidInput("outcomes needs episode_id= or case_id=, and not both")
        viewing = self._open().parts.ledger.viewing
        if episode_id is not None:
            return viewing.outcomes(self._known(episode_id).id)
        return viewing.verifications(self._case(cast("str", case_id)).key)

    def judged(self) -> list[JudgedEpisode]:
        """Return the reward and the predicted success of each episode that somebody other than its agent judged, oldest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.reward(memory.recall("cool some mug").episode_id, 0.0)
        >>> [(one.reward, one.showed) for one in memory.episodes.judged()]
        [(0.0, False)]
        """
        found = self._open().parts.ledger.insight.judged(self._namespace_id())
        return [JudgedEpisode(reward=one.lesson.reward, showed=one.showed, predicted=float(prediction(one))) for one in found]

    def rewards(self) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) for every rewarded episode, oldest first."""
        ledger = self._open().parts.ledger
        return ledger.insight.rewards(self._namespace_id())

    def plot(self, *, window: int = 50) -> Plot:
        """Plot success and regret over the episodes; success is a moving average over ``window`` episodes.

        A notebook shows the picture. ``plot().savefig("success.png")`` writes it into a file, and ``plot().figure`` is its
        matplotlib figure: both need the extra "plot".
        """
        return plot_rewards(self.rewards(), window=check_k(window, "window"))

    # -- ending ----------------------------------------------------------------------------------------------------------

    def expire(self, older_than: float | timedelta, *, reported: bool = False) -> int:
        """Close the open episodes that are older than this age (seconds, or a timedelta); return how many were closed.

        With ``reported=True``, also close episodes of this age that only their agent has judged, and drop that judgement.
        """
        engine = self._open()
        seconds = check_seconds(older_than)
        ledger = engine.parts.ledger
        old = ledger.episodes.listed(self._namespace_id(), status="open", before=time.time() - seconds)
        if reported:
            waiting = ledger.episodes.listed(self._namespace_id(), status="settled", source="agent")
            old += [episode for episode in waiting if episode.opened_at < time.time() - seconds]
        closed = ledger.episodes.close([episode.id for episode in old], "expired", reported=reported)
        engine.learn_soon()
        return len(closed)

    # -- for adapters ----------------------------------------------------------------------------------------------------

    def begin(self, query: str, **options: Any) -> MakesRecall:
        """Check the options of a recall now; return a ``MakesRecall``, which makes it when a ``with`` block begins."""
        request = self._request(query, **options)

        async def awaited() -> Recall:
            return warned(await in_thread(lambda: self._found(request)))

        return MakesRecall(lambda: warned(self._found(request)), awaited)

    def needs_ticket(self, source: str) -> bool:
        """Say whether a reward from a source has to bring the ticket of its recall.

        >>> from cascade_memory import CascadeMemory, Trust
        >>> memory = CascadeMemory(embedder="hashing", trust=Trust(tickets=True))
        >>> over_mcp = memory.acting(channel="mcp")
        >>> [one.episodes.needs_ticket("host") for one in (memory, over_mcp)], memory.episodes.needs_ticket("user")
        ([False, True], True)
        """
        return self._tickets is not None and self._tickets.needed(source, self._channel)

    def ticket_of(self, episode_id: str) -> str:
        """Make a ticket for an episode, to send it with an agent's answer when a framework has made the recall.

        >>> from cascade_memory import CascadeMemory, Trust
        >>> memory = CascadeMemory(embedder="hashing", trust=Trust(tickets=True))
        >>> episode_id = memory.recall("cool some mug").episode_id
        >>> memory.reward(episode_id, 0.0, source="user", ticket=memory.episodes.ticket_of(episode_id))
        """
        found = self._known(episode_id)
        if self._tickets is None:
            raise InvalidInput(NONE_HERE)
        return ticket_of(self._engine.signing, found.id, found.namespace, found.opened_at, self._tickets)

    def as_stored(self, query: str, episode_id: str | None = None) -> str:
        """Return a task as this memory stores it in a recall for an episode: with placeholders instead of secrets."""
        return self._open().parts.door.record(episode_id).query(query)

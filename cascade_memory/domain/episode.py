"""Episodes: one task from query to reward."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

from cascade_memory.domain.display import by_whom, number, quoted
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.trajectory import Solution, Trajectory, solution_text
from cascade_memory.domain.validation import check_word
from cascade_memory.errors import InvalidInput, UnknownEpisode
from cascade_memory.visible import as_moment, shown_visibly

Source: TypeAlias = Literal["host", "human", "env", "judge", "user", "agent"]
Status: TypeAlias = Literal["open", "settled", "censored", "expired"]
Arm: TypeAlias = Literal["live", "holdout"]

SOURCES: tuple[str, ...] = get_args(Source)
STATUSES: tuple[str, ...] = get_args(Status)
TRUSTED_SOURCES: tuple[str, ...] = ("host", "human", "env", "judge", "user")  # everyone but the agent itself
FAILED_BELOW = 0.5  # a reward below this is a failure


def check_source(source: object) -> str:
    """Check the source of a reward: who or what gave it.

    >>> check_source("human")
    'human'
    """
    return source if type(source) is str and source in SOURCES else check_word(source, SOURCES, "source")


def check_sources(sources: object) -> tuple[str, ...]:
    """Check several sources, such as those that ``retain_from`` names.

    >>> check_sources({"host"})
    ('host',)
    """
    if isinstance(sources, str) or not isinstance(sources, Collection):
        raise InvalidInput(f"retain_from must be a collection of sources, such as ('host', 'human'), not {quoted(sources)}")
    return tuple(check_source(source) for source in cast("Collection[object]", sources))


def check_status(status: object) -> str:
    """Check the status of an episode.

    >>> check_status("settled")
    'settled'
    """
    return check_word(status, STATUSES, "status")


def id_taken(episode_id: str) -> UnknownEpisode:
    """Return the error for an id that an episode cannot have. Its message says only that the id cannot be used here."""
    return UnknownEpisode(
        f"the id {episode_id!r} is taken, and not by an episode here: each is good for one episode in the whole memory, so let "
        "recall() make it, or begin your own ids with the name of the namespace"
    )


def fingerprint(
    one_id: str,
    query: str,
    solution: Solution | None,
    reward: float | None,
    metadata: Mapping[str, MetadataValue],
    decided: str | None = None,
) -> str:
    """Hash the content of an episode or a case to a code that is short enough to be read out.

    ``decided`` is what was decided about it: who has judged an episode, or that a case is never shown.

    >>> fingerprint("e", "6 * 7", "42", 1.0, {"user": "ann"}) == fingerprint("e", "6 * 7", "42", 1.0, {"user": "bob"})
    False
    """
    kind, text = ("trajectory", solution.to_json()) if isinstance(solution, Trajectory) else ("text", solution or "")
    parts = [one_id, query, "none" if solution is None else kind, text, "none" if reward is None else repr(float(reward))]
    parts.append(json.dumps(dict(metadata), sort_keys=True))
    parts += [] if decided is None else [decided]
    digest = hashlib.blake2b(digest_size=10, person=b"cascade-content")
    for part in parts:
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """An episode as the ledger records it: ``reward_fn`` receives it, and ``memory.episodes.pending()`` returns such episodes.

    ``status`` is the status in the ledger, or ``"error"`` if ``reward_fn`` is called for a run that raised. ``solution`` is the
    solution that was rewarded; before there is a reward, it is what the run ended with. ``ended`` says how the run ended:
    "ok", "error", "interrupted" (it waits for a person) or None (it has not ended).
    """

    id: str
    namespace: str
    query: str
    status: str
    arm: str = "live"
    opened_at: float = 0.0
    closed_at: float | None = None
    reward: float | None = None
    source: str | None = None
    solution: Solution | None = None
    recalls: int = 0
    cases: tuple[str, ...] = ()  # ids of the cases that were shown
    thread_id: str | None = None
    ended: str | None = None
    reported: Solution | None = None  # the solution that the agent itself reported, until somebody else confirms it
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    actor: str | None = None  # who asked, as the host said
    channel: str | None = None  # the door through which the recall came

    @property
    def fingerprint(self) -> str:
        """A short code for the episode's content: it changes with query, solution, reward, metadata, and with who judged it.

        ``reward(episode.id, 1.0, source="human", confirms=episode.fingerprint)`` confirms exactly the content that was seen.

        >>> import dataclasses
        >>> seen = Episode(id="e", namespace="default", query="6 * 7", status="settled", solution="42", reward=1.0)
        >>> seen.fingerprint == dataclasses.replace(seen, solution="43").fingerprint
        False
        """
        judge = self.source if self.source in TRUSTED_SOURCES else None
        return fingerprint(self.id, self.query, self.solution, self.reward, self.metadata, judge)

    def is_as_seen(self, seen: str, *, whoever_judged: bool) -> bool:
        """Tell whether the fingerprint still is ``seen``; with ``whoever_judged``, a change of the judge alone does not count.

        >>> import dataclasses
        >>> seen = Episode(id="e", namespace="n", query="6 * 7", status="settled", solution="42", reward=1.0, source="agent")
        >>> now = dataclasses.replace(seen, source="human")
        >>> [now.is_as_seen(seen.fingerprint, whoever_judged=either) for either in (False, True)]
        [False, True]
        """
        if self.fingerprint == seen:
            return True
        others = (dataclasses.replace(self, source=one) for one in (None, *TRUSTED_SOURCES))
        return whoever_judged and any(one.fingerprint == seen for one in others)

    @property
    def under_way(self) -> bool:
        """Whether the run may still go on: it has not ended, it waits for a person, or only the agent itself gave a reward."""
        return (self.status == "open" and self.ended in (None, "interrupted")) or self.has_only_agents_word

    @property
    def waits_for_a_verdict(self) -> bool:
        """Whether a person should judge the episode: only its agent has judged it, or its run has ended unjudged."""
        return self.has_only_agents_word or (self.status == "open" and self.ended not in (None, "interrupted"))

    @property
    def has_only_agents_word(self) -> bool:
        """Whether the only reward so far comes from the agent itself."""
        return self.status == "settled" and self.source == "agent"

    @property
    def answer(self) -> str:
        """The final answer as text: the answer of a trajectory, otherwise the solution itself; empty if there is none.

        >>> Episode(id="e", namespace="default", query="6 * 7", status="open", solution="42").answer
        '42'
        """
        if self.solution is None:
            return ""
        return self.solution.answer if isinstance(self.solution, Trajectory) else self.solution

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Entry, Facts

        judged = "none yet" if self.reward is None else f"{number(self.reward)}, from {self.source}"
        solution = "" if self.solution is None else solution_text(self.solution)
        reported = "" if self.reported is None else solution_text(self.reported)
        times = [("opened", self.opened_at), ("closed", self.closed_at)]
        which = f": {', '.join(self.cases)}" if self.cases else ""
        facts = [
            ("id", self.id),
            ("namespace", self.namespace),
            *((what, moment) for what, at in times if (moment := as_moment("at", at))),
            ("reward", judged),
            ("recalls", f"{self.recalls:,}"),
            ("cases shown", f"{len(self.cases):,}{which}"),
            *([("asked by", by_whom(self.actor, self.channel))] if self.actor is not None else []),
            *([("thread", self.thread_id)] if self.thread_id is not None else []),
            *([("reported by the agent", reported)] if reported else []),
            *((name, str(value)) for name, value in self.metadata.items()),
        ]
        status = self.status if self.arm == "live" else f"{self.status}, {self.arm}"
        return Card("Episode", status, [Entry(self.query, solution), Facts(facts)]).html()

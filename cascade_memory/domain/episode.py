"""One task from query to reward."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import shown_visibly

Source: TypeAlias = Literal["host", "human", "env", "judge", "agent"]
Status: TypeAlias = Literal["open", "settled", "censored", "expired"]
Arm: TypeAlias = Literal["live", "holdout"]

SOURCES: tuple[str, ...] = get_args(Source)
TRUSTED_SOURCES: tuple[str, ...] = ("host", "human", "env", "judge")  # everyone but the agent itself


def check_source(source: object) -> str:
    """Return who gives a reward.

    >>> check_source("human")
    'human'
    """
    if source not in SOURCES:
        raise InvalidInput(f"source must be one of {', '.join(SOURCES)}, not {source!r}")
    return str(source)


def fingerprint(
    episode_id: str, query: str, solution: Solution | None, reward: float | None, metadata: Mapping[str, MetadataValue]
) -> str:
    """Return what stands for the content of an episode, short enough to be read out.

    >>> fingerprint("e", "6 * 7", "42", 1.0, {"user": "ann"}) == fingerprint("e", "6 * 7", "42", 1.0, {"user": "bob"})
    False
    """
    kind, text = ("trajectory", solution.to_json()) if isinstance(solution, Trajectory) else ("text", solution or "")
    parts = [episode_id, query, "none" if solution is None else kind, text, "none" if reward is None else repr(float(reward))]
    parts.append(json.dumps(dict(metadata), sort_keys=True))
    digest = hashlib.blake2b(digest_size=10, person=b"cascade-content")
    for part in parts:
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """An episode as the ledger knows it; what ``reward_fn`` and ``memory.pending()`` see.

    ``status`` is the ledger's word, or ``"error"`` when ``reward_fn`` is asked about a run that raised. ``solution`` is what
    was rewarded, or what the run ended with while nobody has judged it; ``ended`` says how it ended ("ok", "error",
    "interrupted" while it waits for somebody, or None).
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
    reported: Solution | None = None  # what its agent says solved it, as long as nobody has confirmed that
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])

    @property
    def fingerprint(self) -> str:
        """What stands for an episode's content: another one as soon as query, solution, reward or metadata is another.

        ``reward(episode.id, 1.0, source="human", confirms=episode.fingerprint)`` confirms what was seen, and nothing else.

        >>> import dataclasses
        >>> seen = Episode(id="e", namespace="default", query="6 * 7", status="settled", solution="42", reward=1.0)
        >>> seen.fingerprint == dataclasses.replace(seen, solution="43").fingerprint
        False
        """
        return fingerprint(self.id, self.query, self.solution, self.reward, self.metadata)

    @property
    def under_way(self) -> bool:
        """True while its run has not ended, or waits for somebody; what its agent reports of it meanwhile ends nothing."""
        return (self.status == "open" and self.ended in (None, "interrupted")) or self.has_only_agents_word

    @property
    def has_only_agents_word(self) -> bool:
        """True where nobody but the agent itself has said how it went."""
        return self.status == "settled" and self.source == "agent"

    @property
    def answer(self) -> str:
        """The final answer as text: of a trajectory its answer, else the solution itself; empty without one.

        >>> Episode(id="e", namespace="default", query="6 * 7", status="open", solution="42").answer
        '42'
        """
        if self.solution is None:
            return ""
        return self.solution.answer if isinstance(self.solution, Trajectory) else self.solution

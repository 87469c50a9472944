"""What the verbs hand to the engine, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.records import Unsettled
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.errors import ContentChanged, EpisodeClosed, UnknownEpisode
from cascade_memory.ports.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A recall, or with ``search`` a search, that somebody asks for."""

    query: str
    namespace: str
    k: int
    where: object | None
    episode_id: str | None
    thread_id: str | None
    metadata: Mapping[str, MetadataValue]
    exposure: Exposure
    search: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How somebody says that an episode ended."""

    episode_id: str
    value: float
    source: str
    solution: Solution | None  # None: the one on record
    metadata: dict[str, MetadataValue]
    overwrite: bool
    confirms: str | None  # the fingerprint of the episode as they saw it


def arm_of(request: RecallRequest, name: str, ledger: Ledger) -> str:
    """Return the arm that an episode was opened in, or will be; refuse one that takes no recall any more."""
    if request.search:
        return "live"
    episode = None if request.episode_id is None else ledger.episodes.one(name)
    if episode is None:
        return request.exposure.arm_of(name)
    if episode.namespace != request.namespace:
        raise UnknownEpisode(f"episode {name!r} belongs to another namespace")
    if episode.status != "open":
        raise EpisodeClosed(f"episode {name!r} is {episode.status}; open another one to recall again")
    return episode.arm


def check_confirmed(said: Judgement, read: Unsettled, ledger: Ledger) -> None:
    """Refuse to confirm what is not on record, or what is not what was just read of it."""
    if said.confirms is None:
        return
    found = ledger.episodes.one(said.episode_id)
    if found is None or found.fingerprint != said.confirms or found.solution != read.solution:
        raise ContentChanged.of(said.episode_id, said.confirms)

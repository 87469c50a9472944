"""The arguments of recall, search and reward, as they are passed to the engine: already checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cascade_memory.cycle.reuse import Template
from cascade_memory.cycle.select import Exposure
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.case import CaseText
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Rewardable
from cascade_memory.domain.records import RecallRecord, Unkept
from cascade_memory.domain.signed import Signed
from cascade_memory.domain.trajectory import Solution
from cascade_memory.engine.door import Incoming


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """The request for a recall, or with ``search`` for a search."""

    query: str
    namespace: str
    k: int
    where: object | None
    exposure: Exposure
    template: Template  # how the shown cases become text
    deadline: float | None  # in seconds
    record: Incoming  # through which its texts came in
    episode_id: str | None = None
    thread_id: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    search: bool = False
    actor: str | None = None  # who asks
    channel: str | None = None
    min_trust: int = 0  # the level that a case must have
    unclean: Exception | None = None  # redact= failed on it, so nobody may see it: the recall fails
    light: bool = False  # it takes the database a moment, whatever is stored: no filter, and few metadata to index
    memory: Callable[[], Rewardable | None] | None = None  # which the recall can be rewarded with; a weak reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A caller's judgement on how an episode ended."""

    episode_id: str
    namespace: str
    value: float
    source: str
    solution: Solution | None  # None: the recorded one
    case_text: CaseText  # makes the text under which a new case is indexed
    record: Incoming  # through which its texts came in
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    overwrite: bool = False
    confirms: str | None = None  # the fingerprint of the episode as the judge saw it
    unkept: Unkept | None = None  # the reason to store no case, if there is one
    waits: bool = False  # it waits until somebody confirms it
    action: NewAction | None = None  # the person's action that it is
    actor: str | None = None  # who reports it
    channel: str | None = None
    ticket: Signed | None = None  # which it redeems
    cap: int | None = None  # see ``Settlement``
    opens: RecallRecord | None = None  # the episode, if it is to be opened by this judgement

"""What the verbs hand to the engine, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.validation import MetadataValue


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A recall, or with ``search`` a search, that somebody asks for."""

    query: str
    namespace: str
    k: int
    where: object | None
    exposure: Exposure
    template: Template  # how the cases that are shown become text
    deadline: float | None  # in seconds
    episode_id: str | None = None
    thread_id: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    search: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How somebody says that an episode ended."""

    episode_id: str
    value: float
    source: str
    solution: Solution | None  # None: the one on record
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    overwrite: bool = False
    confirms: str | None = None  # the fingerprint of the episode as they saw it

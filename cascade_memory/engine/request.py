"""The arguments of recall, search and reward, as the engine gets them: already checked; and what the log says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from cascade_memory.cycle.reuse import Template
from cascade_memory.cycle.select import Exposure
from cascade_memory.domain.actions import Before, NewAction
from cascade_memory.domain.case import CaseText
from cascade_memory.domain.cost import Spent
from cascade_memory.domain.digests import Signed
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall, Rewardable
from cascade_memory.domain.records import Beside, RecallRecord, Settled, Unkept
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
    expected: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])  # further metadata, not yet known
    search: bool = False
    actor: str | None = None  # who asks
    channel: str | None = None
    min_trust: int = 0  # the level that a case must have
    unclean: Exception | None = None  # redact= failed on it, so nobody may see it: the recall fails
    light: bool = False  # it takes the database a moment, whatever is stored: no filter, and few metadata to index
    memory: Callable[[], Rewardable | None] | None = None  # which the recall can be rewarded with; a weak reference
    beside: Sequence[Beside] = ()  # what capabilities store with it

    def line(self, recall: Recall, considered: int, spent: Spent) -> str:
        """Say for the log what the recall did, and quote no text; ``considered`` is the number of candidates."""
        kind, episode = ("search", "") if self.search else ("recall", f", episode {recall.episode_id!r}")
        why = ", held out" if recall.arm == "holdout" else ", none expected to help" if recall.abstained else ""
        took = 1000 * (spent.embed + spent.search + spent.rank + spent.write)
        return f"{kind} in namespace {self.namespace!r}: {len(recall.cases)} of {considered} shown{why}{episode}, {took:.1f} ms"


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

    @classmethod
    def again(
        cls,
        before: Before,
        action: NewAction,
        *,
        episode_id: str,
        namespace: str,
        case_text: CaseText,
        record: Incoming,
        retain_from: Collection[str],
    ) -> Judgement:
        """Return the outcome that counted before an action, as a judgement to record when that action is taken back."""
        return cls(
            episode_id=episode_id,
            namespace=namespace,
            value=before.value,
            source=before.source,
            solution=before.solution,
            case_text=case_text,
            record=record,
            metadata=before.metadata,
            overwrite=True,
            unkept=None if before.retained else cast("Unkept", before.unkept or "below"),
            waits=before.source not in TRUSTED_SOURCES and before.source not in retain_from,
            action=action,
            actor=before.actor,
            channel=before.channel,
        )

    def line(self, settled: Settled) -> str:
        """Say for the log what the reward did, and quote no text."""
        kept = "no case" if settled.case_id is None else f"case {settled.case_id!r}"
        word = f"reward {self.value:g} from {self.source}" if settled.changed else "repeated reward"
        return f"{word} in namespace {self.namespace!r}: episode {self.episode_id!r}, {kept}"

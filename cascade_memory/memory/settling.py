"""How a judgement is recorded, whoever has judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cascade_memory.cycle.retain import why_unkept
from cascade_memory.domain.actions import Before, NewAction
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import RecallRecord, Settlement, Unkept
from cascade_memory.domain.reward_channel import cap_of
from cascade_memory.domain.signed import Signed
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.trust import ByWhom
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import Judgement
from cascade_memory.engine.settling import settlement
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.verdict import LOOKS_SOLVED
from cascade_memory.redaction.saying import warn

_FAILED = {"solved": False}  # noted with a failure that is stored because of a low ``retain_at``: no prompt must call it solved


class Settling(Bound):
    """Records judgements."""

    def settle(
        self,
        engine: Engine,
        *,
        episode_id: str,
        namespace: str,
        value: float,
        source: str,
        solution: Solution | None,
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        action: NewAction | None = None,
        by: ByWhom,
        record: Incoming,
        ticket: Signed | None = None,
        opens: RecallRecord | None = None,
    ) -> str | None:
        """Record a checked judgement; return the id of the case that was stored because of it, if any."""
        unkept = why_unkept(value, source, retain_at=self._retain_at, retain_from=self._retain_from)
        by_hand = action is not None  # a verdict of a person has no cap
        if action is None and source == "human":
            action = NewAction(kind="reward", actor=by.actor)  # by hand: the audit log says so if it replaces an outcome
        elif action is not None and action.corrects:
            unkept = None  # the person says that the solution is right
        metadata = metadata or {}
        failed = unkept is None and value < LOOKS_SOLVED and (action is None or not action.corrects)
        judgement = Judgement(
            episode_id=episode_id,
            namespace=namespace,
            value=value,
            source=source,
            solution=solution,
            case_text=self._case_text,
            record=record,
            metadata={**metadata, **_FAILED} if failed else metadata,
            overwrite=overwrite,
            confirms=confirms,
            unkept=unkept,
            waits=source not in TRUSTED_SOURCES and source not in self._retain_from,
            action=action,
            actor=by.actor,
            channel=by.channel,
            ticket=ticket,
            opens=opens,
            cap=None if by.actor is None or by_hand else cap_of(self._caps, source, by.channel),
        )
        settled = engine.reward(judgement)
        if settled.changed and settled.case_id is None and not settled.capped:
            self._warn_unkept(judgement.unkept or "solution", value)
        return settled.case_id

    def _warn_unkept(self, why: Unkept, value: float) -> None:
        """Warn, once per reason, that an apparent success was not stored. An agent's own report gets no warning."""
        if value <= LOOKS_SOLVED or why == "source" or why in self._warned:
            return
        self._warned.add(why)
        remedy = (
            f"it is below retain_at={self._retain_at:g}; to store such solutions, open the memory with a lower retain_at="
            if why == "below"
            else "it came without a solution; to store what solved the task, pass it as solution="
        )
        warn(
            f"cascade_memory stored no case for a reward of {value:g}: {remedy} (this warning comes once; stats() counts them)",
            UserWarning,
        )

    def as_before(self, before: Before, action: NewAction, episode_id: str, namespace: str) -> Judgement:
        """Return the outcome that counts again, as somebody has reported it."""
        return Judgement(
            episode_id=episode_id,
            namespace=namespace,
            value=before.value,
            source=before.source,
            solution=before.solution,
            case_text=self._case_text,
            record=self._open().parts.door.record(episode_id),
            metadata=before.metadata,
            overwrite=True,
            unkept=None if before.retained else cast("Unkept", before.unkept or "below"),
            waits=before.source not in TRUSTED_SOURCES and before.source not in self._retain_from,
            action=action,
            actor=before.actor,
            channel=before.channel,
        )

    def counting_again(self, wanted: Wanted, namespace: str) -> list[Settlement]:
        """Prepare the outcomes that count again when a source is undone that has replaced them."""
        engine = self._open()
        namespace_id = engine.namespace_id(namespace)
        found = engine.parts.ledger.forgetting.coming_back(namespace_id, wanted) if namespace_id else []
        prepared = list[Settlement]()
        for one in found:
            if one.before is None:
                continue
            action = NewAction(kind="undo", takes_back=one)
            try:
                prepared.append(settlement(engine, self.as_before(one.before, action, one.subject, namespace)))
            except Exception as error:  # noqa: BLE001 - its value counts again; an odd row must not keep a source from being undone
                engine.note_failure("undo", error)
        return prepared

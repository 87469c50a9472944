"""What a person or a source has replaced counts again: its judgement is made anew."""

from __future__ import annotations

from typing import cast

from cascade_memory.domain.actions import Before, NewAction
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import Settlement, Unkept
from cascade_memory.engine.request import Judgement
from cascade_memory.engine.settling import settlement
from cascade_memory.memory.bound import Bound


class CountingAgain(Bound):
    """Makes the judgements that count again."""

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

"""The verbs that delete, and that bring back what was set aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cascade_memory.domain.case import ExpiredCase, check_why
from cascade_memory.domain.moments import Moment
from cascade_memory.domain.provenance import Wanted
from cascade_memory.insight.stats import Receipt
from cascade_memory.memory import curation
from cascade_memory.memory.actions import ActionVerbs


class ForgettingVerbs(ActionVerbs):
    """What is forgotten is gone for good; what is set aside can be brought back for a while."""

    def forget(
        self,
        case_ids: str | Iterable[str] | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
        by_actor: str | None = None,
        by_channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        everything: bool = False,
        purge: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Delete cases by id, data by its metadata, an episode, what a source wrote, or ``everything`` of a namespace.

        The memory then learns again from what remains, and its counts no longer include what was deleted. Returns what was
        deleted.

        Args:
            case_ids: One case or several, with every episode that led to one of them, since it has the same text.
            where: A metadata filter, with Chroma's operators: everything that was recalled, rewarded or added with such
                metadata. A case stays, without that metadata, while another source confirms the same solution of the task.
            episode_id: An episode, and the case that it led to, unless another source confirms that case.
            by_actor: Undo this source: its episodes, the outcomes that it reported, what it added, and the cases that nobody
                else confirms. The most valuable cases that had to make room since come back. "": whoever was not named.
            by_channel: Undo what came through this door; with ``by_actor``, ``since`` and ``until`` it narrows down.
            since: Undo what came from this moment on (as for ``diff``).
            until: Undo what came before this moment.
            everything: All cases and episodes of the namespace.
            purge: Return only when no file of the memory holds a byte of the deleted data: rewrites the ledger, the
                snapshots and Chroma, which takes seconds per 100,000 cases.
            dry_run: Return the same receipt, and change nothing. Forgetting cannot be undone.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ann, mallory = memory.acting(actor="ann"), memory.acting(actor="mallory")
        >>> ids = [ann.add("cool some mug", "fridge"), mallory.add("cool some cup", "oven")]
        >>> ann.forget(by_actor="mallory").cases
        1
        >>> [case.solution for case in memory.cases()]
        ['fridge']
        """
        name, wanted = self._namespace, Wanted.of(by_actor, by_channel, since, until)
        return curation.forget(
            self._open(),
            case_ids,
            where=where,
            episode_id=episode_id,
            everything=everything,
            purge=purge,
            dry_run=dry_run,
            namespace=name,
            by=self._who(),
            source=curation.OfSource(wanted, lambda: self._counting_again(wanted, name)) if wanted else None,
        )

    def expired(self, *, why: str = "expired") -> list[ExpiredCase]:
        """Return the cases that were set aside and can still be brought back, oldest first.

        Args:
            why: "expired": they were not verified within the memory's ``ttl``. "evicted": they had to make room, because there
                were more than ``max_cases``; the last ``max_cases`` of these are kept.
        """
        engine = self._open()
        return engine.parts.ledger.expiry.expired(engine.namespace_id(self._namespace), check_why(why))

    def bring_back(self, case_ids: str | Iterable[str] | None = None) -> list[str]:
        """Turn cases that were set aside back into cases that count as verified now; return their ids.

        Without ids, all that expired come back. Cases that had to make room come back only by their ids, since others may have
        to make room for them.

        >>> import time
        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", learn="inline", ttl=0.5)
        >>> case_id = memory.add("cool some mug", "put it into the fridge")
        >>> time.sleep(0.6)
        >>> memory.recall("cool some mug").cases
        ()
        >>> memory.bring_back() == [case_id]
        True
        >>> memory.recall("cool some mug").cases[0].solution
        'put it into the fridge'
        """
        return curation.bring_back(self._open(), case_ids, namespace=self._namespace, actor=self._who())

"""A part of the ledger: forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import Settlement, Undone


class Forgetting(Protocol):
    """Deletes, durably, the data that a caller names, and nothing of other sources.

    A case stays while any source verifies it: an episode that ended in it, or an addition by hand. The remaining case gets the
    source and metadata of its oldest verification. Each call returns how many ``cases``, ``episodes``, ``recalls`` and
    ``outcomes`` were deleted, and logs the deletion. The keys of deleted cases are removed from the candidates of every recall.
    With ``preview`` a call returns the same and changes nothing. An ``action`` is written into the audit log, and the notes on
    earlier actions are deleted with what they are about.
    """

    def forget(
        self, namespace: int, keys: Sequence[int], action: NewAction | None = None, *, preview: bool = False
    ) -> dict[str, int]:
        """Delete cases, whoever verified them, and the episodes that ended in one of them, since they have the same text."""
        ...

    def forget_where(
        self, namespace: int, where: object, action: NewAction | None = None, *, preview: bool = False
    ) -> dict[str, int]:
        """Delete everything with matching metadata; a case is deleted unless another source verifies it."""
        ...

    def forget_episode(self, episode_id: str, action: NewAction | None = None, *, preview: bool = False) -> dict[str, int]:
        """Delete an episode, and its case unless another source verifies that case."""
        ...

    def coming_back(self, namespace: int, wanted: Wanted) -> list[Taken]:
        """Return, as actions to take back, the outcomes of a source that replaced outcomes of others.

        ``forget_source`` takes them back.
        """
        ...

    def forget_source(
        self,
        namespace: int,
        wanted: Wanted,
        action: NewAction | None = None,
        *,
        again: Sequence[Settlement] = (),
        strict: bool = False,
        max_cases: int | None = None,
        window: int,
        preview: bool = False,
    ) -> Undone:
        """Undo a source: delete what it asked, reported and added, and the cases that nobody else verifies.

        What the source decided about cases, actors and warnings is taken back, unless somebody has decided anew since. If it
        reported an outcome on an episode of somebody else, that episode is then as it was before. ``again`` are the older
        outcomes that count again, with their cases and labels, prepared from what ``coming_back`` returned. With ``strict``,
        nothing is done if ``coming_back`` would return something else by now. An episode of the source stays if a named person
        judged it. Of the cases that were evicted since the source's first outcome or addition, the most valuable ones, by the
        last ``window`` outcomes, come back: until there are ``max_cases``, or (None) as many as before this call.
        """
        ...

    def forget_namespace(self, namespace: int, action: NewAction | None = None, *, preview: bool = False) -> dict[str, int]:
        """Delete everything in a namespace except its name and id, which a recall may be using right now."""
        ...

    def forget_name(self, namespace: int) -> bool:
        """Forget the name of a namespace that was emptied; return False, and keep it, if something has come in since.

        The id of the namespace is never used again, and nothing can be stored under it any more (``NamespaceForgotten``).
        """
        ...

    def names(self, namespace: int, actor: str | None = None) -> int:
        """Count the audit log entries of a namespace that name this actor (None: any actor). Forgetting keeps such entries."""
        ...

    def scrub(self, namespace: int, action: NewAction | None = None) -> tuple[int, str]:
        """Remove every byte of deleted data from all files.

        Two more things are deleted: the namespace's log of searches, since a search belongs to no episode by which it could be
        found, and the notes that say whose data was forgotten. Return the log line of the purge, and a text that says what
        could not be cleaned, for example because another process is reading an older state.
        """
        ...

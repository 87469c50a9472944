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
        """Return what is taken back when a source is undone: its outcomes that have replaced those of others."""
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

        What it decided about cases, actors and warnings is taken back, where nobody has decided anew since. An episode of
        somebody else on which it reported an outcome is then as it was before: ``again`` are the older outcomes that count
        again, with their cases and labels, as the answer of ``coming_back`` says. With ``strict``
        nothing is done if it would say something else by now. One of its own that a named person
        judged stays. Cases that had to make room since its first outcome come back until there are ``max_cases``, or as many as
        there were: the most valuable ones, by the last ``window`` outcomes.
        """
        ...

    def forget_namespace(self, namespace: int, action: NewAction | None = None, *, preview: bool = False) -> dict[str, int]:
        """Delete everything in a namespace except its name and id, which a recall may be using right now."""
        ...

    def forget_name(self, namespace: int) -> bool:
        """Forget the name of a namespace that was emptied; return False, and keep it, if something has come in since.

        Its number is never given again, and nothing is stored under it any more (``NamespaceForgotten``).
        """
        ...

    def names(self, namespace: int, actor: str | None = None) -> int:
        """Count the entries of the audit log of a namespace that name an actor, or anybody: these stay."""
        ...

    def scrub(self, namespace: int, action: NewAction | None = None) -> tuple[int, str]:
        """Remove every byte of deleted data from all files.

        The namespace's log of searches is deleted as well, since a search belongs to no episode that could be named, and so are
        the notes that say whose data was forgotten. Return the
        log line of the purge, and in words what could not be cleaned: while another process reads an older state, for example.
        """
        ...

"""A part of the ledger: the steps that failed runs are blamed for, and what came of warning of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.failure_warning import Check, Failure, Tally, WarningDecision


class Warnings(Protocol):
    """Stores failures with the outcomes that they come from.

    ``settle`` adds them; whatever deletes or withdraws an outcome deletes its failure in the same transaction, and the checks
    of a deleted episode go with it. Advice that a model wrote goes with any failure of its warning, and what people decided
    with the last one. What worked ``instead`` is blank once the case that says so is forgotten, and while it is hidden. The log
    says when a decision was made or taken back, or old failures were dropped (``Change.decides``).
    """

    def failures(self, namespace: int, after: int = 0, limit: int = 1_000, *, warning: str | None = None) -> list[Failure]:
        """Return the failures whose outcomes stand, by key: those after a key, and at most ``limit``; all or of one warning.

        The result is empty only if none follow. The key of a failure is that of its outcome, which the log names.
        They are of whoever asked, like the cases of an episode; they are trusted no more than their source, the cases that were
        shown, and the case that says what worked.
        """
        ...

    def decisions(self, namespace: int) -> Mapping[str, WarningDecision]:
        """Return what was decided, by warning."""
        ...

    def tallies(self, namespace: int) -> Mapping[str, Tally]:
        """Return what came of the checks, by warning.

        They count if their episode has an outcome that teaches, and if it is known whether the mistake came again.
        """
        ...

    def checks(self, episode_id: str) -> Sequence[Check]:
        """Return the checks of an episode, oldest first."""
        ...

    def note_check(self, new: Check, *, most: int | None = None) -> Check:
        """Record a decision whether to warn; return the one of this episode and warning that is there already, if there is.

        If ``most`` other warnings were given in this episode, nothing is recorded, and the decision comes back as a silent one:
        calls that are made at the same time must not get more together. Not durable: a power cut may lose it. Raises
        ``UnknownEpisode`` if there is no such episode, ``EpisodeClosed`` if it has ended.
        """
        ...

    def decide(self, namespace: int, warning: str, decision: WarningDecision, action: NewAction) -> bool:
        """Store a decision about a warning, durably, with an entry in the audit log; return whether that changed anything.

        The action says what it is about: "retire" and "restore" whether the warning is shown, "advise" its advice (None: it has
        none any more). Advice by a model does not replace that of a person. Raises ``UnknownWarning`` if there is no failure.
        """
        ...

    def keep_newest(self, namespace: int, keep: int, *, since: float = 0.0) -> int:
        """Delete the failures beyond the newest ``keep`` and those before ``since``; return how many were deleted.

        What came of checks stays known. Not durable.
        """
        ...

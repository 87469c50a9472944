"""A part of the ledger: the steps at which failed runs went wrong, and what came of the warnings about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.failure_warning import Check, Failure, Tally, WarningDecision


class Warnings(Protocol):
    """Stores failures (the steps at which failed runs went wrong), and the checks (decisions whether to warn).

    ``settle`` adds failures. Whatever deletes or withdraws an outcome deletes its failure in the same transaction, and the
    checks of an episode are deleted with it. Advice that a model wrote is deleted with any failure of its warning; what people
    decided about a warning is deleted with its last failure. ``instead``, what worked instead, is blank once the case that says
    so is forgotten, and while that case is hidden. The log says when a decision was made or taken back, or old failures were
    dropped (``Change.decides``).
    """

    def failures(self, namespace: int, after: int = 0, limit: int = 1_000, *, warning: str | None = None) -> list[Failure]:
        """Return up to ``limit`` failures whose outcomes stand, in order of key, after a key; of all warnings or of one.

        The result is empty only if none follow. The key of a failure is that of its outcome, which the log names. The actor of
        a failure is whoever asked, as with the cases of an episode. A failure is trusted no more than its source, the cases
        that were shown, and the case that says what worked.
        """
        ...

    def decisions(self, namespace: int) -> Mapping[str, WarningDecision]:
        """Return what was decided, by warning."""
        ...

    def tallies(self, namespace: int) -> Mapping[str, Tally]:
        """Return what came of the checks of each warning, by warning.

        A check counts if its episode has an outcome that teaches, and if it is known whether the mistake was repeated.
        """
        ...

    def checks(self, episode_id: str) -> Sequence[Check]:
        """Return the checks of an episode, oldest first."""
        ...

    def note_check(self, new: Check, *, most: int | None = None) -> Check:
        """Record a check, and return it; if this episode and warning have a check already, only return the earlier one.

        If ``most`` other warnings were given in this episode already, nothing is recorded, and the check is returned as a
        decision not to warn: calls made at the same time must not get more than ``most`` warnings together. The write is not
        durable: a power cut may lose it. Raises ``UnknownEpisode`` if there is no such episode, ``EpisodeClosed`` if it has
        ended.
        """
        ...

    def decide(self, namespace: int, warning: str, decision: WarningDecision, action: NewAction) -> bool:
        """Store a decision about a warning, durably, with an entry in the audit log; return whether that changed anything.

        The kind of the action says what is decided: "retire" and "restore" decide whether the warning is shown, "advise" sets
        its advice (None removes it). A model's advice does not replace a person's. Raises ``UnknownWarning`` if the warning has
        no failure.
        """
        ...

    def keep_newest(self, namespace: int, keep: int, *, since: float = 0.0) -> int:
        """Delete the failures beyond the newest ``keep`` and those before ``since``; return how many were deleted.

        The results of checks are kept. The write is not durable.
        """
        ...

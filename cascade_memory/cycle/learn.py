"""Step 5, learn: applies outcomes, in the order of the log, to the policy of their namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cascade_memory.domain.records import Change
from cascade_memory.ports.policy import Feedback, Policy

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

WINDOW = 2048  # outcomes from which a policy is rebuilt: bounded, however long the history is


def needs_rebuild(changes: Sequence[Change]) -> bool:
    """Say whether outcomes were taken back. A policy cannot unlearn them, but can be rebuilt without them."""
    return any(change.takes_outcomes_back for change in changes)


def learn(
    changes: Sequence[Change], *, ledger: Ledger, policy: Policy, read: Callable[[list[Feedback]], list[Feedback]]
) -> None:
    """Apply changes to a policy. ``read`` turns the logged features of outcomes into those of the present encoder."""
    failure: Exception | None = None
    for change in changes:
        try:
            _apply(change, ledger, policy, read)
        except Exception as error:  # noqa: BLE001 - one bad entry must not keep the others from being learned; raised below
            failure = error
    if failure is not None:
        raise failure


def _apply(change: Change, ledger: Ledger, policy: Policy, read: Callable[[list[Feedback]], list[Feedback]]) -> None:
    if change.settles:
        policy.update(read(ledger.lessons.feedback(change.ref)))
    elif change.closes:
        for recall in ledger.lessons.recalls_of(change.ref):
            policy.withdraw(recall)

"""What people and models decide about warnings. Each decision is a row; the last one about a matter counts."""

from __future__ import annotations

from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.failure_warning import WarningDecision
from cascade_memory.domain.records import DECIDED
from cascade_memory.errors import UndoRefused
from cascade_memory.ledger import action_log, cases
from cascade_memory.ledger.database import Connection

# What a model has made of a case that is hidden, or in quarantine, is not shown either.
_SHOWN = """NOT (by_model = 1 AND EXISTS (SELECT 1 FROM failure JOIN cases ON cases.key = failure.cases_key
  WHERE failure.namespace = warning_decision.namespace AND failure.warning = warning_decision.warning AND cases.hidden <> 0))"""


def decided(connection: Connection, namespace: int, warning: str | None = None) -> dict[str, WarningDecision]:
    """Return what was decided in a namespace, by warning; about all warnings, or about one."""
    where, values = ("", ()) if warning is None else ("AND warning = ?", (warning,))
    query = f"""SELECT warning, retired, advice, by_model FROM warning_decision
        WHERE namespace = ? {where} AND {_SHOWN} ORDER BY key"""
    retired: dict[str, bool] = {}
    advised: dict[str, tuple[str | None, bool]] = {}
    for name, never, advice, by_model in connection.execute(query, (namespace, *values)).fetchall():
        if never is None:
            advised[str(name)] = (None if advice is None else str(advice), bool(by_model))
        else:
            retired[str(name)] = bool(never)
    found: dict[str, WarningDecision] = {}
    for name in {**retired, **advised}:
        advice, by_model = advised.get(name, (None, False))
        if name in retired or advice is not None:
            found[name] = WarningDecision(retired=retired.get(name), advice=advice, by_model=by_model)
    return found


def part_of(decision: WarningDecision, before: WarningDecision, kind: str) -> tuple[int | None, str | None, int] | None:
    """Return the columns (retired, advice, by_model) that an action of a kind stores; None if it changes nothing.

    ``before`` is the decision that counts so far.

    >>> said = WarningDecision(advice="quote names")
    >>> part_of(WarningDecision(), said, "retire"), part_of(said, said, "advise")
    ((1, None, 0), None)
    """
    if kind != "advise":
        never = kind == "retire"
        return None if before.retired is never else (int(never), None, 0)
    by_model = decision.by_model and decision.advice is not None
    if by_model and before.advice is not None and not before.by_model:
        return None  # no model replaces a person's words
    return None if (before.advice, before.by_model) == (decision.advice, by_model) else (None, decision.advice, int(by_model))


def take_back(connection: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
    """Take back the decision about a warning that the action ``taken`` made: the one before it counts again."""
    if connection.execute("DELETE FROM warning_decision WHERE action = ?", (taken.id,)).rowcount != 1:
        raise UndoRefused("this decision went with the failures of its warning: nothing was changed")
    action_log.write(connection, namespace, action, subject=taken.subject)
    cases.note(connection, namespace, DECIDED, 0)

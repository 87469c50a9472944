"""Keeps the rows of warnings in step with the outcomes, the cases and the episodes that they come from.

An export lists a failure in the record of its outcome, and a decision in the record of its action.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.capabilities.warnings.tables import ACTIONS, FAILURE, WARNING_DECISION
from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.records import DECIDED, Settlement
from cascade_memory.domain.trust import LEVELS
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import CascadeError, InvalidInput, UndoRefused
from cascade_memory.ledger import action_log
from cascade_memory.ledger.audit import Undecodable, as_stored
from cascade_memory.ledger.case_states import trust_of
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.observer import Arrivals, Observer, Standing, WhyGone, WhyWithdrawn
from cascade_memory.ledger.rows import KEYS, executed_for, fetched_for, note
from cascade_memory.ledger.transfer_parts import an_object, as_text, put

_KINDS = tuple(kind.name for kind in ACTIONS)
_DECISION = WARNING_DECISION.travelling
_DELETED = "DELETE FROM failure WHERE key = ? RETURNING namespace, warning"
_DELETED_WITH_EPISODE = _DELETED.replace("= ?", "IN (SELECT key FROM outcome WHERE episode = ?)")
_VERIFIED = "(SELECT 1 FROM outcome WHERE outcome.cases_key = failure.cases_key AND withdrawn_at IS NULL)"
_UNVERIFIED = f"AND cases_key NOT IN (SELECT key FROM expired) AND NOT EXISTS {_VERIFIED}"


class Warnings(Observer):
    """Stores the failures of runs (the step that was blamed), and deletes them with their outcomes; notes results of checks."""

    watches = "EXISTS (SELECT 1 FROM checked WHERE checked.episode = episode.key)"
    kinds = _KINDS

    def on_settled(self, tx: Connection, now: Standing) -> None:
        """Note in the episode's checks (for known mistakes) the reward and which mistakes were repeated; store the failure.

        The reward is noted only if it is learned from. The failure of a replaced outcome is deleted after that: only then is it
        known whether it was the last of its warning.
        """
        if now.watched:
            reward = "(SELECT value FROM outcome WHERE key = ? AND learns = 1)"
            tx.execute(f"UPDATE checked SET reward = {reward} WHERE episode = ?", (now.outcome, now.episode))
        if now.new is not None:
            for warning, repeated in now.new.found.get("repeats", {}).items():
                what = (int(repeated), now.episode, warning)
                tx.execute("UPDATE checked SET repeated = ? WHERE episode = ? AND warning = ?", what)
            blame: Blame | None = now.new.found.get("blame")
            if blame is not None and now.new.source in TRUSTED_SOURCES and now.new.unkept != "capped":
                _store(tx, now.new, blame, now)
        if now.replaced is not None:
            settle_up(tx, tx.execute(_DELETED, (now.replaced,)).fetchall(), forgotten=now.forgotten)

    def on_withdrawn(self, tx: Connection, outcome: int, episode: int, why: WhyWithdrawn) -> None:
        """Remove the reward from the checks of the episode; delete the outcome's failure, unless the outcome was replaced."""
        tx.execute("UPDATE checked SET reward = NULL WHERE episode = ?", (episode,))
        if why != "replaced":
            settle_up(tx, tx.execute(_DELETED, (outcome,)).fetchall(), forgotten=why == "forgotten")

    def on_case_gone(self, tx: Connection, cases: Sequence[int], why: WhyGone) -> None:
        """Blank what worked instead in each failure that has it from one of these cases.

        If the cases are ``lost`` (``observer.WhyGone``), it stays where the case is set aside, or still verified.
        """
        where = f"cases_key IN ({KEYS}) {_UNVERIFIED if why == 'lost' else ''}"
        told = fetched_for(tx, f"SELECT DISTINCT namespace, warning FROM failure WHERE {where}", cases)
        if told:
            executed_for(tx, f"UPDATE failure SET instead = '', cases_key = NULL WHERE {where}", cases)
            settle_up(tx, told)

    def on_episode_gone(self, tx: Connection, episode: int) -> None:
        """Delete the failures of an episode."""
        settle_up(tx, tx.execute(_DELETED_WITH_EPISODE, (episode,)).fetchall(), forgotten=True)

    def take_back(self, tx: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
        """Take back the decision about a warning that the action ``taken`` made: the one before it counts again."""
        if tx.execute("DELETE FROM warning_decision WHERE action = ?", (taken.id,)).rowcount != 1:
            raise UndoRefused("this decision went with the failures of its warning: nothing was changed")
        action_log.write(tx, namespace, action, subject=taken.subject)
        note(tx, namespace, DECIDED, 0)

    def exported(self, tx: Connection, cases: Mapping[int, str]) -> Mapping[str, Callable[[Any], Mapping[str, Any]]]:
        """Return the failure of an outcome and the decision of an action, for their records; most have none."""
        failed = {key for (key,) in tx.execute("SELECT key FROM failure").fetchall()}
        decided = {action for (action,) in tx.execute("SELECT action FROM warning_decision").fetchall()}

        def failure(outcome: Any) -> Mapping[str, Any]:
            if outcome not in failed:
                return {}
            row = _row(tx, "failure", (*FAILURE.travelling, "cases_key"), "key", outcome)
            case = cases.get(row.pop("cases_key"))
            return {"failure": {**row, "words": json.loads(row["words"]), "case": case, "vector": as_text(row["vector"])}}

        def decision(action: Any) -> Mapping[str, Any]:
            return {"decision": _row(tx, "warning_decision", _DECISION, "action", action)} if action in decided else {}

        return {"outcome": failure, "action": decision}

    def on_imported(
        self, tx: Connection, owner: str, key: Any, namespace: int, record: Mapping[str, Any], here: Arrivals
    ) -> None:
        """Store the failure of an imported outcome, and the decision of an imported action."""
        if owner == "outcome" and record.get("failure") is not None:
            _import_failure(tx, key, namespace, record, here)
        if owner == "action" and record.get("decision") is not None:
            _import_decision(tx, key, namespace, record)

    def cured(self, tx: Connection, table: str, key: Any, vector: Callable[[str], bytes]) -> str | None:
        """Give a failure the vector of its query again; remove it if anything else is wrong with it."""
        if table != "failure":
            return None
        columns = ", ".join(f"failure.{name}" for name in FAILURE.names)
        query = f"""SELECT {columns}, episode.query FROM failure JOIN outcome ON outcome.key = failure.key
                    JOIN episode ON episode.key = outcome.episode WHERE failure.key IS ?"""
        try:
            with as_stored(tx):
                found = tx.execute(query, (key,)).fetchone()
            if found is None or any(type(value) is Undecodable for value in found):
                raise InvalidInput("a text of the failure is lost")
            *row, asked = found
            FAILURE.check(dict(zip(FAILURE.names, row, strict=True)))
            tx.execute("UPDATE failure SET vector = ? WHERE key = ?", (vector(asked), key))
        except (CascadeError, TypeError, ValueError):
            tx.execute("DELETE FROM failure WHERE key IS ?", (key,))
            return "failures removed"
        return "failures mended"


def _row(tx: Connection, table: str, names: Sequence[str], key: str, value: Any) -> dict[str, Any]:
    found = tx.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {key} = ?", (value,)).fetchone()
    return dict(zip(names, found, strict=True))


def _import_failure(tx: Connection, outcome: int, namespace: int, record: Mapping[str, Any], here: Arrivals) -> None:
    """Store a failure; it is trusted no more than the source of its outcome."""
    given = an_object(record["failure"], "the failure of an outcome")
    case = None if given["case"] is None else here.case_here(given["case"], namespace)
    vector = here.vector(given["vector"])
    if record["withdrawn_at"] is not None or record["source"] not in TRUSTED_SOURCES:
        raise InvalidInput("only an outcome that stands, and that somebody trusted has reported, blames a step")
    row = {name: given[name] for name in FAILURE.travelling if name != "vector"}
    row["words"] = json.dumps(given["words"], ensure_ascii=False)
    row["instead"] = "" if case is None and given["case"] is not None else given["instead"]
    row["cases_key"] = case
    FAILURE.check(row, row)
    row["trust"] = min(row["trust"], LEVELS[record["source"]])
    put(tx, "failure", {**row, "key": outcome, "namespace": namespace, "vector": vector})


def _import_decision(tx: Connection, action: str, namespace: int, record: Mapping[str, Any]) -> None:
    """Store a decision, if its warning has a failure here."""
    given = an_object(record["decision"], "the decision of an action")
    row = {name: given[name] for name in _DECISION}
    WARNING_DECISION.check(row, _DECISION)
    if record["action"] not in _KINDS or (record["action"] == "advise") != (row["retired"] is None):
        raise InvalidInput(f"an action of the kind {record['action']} does not decide this")
    warning = check_id(record["subject"], "subject")
    known = "SELECT 1 FROM failure WHERE namespace = ? AND warning = ? LIMIT 1"
    if tx.execute(known, (namespace, warning)).fetchone() is not None:
        put(tx, "warning_decision", {**row, "action": action, "namespace": namespace, "warning": warning})


def _store(tx: Connection, new: Settlement, blame: Blame, now: Standing) -> None:
    """Store a failure. It is trusted no more than its source, the cases shown, and the case that says what worked instead."""
    case, instead = None, blame.instead
    if blame.instead_case is not None:
        there = "SELECT key FROM cases WHERE id = ? AND namespace = ? AND hidden = 0"
        row = tx.execute(there, (blame.instead_case, new.namespace)).fetchone()
        case, instead = (None, "") if row is None else (int(row[0]), instead)  # it may have been forgotten meanwhile
    trust, levels = trust_of(LEVELS[new.source], [*now.shown, *([] if case is None else [case])])
    tx.execute(
        f"""INSERT INTO failure (key, namespace, warning, why, tool, action, happened, words, instead, cases_key, trust, vector)
            SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {trust}, vector FROM episode_vector WHERE key = ?""",
        (
            *(now.outcome, new.namespace, blame.group, blame.why, blame.tool, blame.action, blame.happened),
            *(json.dumps(list(blame.words), ensure_ascii=False), instead, case),
            *levels,
            now.episode,
        ),
    )


def settle_up(tx: Connection, lost: Sequence[Any], *, forgotten: bool = False) -> None:
    """Delete a model's advice that was made from failures that are gone; ``lost`` are their (namespace, warning).

    What people have decided about a warning is deleted with its last failure. If that failure is ``forgotten``, the results of
    the warning's checks in other episodes are deleted, too.
    """
    gone: list[str] = []
    for warning in sorted({(int(namespace), str(name)) for namespace, name in lost}):
        of_warning = "WHERE namespace = ? AND warning = ?"
        if tx.execute(f"SELECT 1 FROM failure {of_warning} LIMIT 1", warning).fetchone() is not None:
            tx.execute(f"DELETE FROM warning_decision {of_warning} AND by_model = 1", warning)
            continue
        tx.execute(f"DELETE FROM warning_decision {of_warning}", warning)
        if forgotten:
            tx.execute(f"DELETE FROM checked {of_warning}", warning)
        gone.append(warning[1])
    if gone:
        action_log.drop_notes(tx, gone)


OBSERVER = Warnings()

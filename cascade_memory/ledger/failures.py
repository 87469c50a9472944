"""Keeps the rows of warnings in step with the outcomes, the cases and the episodes that they come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.records import Settlement
from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger import action_log
from cascade_memory.ledger.case_states import trust_of
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.observer import Observer, Standing, WhyGone, WhyWithdrawn
from cascade_memory.ledger.rows import KEYS, executed_for, fetched_for

_DELETED = "DELETE FROM failure WHERE key = ? RETURNING namespace, warning"
_DELETED_WITH_EPISODE = _DELETED.replace("= ?", "IN (SELECT key FROM outcome WHERE episode = ?)")
_VERIFIED = "(SELECT 1 FROM outcome WHERE outcome.cases_key = failure.cases_key AND withdrawn_at IS NULL)"
_UNVERIFIED = f"AND cases_key NOT IN (SELECT key FROM expired) AND NOT EXISTS {_VERIFIED}"


class Warnings(Observer):
    """Stores the failures of runs (the step that was blamed), and deletes them with their outcomes; notes results of checks."""

    def on_settled(self, tx: Connection, now: Standing) -> None:
        """Note in the episode's checks (for known mistakes) the reward and which mistakes were repeated; store the failure.

        The reward is noted only if it is learned from. The failure of a replaced outcome is deleted after that: only then is it
        known whether it was the last of its warning.
        """
        if now.is_checked:
            reward = "(SELECT value FROM outcome WHERE key = ? AND learns = 1)"
            tx.execute(f"UPDATE checked SET reward = {reward} WHERE episode = ?", (now.outcome, now.episode))
        if now.new is not None:
            for warning, repeated in now.new.repeats.items():
                what = (int(repeated), now.episode, warning)
                tx.execute("UPDATE checked SET repeated = ? WHERE episode = ? AND warning = ?", what)
            if now.new.blame is not None and now.new.source in TRUSTED_SOURCES:
                _store(tx, now.new, now.new.blame, now)
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

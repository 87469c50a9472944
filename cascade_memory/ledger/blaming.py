"""Stores what an outcome says of warnings, in the transaction that settles its episode."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.records import Settlement
from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger import failures
from cascade_memory.ledger.cases import trust_of
from cascade_memory.ledger.database import Connection


def settle(
    connection: Connection, new: Settlement, episode: int, outcome: int, shown: Sequence[int], lost: failures.Lost
) -> None:
    """Store the step that is blamed, and what came of the checks of this episode.

    ``shown`` are the keys of the cases that were shown, ``lost`` the failures of the outcome that this one replaces.
    """
    reward = new.value if new.learns else None
    connection.execute("UPDATE checked SET reward = ? WHERE episode = ?", (reward, episode))
    for warning, repeated in new.repeats.items():
        what = (int(repeated), episode, warning)
        connection.execute("UPDATE checked SET repeated = ? WHERE episode = ? AND warning = ?", what)
    if new.blame is not None and new.source in TRUSTED_SOURCES:
        _blame(connection, new, new.blame, episode, outcome, shown)
    if lost:
        failures.settle_up(connection, lost)


def _blame(connection: Connection, new: Settlement, blame: Blame, episode: int, outcome: int, shown: Sequence[int]) -> None:
    """Store a failure. It is trusted like a case: no more than its source, what was shown, and the case of what worked."""
    case, instead = None, blame.instead
    if blame.instead_case is not None:
        there = "SELECT key FROM cases WHERE id = ? AND namespace = ? AND hidden = 0"
        row = connection.execute(there, (blame.instead_case, new.namespace)).fetchone()
        case, instead = (None, "") if row is None else (int(row[0]), instead)  # it may have been forgotten meanwhile
    trust, levels = trust_of(LEVELS[new.source], [*shown, *([] if case is None else [case])])
    connection.execute(
        f"""INSERT INTO failure (key, namespace, warning, why, tool, action, happened, words, instead, cases_key, trust, vector)
            SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {trust}, vector FROM episode_vector WHERE key = ?""",
        (
            *(outcome, new.namespace, blame.group, blame.why, blame.tool, blame.action, blame.happened),
            *(json.dumps(list(blame.words), ensure_ascii=False), instead, case),
            *levels,
            episode,
        ),
    )

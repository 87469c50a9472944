"""Settling an episode once, taking an outcome back, and closing episodes without one."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.records import CLOSED, SETTLED, WITHDRAWN, Settled, Settlement, Unsettled
from cascade_memory.errors import AlreadyRewarded, EpisodeClosed, UnknownEpisode
from cascade_memory.ledger import cases
from cascade_memory.ledger.compaction import NUMBERS, shrink
from cascade_memory.ledger.filters import encode_value
from cascade_memory.ledger.packing import pack_floats, pack_solution, unpack_floats, unpack_ints
from cascade_memory.ledger.reading import solution_if_readable
from cascade_memory.ledger.recalls import shown_cases

_NONE = np.zeros(0, np.float32)


def find(connection: sqlite3.Connection, episode_id: str, namespace: int | None) -> Unsettled:
    """Return an episode that is about to be settled; refuse an unknown or a foreign one."""
    row = connection.execute(
        """SELECT episode.key, episode.namespace, query, episode_vector.vector,
             coalesce(attempt.solution_kind, outcome.solution_kind), coalesce(attempt.solution, outcome.solution)
           FROM episode LEFT JOIN episode_vector ON episode_vector.key = episode.key
           LEFT JOIN attempt ON attempt.episode = episode.key
           LEFT JOIN outcome ON outcome.episode = episode.key AND withdrawn_at IS NULL WHERE id = ?""",
        (episode_id,),
    ).fetchone()
    if row is None:
        raise UnknownEpisode(f"there is no episode {episode_id!r}; recall() opens one and returns its id")
    if namespace is not None and row[1] != namespace:
        raise UnknownEpisode(f"episode {episode_id!r} belongs to another namespace; reward it there")
    recalls = connection.execute(
        "SELECT key, groups, numbers FROM recall WHERE episode = ? AND kind = 'recall' ORDER BY key", (row[0],)
    ).fetchall()
    return Unsettled(
        key=row[0],
        namespace=row[1],
        query=row[2],
        vector=unpack_floats(row[3] or b""),
        solution=solution_if_readable(row[4], row[5]),
        groups={key: unpack_ints(groups) for key, groups, _ in recalls},
        similarity={key: unpack_floats(numbers, NUMBERS)[:, 0] if numbers else _NONE for key, _, numbers in recalls},
    )


def settle(connection: sqlite3.Connection, new: Settlement) -> Settled:
    """Record an outcome with all its consequences. The same value again changes nothing."""
    found = connection.execute("SELECT key, status FROM episode WHERE id = ?", (new.episode_id,)).fetchone()
    if found is None:
        raise UnknownEpisode(f"episode {new.episode_id!r} was forgotten a moment ago")
    episode, status = found
    withdrawn: int | None = None
    if status == "settled":
        standing = _standing(connection, episode)
        if not (new.overwrite or _adds_to(standing, new)):
            if standing["value"] == new.value:
                return Settled(episode_id=new.episode_id, changed=False, case_id=standing["case"])
            raise AlreadyRewarded(
                f"episode {new.episode_id!r} was rewarded with {standing['value']:g} before; "
                f"pass overwrite=True to replace that by {new.value:g}"
            )
        _withdraw(connection, new, standing["key"])
        withdrawn = standing["key"]
    elif status != "open":
        raise EpisodeClosed(f"episode {new.episode_id!r} is {status} and takes no reward any more")
    case_key, case_id = None, None
    if new.case is not None:
        case_key, case_id, _ = cases.insert(connection, new.case)
    kind, text = pack_solution(new.solution)
    outcome = connection.execute(
        """INSERT INTO outcome (episode, namespace, value, source, at, solution_kind, solution, learns, cases_key)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (episode, new.namespace, new.value, new.source, new.at, kind, text, int(new.learns), case_key),
    ).lastrowid
    assert outcome is not None
    _keep_fields(connection, new, outcome, withdrawn)
    for recall, labels in new.agreement.items():
        # A candidate may have been forgotten since the labels were made: then they belong to no one any more.
        connection.execute(
            "UPDATE recall SET agreement = ? WHERE key = ? AND length(groups) = ?",
            (pack_floats(labels), recall, 8 * len(labels)),
        )
    _count_use(connection, episode, new.value, sign=1)
    connection.execute(
        "UPDATE episode SET status = 'settled', closed_at = ?, source = ? WHERE key = ?", (new.at, new.source, episode)
    )
    connection.execute("DELETE FROM attempt WHERE episode = ?", (episode,))
    cases.note(connection, new.namespace, SETTLED, outcome)
    return Settled(episode_id=new.episode_id, changed=True, case_id=case_id)


def _keep_fields(connection: sqlite3.Connection, new: Settlement, outcome: int, withdrawn: int | None) -> None:
    """Keep an outcome's metadata, or that of the one it replaces: whoever forgets by metadata means the episode as well."""
    if not new.metadata:
        connection.execute("UPDATE outcome_field SET outcome = ? WHERE outcome = ?", (outcome, withdrawn))
        return
    connection.execute("DELETE FROM outcome_field WHERE outcome = ?", (withdrawn,))
    for name, value in new.metadata.items():
        for one in value if isinstance(value, list) else [value]:
            connection.execute(
                "INSERT OR IGNORE INTO outcome_field VALUES (?, ?, ?, ?)", (new.namespace, name, encode_value(one), outcome)
            )


def _standing(connection: sqlite3.Connection, episode: int) -> dict[str, Any]:
    row = connection.execute(
        """SELECT outcome.key, value, outcome.solution IS NOT NULL, learns, outcome.source, cases.id
           FROM outcome LEFT JOIN cases ON cases.key = cases_key WHERE outcome.episode = ? AND withdrawn_at IS NULL""",
        (episode,),
    ).fetchone()
    return dict(zip(("key", "value", "solved", "learns", "source", "case"), row, strict=True))


def _adds_to(standing: dict[str, Any], new: Settlement) -> bool:
    """Say whether an outcome may take the place of another unasked: it brings the solution, or a word that counts more."""
    trusted, was_trusted = new.source in TRUSTED_SOURCES, standing["source"] in TRUSTED_SOURCES
    if was_trusted and not trusted:
        return False  # an agent has nothing to add to what somebody else has said
    brings_solution = new.value == standing["value"] and new.solution is not None and not standing["solved"]
    return brings_solution or (trusted and not was_trusted) or (new.learns and not standing["learns"])


def _withdraw(connection: sqlite3.Connection, new: Settlement, outcome: int) -> None:
    """Take back what the standing outcome did: its case, its labels, its counts."""
    episode, value, case_key = connection.execute(
        "SELECT episode, value, cases_key FROM outcome WHERE key = ?", (outcome,)
    ).fetchone()
    connection.execute("UPDATE outcome SET withdrawn_at = ? WHERE key = ?", (new.at, outcome))
    connection.execute("UPDATE recall SET agreement = NULL WHERE episode = ?", (episode,))
    _count_use(connection, episode, value, sign=-1)
    if case_key is not None:
        cases.release(connection, case_key)
    cases.note(connection, new.namespace, WITHDRAWN, outcome)


def _count_use(connection: sqlite3.Connection, episode: int, value: float, *, sign: int) -> None:
    for key in shown_cases(connection, episode):
        connection.execute(
            "UPDATE cases SET shown = shown + ?, succeeded = succeeded + ? WHERE key = ?", (sign, sign * value, key)
        )


def close(connection: sqlite3.Connection, episode_ids: list[str], status: str, at: float) -> list[str]:
    """Close open episodes without a label (``censored`` or ``expired``); return those that were open."""
    closed: list[str] = []
    for episode_id in episode_ids:
        row = connection.execute(
            "UPDATE episode SET status = ?, closed_at = ? WHERE id = ? AND status = 'open' RETURNING key, namespace",
            (status, at, episode_id),
        ).fetchone()
        if row is not None:
            connection.execute("DELETE FROM attempt WHERE episode = ?", (row[0],))
            shrink(connection, [row[0]])  # nobody will learn from it
            cases.note(connection, row[1], CLOSED, row[0])
            closed.append(episode_id)
    return closed

"""What undoing a source needs besides deletion: copies of its cases are found, and cases that made room come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cascade_memory.bandit.case_worth import worth
from cascade_memory.ledger import room, running
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.lessons import votes_of
from cascade_memory.ledger.naming import Named
from cascade_memory.ledger.recalls import keys_shown
from cascade_memory.ledger.rows import KEYS, fetched_for, usable

_VISIBLE = "SELECT count(*) FROM cases WHERE namespace = ? AND hidden = 0"
_SHOWN = """SELECT cases.key, cases.id, candidates, chosen FROM recall JOIN cases ON cases.episode = recall.episode
  WHERE recall.namespace = ? AND recall.shown = 1"""


class Undoing:
    """Collects before a deletion what cannot be found out afterwards; brings cases back after it, in the same transaction."""

    def __init__(self, namespace: int, max_cases: int | None, window: int) -> None:
        self._namespace, self._max_cases, self._window = namespace, max_cases, window
        self._since: float | None = None  # when its first case displaced another one, at the earliest
        self._visible = 0
        self._copies: dict[int, str] = {}
        self.brought_back: list[str] = []
        self.made_after: list[str] = []

    def trace(self, connection: Connection, keys: set[int]) -> None:
        """Note the cases that were made after one of these cases was shown, directly or by way of other cases.

        A case that a person wrote as a correction is not noted.
        """
        corrections = "SELECT made FROM action WHERE namespace = ? AND kind = 'correct' AND made IS NOT NULL"
        by_hand = {made for (made,) in connection.execute(corrections, (self._namespace,)).fetchall()}
        seen = self._seen(connection)
        traced = set(keys)
        while more := {key for key, (_, shown) in seen.items() if key not in traced and not shown.isdisjoint(traced)}:
            traced |= more
            self._copies |= {key: seen[key][0] for key in more if seen[key][0] not in by_hand}

    def _seen(self, connection: Connection) -> dict[int, tuple[str, set[int]]]:
        """Return, by the key of each case, its id and the keys of the cases that were shown before it was made."""
        seen: dict[int, tuple[str, set[int]]] = {}
        rows = connection.execute(_SHOWN, (self._namespace,)).fetchall()
        kept = connection.execute("SELECT key, id, record FROM expired WHERE namespace = ?", (self._namespace,)).fetchall()
        made = {
            episode: (key, case_id)
            for key, case_id, episode in usable(kept, lambda row: (*row[:2], json.loads(row[2])["episode"]))
        }
        shown = f"SELECT episode, candidates, chosen FROM recall WHERE shown = 1 AND episode IN ({KEYS})"
        aside = fetched_for(connection, shown, [episode for episode in made if episode is not None])
        for key, case_id, *what in [*rows, *((*made[episode], *what) for episode, *what in aside)]:
            seen.setdefault(key, (case_id, set()))[1].update(keys_shown([what]))
        return seen

    def measure(self, connection: Connection, named: Named) -> None:
        """Note when the source's first outcome or addition came, and how many visible cases there are, including its own."""
        moments = [
            at
            for table, column, keys in (
                ("outcome", "episode", named.episodes),
                ("outcome", "key", named.outcomes),
                ("addition", "key", named.additions),
            )
            for (at,) in fetched_for(connection, f"SELECT at FROM {table} WHERE {column} IN ({KEYS})", sorted(keys))
        ]
        self._since = min(moments, default=None)
        self._visible = self._count(connection)

    def make_good(self, connection: Connection) -> int:
        """Bring back the most valuable of the cases evicted since the moment that ``measure`` noted, as many as fit.

        At most ``max_cases`` cases are visible then; if that is None, as many as ``measure`` counted. Return how many came
        back.
        """
        visible = self._count(connection)
        free = (self._visible if self._max_cases is None else self._max_cases) - visible
        if self._since is not None and free > 0:
            for key, case_id in self._best(connection, free):
                room.restore(connection, key)
                self.brought_back.append(case_id)
        there = {
            one for (one,) in fetched_for(connection, f"SELECT id FROM cases WHERE id IN ({KEYS})", [*self._copies.values()])
        }
        self.made_after = [case_id for _, case_id in sorted(self._copies.items()) if case_id in there]
        return len(self.brought_back)

    def _count(self, connection: Connection) -> int:
        return int(connection.execute(_VISIBLE, (self._namespace,)).fetchone()[0])

    def _best(self, connection: Connection, most: int) -> list[tuple[int, str]]:
        """Return (key, id) of the ``most`` most valuable cases that can come back, in order of age."""
        rows = connection.execute(
            """SELECT key, id, record FROM expired
               WHERE namespace = ? AND why = 'evicted' AND expired_at >= ? AND until_run >= ? ORDER BY key""",
            (self._namespace, self._since, running.now(connection)),
        ).fetchall()
        kept = usable(rows, _record)
        table = np.array([numbers for _, _, *numbers in kept], np.float64).reshape(-1, 3)
        keys = np.array([key for key, *_ in kept], np.int64)
        value = worth(keys, table[:, 0], table[:, 1], table[:, 2], votes_of(connection, self._namespace, self._window))
        best = sorted(np.argsort(value, kind="stable")[-most:].tolist())  # of equally valuable ones, the younger
        return [kept[place][:2] for place in best]


def _record(row: Sequence[Any]) -> tuple[int, str, float, float, float]:
    """Return the key, the id, the novelty and the counts of use (shown, succeeded) of a case that is set aside."""
    rest = json.loads(row[2])
    return int(row[0]), str(row[1]), float(rest["novelty"]), float(rest["shown"]), float(rest["succeeded"])

"""The part of the ledger that reads episodes, records how runs ended, and closes episodes without an outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.trajectory import Solution
from cascade_memory.errors import StoreCorrupt
from cascade_memory.ledger import episode_states
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.provenance import conditions
from cascade_memory.ledger.recalls import keep_metadata, shown_cases
from cascade_memory.ledger.reports import check_room, take_back_report
from cascade_memory.ledger.rows import (
    check_columns,
    fetched,
    given,
    metadata_if_readable,
    pack_solution,
    solution_if_readable,
    usable,
)

_SET = """VALUES (?, ?, ?, ?, ?) ON CONFLICT (episode) DO UPDATE SET status = excluded.status,
  solution_kind = excluded.solution_kind, solution = excluded.solution, at = excluded.at"""
_SET_ATTEMPT, _SET_JUDGED = f"INSERT INTO attempt {_SET}", f"INSERT INTO judged_attempt {_SET}"
_BY_ANOTHER = """SELECT episode.key FROM episode JOIN outcome ON outcome.episode = episode.key AND withdrawn_at IS NULL
  WHERE episode.id = ? AND episode.namespace = ? AND status = 'settled' AND outcome.actor <> coalesce(episode.actor, '')"""
# What the host recorded itself takes precedence over an agent's report.
_SELECT = """SELECT episode.key, episode.id, namespace.name, episode.query, episode.status, episode.arm, episode.opened_at,
  episode.closed_at, outcome.value, episode.source, coalesce(attempt.solution_kind, outcome.solution_kind),
  coalesce(attempt.solution, outcome.solution), (SELECT count(*) FROM recall WHERE recall.episode = episode.key),
  episode.thread, attempt.status, outcome.solution_kind, outcome.solution, outcome.agents_words,
  coalesce(outcome.metadata, episode.metadata), episode.actor, episode.channel
  FROM episode JOIN namespace ON namespace.id = episode.namespace
  LEFT JOIN outcome ON outcome.episode = episode.key AND outcome.withdrawn_at IS NULL
  LEFT JOIN attempt ON attempt.episode = episode.key"""


class SQLEpisodes:
    """Reads episodes, records how their runs ended, and closes those that nobody will judge."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def one(self, episode_id: str) -> Episode | None:
        """Return the episode that has this id; None if it does not exist."""
        with self._connections.read() as connection:
            return read_episode(connection, episode_id)

    def opened_at(self, episode_id: str) -> float | None:
        """Return when an episode was opened; None if it does not exist.

        The time tells the episode from an earlier one with the same id.
        """
        with self._connections.read() as connection:
            row = connection.execute("SELECT opened_at FROM episode WHERE id = ?", (episode_id,)).fetchone()
        return None if row is None else float(row[0])

    def listed(
        self, namespace: int | None, *, status: str | None = None, before: float | None = None, source: str | None = None
    ) -> list[Episode]:
        """Return episodes, oldest first; filtered by namespace, status, time of opening, and source of the judgement."""
        where, values = given({"episode.namespace": namespace, "episode.status": status, "episode.source": source})
        if before is not None:
            where, values = f"{where} AND episode.opened_at < ?", [*values, before]
        with self._connections.read() as connection:
            rows = fetched(connection, f"{_SELECT} WHERE 1 = 1{where} ORDER BY episode.key", values)
            return usable(rows, lambda row: _episode(connection, row))

    def page(
        self,
        namespace: int,
        limit: int,
        *,
        after: int | None = None,
        newest_first: bool = False,
        status: str | None = None,
        source: str | None = None,
        wanted: Wanted | None = None,
    ) -> list[tuple[int, Episode]]:
        """Return the next ``limit`` episodes of a namespace with their keys, those that follow the key ``after``.

        They come oldest or newest first, filtered by status, by the source of the judgement, and by who asked and when.
        """
        compared, order, start = ("<", "DESC", 2**62) if newest_first else (">", "ASC", 0)
        where, values = ("", []) if wanted is None else conditions(wanted, "episode", "opened_at")
        more, further = given({"episode.status": status, "episode.source": source})
        query = f"""{_SELECT} WHERE episode.namespace = ? AND episode.key {compared} ? {where}{more}
                    ORDER BY episode.key {order} LIMIT ?"""
        values = [namespace, start if after is None else after, *values, *further, limit]
        with self._connections.read() as connection:
            return [(row[0], _episode(connection, row)) for row in fetched(connection, query, values)]

    def latest(self, namespace: int, thread: str) -> Episode | None:
        """Return the newest episode of a thread; None if there is none."""
        with self._connections.read() as connection:
            query = f"{_SELECT} WHERE episode.thread = ? AND episode.namespace = ? ORDER BY episode.key DESC LIMIT 1"
            rows = fetched(connection, query, (thread, namespace))
            return _episode(connection, rows[0]) if rows else None

    def finish(
        self, episode_id: str, namespace: int, status: str, solution: Solution | None, more: Mapping[str, Any] | None = None
    ) -> bool:
        """Record how the run of an open episode ended, and ``more`` metadata; return False if the episode is not open.

        If another actor has judged the episode before its run ended, the end of the run is set aside: it counts if that actor
        is undone. Otherwise nothing changes for an episode that is not open.
        """
        with self._connections.write(durable=False) as connection:
            row = connection.execute(
                "SELECT key FROM episode WHERE id = ? AND namespace = ? AND status = 'open'", (episode_id, namespace)
            ).fetchone()
            kept = row or connection.execute(_BY_ANOTHER, (episode_id, namespace)).fetchone()
            if kept is not None:
                kind, text = pack_solution(solution)
                connection.execute(_SET_JUDGED if row is None else _SET_ATTEMPT, (kept[0], status, kind, text, time.time()))
            if row is not None and more:
                keep_metadata(connection, namespace, row[0], more)
            return row is not None

    def close(self, ids: Sequence[str], status: str, *, reported: bool = False) -> list[str]:
        """Close open episodes without a label (``censored`` or ``expired``), durably; return those that were open.

        With ``reported``, also close those that only their agent has judged, and withdraw that judgement.
        """
        with self._connections.write(durable=True) as connection:
            closed: list[str] = []
            at = time.time()
            for episode_id in ids:
                if reported:
                    take_back_report(connection, episode_id, at)
                if episode_states.close(connection, episode_id, status, at):
                    closed.append(episode_id)
            return closed

    def close_opened_by(self, recall: int) -> None:
        """Censor the episode that this recall has opened, if it is still open and its run has not ended: nobody will end it."""
        with self._connections.write(durable=True) as connection:
            episode_states.close_opened_by(connection, recall, time.time())

    def check_room(self, namespace: int, size: int) -> None:
        """Raise ``QuotaExceeded`` if too many unconfirmed agents' reports wait in a namespace to add one of ``size`` bytes."""
        with self._connections.read() as connection:
            check_room(connection, namespace, 1, size)


def read_episode(connection: Connection, episode_id: str) -> Episode | None:
    """Return the episode that has this id; None if it does not exist."""
    rows = fetched(connection, f"{_SELECT} WHERE episode.id = ?", (episode_id,))
    return _episode(connection, rows[0]) if rows else None


def _episode(connection: Connection, row: Sequence[Any]) -> Episode:
    try:
        numbers = [value for value in (row[8], row[12]) if value is not None]
        check_columns(texts=row[1:6], maybe=(*row[9:10], row[13], row[14], *row[19:21]), numbers=numbers, moments=row[6:8])
    except TypeError as error:
        unreadable = "the ledger has an episode that cannot be read; mend it: cascade-memory data doctor --fix"
        raise StoreCorrupt(unreadable) from error
    shown = shown_cases(connection, row[0])
    ids = [
        found[0]
        for key in shown
        if (found := connection.execute("SELECT id FROM cases WHERE key = ?", (key,)).fetchone()) is not None
    ]
    return Episode(
        id=row[1],
        namespace=row[2],
        query=row[3],
        status=row[4],
        arm=row[5],
        opened_at=row[6],
        closed_at=row[7],
        reward=row[8],
        source=row[9],
        solution=solution_if_readable(row[10], row[11]),
        recalls=row[12],
        thread_id=row[13],
        ended=row[14],
        cases=tuple(ids),
        reported=solution_if_readable(row[15], row[16]) if row[17] else None,
        metadata=metadata_if_readable(row[18]),
        actor=row[19],
        channel=row[20],
    )

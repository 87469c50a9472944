"""Pauses those who hold a lease for longer than it lasts, and records in the database under which epoch it is written."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import psycopg

from cascade_memory.ledger.postgres.leases import LASTS

_ENOUGH = LASTS + 1.5  # seconds of a pause, at least
_GIVE_UP = 60.0
WITHIN = 20.0  # seconds in which another has to take over
_LEASES = "SELECT job, namespace, holder, epoch, expires > clock_timestamp() FROM cascade_memory.lease"
# Nobody takes over tidying where nothing has to be tidied: the time runs from when there are too many cases.
_CROWDED = "SELECT namespace FROM cascade_memory.cases GROUP BY namespace HAVING count(*) > %s"

# Whatever is written for a job leaves a line: evicted cases in the log, how far Chroma was fed in the facts. Each such line
# is recorded together with the lease as it is then, and the epoch in which its writer believed to be.
_AUDIT = """
CREATE SCHEMA torture;
CREATE TABLE torture.fenced (at timestamptz DEFAULT clock_timestamp(), job text, namespace bigint, writer text, believed bigint,
  holder text, epoch bigint);
CREATE FUNCTION torture.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE of_job text := TG_ARGV[0]; of_namespace bigint := 0;
BEGIN
  IF of_job = 'tidying' THEN of_namespace := NEW.namespace; END IF;
  INSERT INTO torture.fenced (job, namespace, writer, believed, holder, epoch)
    SELECT of_job, of_namespace, current_setting('application_name'),
      nullif(current_setting('torture.epoch', true), '')::bigint, lease.holder, lease.epoch
    FROM (SELECT 1) AS one LEFT JOIN cascade_memory.lease ON lease.job = of_job AND lease.namespace = of_namespace;
  RETURN NULL;
END $$;
CREATE TRIGGER torture AFTER INSERT ON cascade_memory.change FOR EACH ROW WHEN (NEW.kind IN ('evicted', 'expired'))
  EXECUTE FUNCTION torture.note('tidying');
CREATE TRIGGER torture AFTER INSERT OR UPDATE ON cascade_memory.meta FOR EACH ROW WHEN (NEW.key LIKE 'mirror%')
  EXECUTE FUNCTION torture.note('feeding Chroma');
"""
_WRONG = """believed IS DISTINCT FROM epoch
    OR split_part(writer, ' ', 2) IS DISTINCT FROM split_part(holder, ' ', 2)"""
_OLD = f"SELECT count(*) FILTER (WHERE {_WRONG}), count(*) FROM torture.fenced"
_WHICH = (
    f"SELECT at::text, job, namespace, writer, believed, holder, epoch FROM torture.fenced WHERE {_WRONG} ORDER BY at LIMIT 5"
)


def audit(url: str) -> None:
    """Begin to record."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_AUDIT)


def old_epochs(url: str) -> tuple[int, int]:
    """Return how much was written under an epoch that was over (or without one), and how much was written at all."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(_OLD).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def examples_of_old_epochs(url: str) -> list[str]:
    """Return some of what was written so, with the writer, what it believed, and who held the lease."""
    with psycopg.connect(url, autocommit=True) as connection:
        return [str(row) for row in connection.execute(_WHICH)]


@dataclass
class Pause:
    """One process that is stopped."""

    pid: int
    job: str
    namespace: int
    epoch: int
    began: float
    due: float | None = None  # when there was something to do for the job, and nobody to do it
    taken_over: float | None = None  # seconds from then until another held the lease

    @property
    def too_late(self) -> bool:
        """True if nobody took over in time, although there was something to do."""
        return self.due is not None and (self.taken_over is None or self.taken_over > WITHIN)


class Pauses:
    """Stops holders of leases, one at a time for each job, and lets them go on."""

    def __init__(self, url: str, rng: random.Random, *, most: int) -> None:
        self._url, self._rng, self._most = url, rng, most
        self.now: list[Pause] = []
        self.past: list[Pause] = []

    @property
    def pids(self) -> set[int]:
        """Who is paused."""
        return {pause.pid for pause in self.now}

    def _read(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with contextlib.suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True, connect_timeout=2) as connection:
            return connection.execute(query, parameters).fetchall()
        return []  # the server is not there

    def begin(self, alive: Collection[int]) -> bool:
        """Pause somebody who holds a lease; return False if nobody does."""
        held = []
        for job, namespace, holder, epoch, valid in self._read(_LEASES):
            pid = int(holder.split()[1])
            if valid and pid in alive and pid not in self.pids and job not in {pause.job for pause in self.now}:
                held.append(Pause(pid, job, namespace, epoch, time.monotonic()))
        if not held:
            return False
        job = self._rng.choice(sorted({pause.job for pause in held}))
        chosen = self._rng.choice([pause for pause in held if pause.job == job])
        os.kill(chosen.pid, signal.SIGSTOP)
        self.now.append(chosen)
        return True

    def look(self) -> None:
        """Note who was relieved, and let those go on who were away for long enough."""
        if not self.now:
            return
        epochs = {(job, namespace): epoch for job, namespace, _, epoch, _ in self._read(_LEASES)}
        crowded = {namespace for (namespace,) in self._read(_CROWDED, self._most)}
        for pause in list(self.now):
            now = time.monotonic()
            passed = now - pause.began
            if pause.taken_over is None:
                self._note(pause, now, crowded=pause.namespace in crowded)
                if epochs.get((pause.job, pause.namespace), 0) > pause.epoch:
                    pause.taken_over = now - (now if pause.due is None else pause.due)
            if passed > _GIVE_UP or (pause.taken_over is not None and passed > _ENOUGH):
                os.kill(pause.pid, signal.SIGCONT)
                self.now.remove(pause)
                self.past.append(pause)

    def without_server(self, seconds: float) -> None:
        """Leave out the time in which the server was not there: nobody can take over then."""
        for pause in self.now:
            if pause.due is not None and pause.taken_over is None:
                pause.due += seconds

    @staticmethod
    def _note(pause: Pause, now: float, *, crowded: bool) -> None:
        """Note since when another one is needed: to feed Chroma always, to tidy while there are too many cases."""
        if pause.job != "tidying":
            pause.due = pause.began if pause.due is None else pause.due
        elif not crowded:
            pause.due = None
        elif pause.due is None:
            pause.due = now

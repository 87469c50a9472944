"""Reads the steps that failed runs are blamed for, and records checks and decisions on warnings.

Each decision is a row; the last one about a matter counts.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from numpy.typing import NDArray

from cascade_memory.capabilities.warnings.records import Blame, Check, Failure, WarningDecision
from cascade_memory.capabilities.warnings.transaction import settle_up
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.failure_warning import Blamed, Tally
from cascade_memory.domain.records import DECIDED
from cascade_memory.errors import EpisodeClosed, UnknownEpisode, UnknownWarning
from cascade_memory.ledger import action_log
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.rows import fetched, note, usable, with_vectors

_WHY = get_args(Blamed)
_NOTHING = (0, 0, 0.0)
# What a case says that is hidden, or in quarantine, is not shown either. Whose a failure is: who asked, as with a case.
_FAILURES = """SELECT failure.key, episode.id, failure.why, failure.tool, failure.action, failure.happened, failure.warning,
    failure.words, CASE WHEN cases.hidden <> 0 THEN '' ELSE failure.instead END,
    CASE WHEN cases.hidden <> 0 THEN NULL ELSE coalesce(cases.id, expired.id) END, episode.query, outcome.at, outcome.source,
    CASE WHEN cases.trust < failure.trust THEN cases.trust ELSE failure.trust END, coalesce(episode.actor, outcome.actor),
    CASE WHEN episode.actor IS NULL THEN outcome.channel ELSE episode.channel END,
    CASE WHEN outcome.source = 'human' THEN NULL ELSE outcome.actor END, failure.vector
  FROM failure JOIN outcome ON outcome.key = failure.key AND outcome.withdrawn_at IS NULL
    JOIN episode ON episode.key = outcome.episode
    LEFT JOIN cases ON cases.key = failure.cases_key LEFT JOIN expired ON expired.key = failure.cases_key
  WHERE failure.namespace = ? AND failure.key > ? {} ORDER BY failure.key LIMIT ?"""
_CHECKS = """SELECT episode.id, checked.warning, checked.warned, checked.propensity, checked.at, checked.call,
    checked.repeated, checked.reward
  FROM checked JOIN episode ON episode.key = checked.episode WHERE episode.id = ?"""
_TALLIES = """SELECT warning, warned, count(*), sum(repeated), sum(reward) FROM checked
  WHERE namespace = ? AND repeated IS NOT NULL AND reward IS NOT NULL GROUP BY warning, warned"""
_BEYOND = "SELECT key FROM failure WHERE namespace = ? ORDER BY key DESC LIMIT 1 OFFSET ?"
_OLD = """SELECT failure.key FROM failure JOIN outcome ON outcome.key = failure.key
  WHERE failure.namespace = ? AND (failure.key <= ? OR outcome.at < ?)"""

# What a model has made of a case that is hidden, or in quarantine, is not shown either.
_SHOWN = """NOT (by_model = 1 AND EXISTS (SELECT 1 FROM failure JOIN cases ON cases.key = failure.cases_key
  WHERE failure.namespace = warning_decision.namespace AND failure.warning = warning_decision.warning AND cases.hidden <> 0))"""


class WarningRows:
    """Reads failures, decisions and checks, and writes decisions and checks; ``settle`` writes the failures."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def failures(self, namespace: int, after: int = 0, limit: int = 1_000, *, warning: str | None = None) -> list[Failure]:
        """Return up to ``limit`` failures whose outcomes stand, in order of key, after a key; of all warnings or of one.

        The result is empty only if none follow. The key of a failure is that of its outcome, which the log names. The actor of
        a failure is whoever asked, as with the cases of an episode. A failure is trusted no more than its source, the cases
        that were shown, and the case that says what worked.
        """
        query = _FAILURES.format("" if warning is None else "AND failure.warning = ?")
        which = () if warning is None else (warning,)
        with self._connections.read() as connection:
            while True:
                read = fetched(connection, query, (namespace, after, *which, limit))
                rows, vectors = with_vectors([row for row in read if type(row[-1]) is bytes])
                found = usable(zip(rows, vectors, strict=True), lambda both: _failure(*both))
                if found or len(read) < limit or not read:
                    return found
                after = read[-1][0]  # no row of this batch can be used: go on with the next batch

    def count(self, namespace: int | None) -> int:
        """Return the number of warnings that have a failure, in a namespace or in all."""
        where, values = ("", ()) if namespace is None else ("WHERE namespace = ?", (namespace,))
        with self._connections.read() as connection:
            query = f"SELECT count(*) FROM (SELECT DISTINCT namespace, warning FROM failure {where}) AS one"
            return int(connection.execute(query, values).fetchone()[0])

    def decisions(self, namespace: int) -> Mapping[str, WarningDecision]:
        """Return, by warning, what people and models have decided about it."""
        with self._connections.read() as connection:
            return _decided(connection, namespace)

    def tallies(self, namespace: int) -> Mapping[str, Tally]:
        """Return what came of the checks of each warning, by warning.

        A check counts if its episode has an outcome that teaches, and if it is known whether the mistake was repeated.
        """
        with self._connections.read() as connection:
            rows = connection.execute(_TALLIES, (namespace,)).fetchall()
        counted: dict[str, dict[bool, tuple[int, int, float]]] = {}
        for warning, warned, count, repeated, reward in rows:
            counted.setdefault(str(warning), {})[bool(warned)] = (int(count), int(repeated), float(reward))
        return {warning: _tally(arms.get(True, _NOTHING), arms.get(False, _NOTHING)) for warning, arms in counted.items()}

    def checks(self, episode_id: str) -> Sequence[Check]:
        """Return the checks of an episode, oldest first."""
        with self._connections.read() as connection:
            rows = fetched(connection, f"{_CHECKS} ORDER BY checked.key", (episode_id,))
        return usable(rows, _check)

    def note_check(self, new: Check, *, most: int | None = None) -> Check:
        """Record a check, and return it; if this episode and warning have a check already, only return the earlier one.

        If ``most`` other warnings were given in this episode already, nothing is recorded, and the check is returned as a
        decision not to warn: calls made at the same time must not get more than ``most`` warnings together. The write is not
        durable: a power cut may lose it. Raises ``UnknownEpisode`` if there is no such episode, ``EpisodeClosed`` if it has
        ended.
        """
        with self._connections.write(durable=False) as connection:
            query = "SELECT key, namespace, status FROM episode WHERE id = ?"
            found = connection.execute(query, (new.episode_id,)).fetchone()
            if found is None:
                raise UnknownEpisode(f"there is no episode {new.episode_id!r}; recall() opens one and returns its id")
            episode, namespace, status = found
            if status != "open":
                raise EpisodeClosed(f"episode {new.episode_id!r} is {status}: nothing is checked in it any more")
            if new.warned and most is not None:
                query = "SELECT count(*) FROM checked WHERE episode = ? AND warned = 1 AND warning <> ?"
                if connection.execute(query, (episode, new.warning)).fetchone()[0] >= most:
                    return dataclasses.replace(new, warned=False)
            connection.execute(
                """INSERT INTO checked (episode, namespace, warning, warned, propensity, at, call)
                   VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
                (episode, namespace, new.warning, int(new.warned), float(new.propensity), new.at, new.call),
            )
            row = connection.execute(f"{_CHECKS} AND checked.warning = ?", (new.episode_id, new.warning)).fetchone()
            return _check(row)

    def decide(self, namespace: int, warning: str, decision: WarningDecision, action: NewAction) -> bool:
        """Store a decision about a warning, durably, with an entry in the audit log; return whether that changed anything.

        The kind of the action says what is decided: "retire" and "restore" decide whether the warning is shown, "advise" sets
        its advice (None removes it). A model's advice does not replace a person's. Raises ``UnknownWarning`` if the warning has
        no failure.
        """
        with self._connections.write(durable=True) as connection:
            known = "SELECT 1 FROM failure WHERE namespace = ? AND warning = ? LIMIT 1"
            if connection.execute(known, (namespace, warning)).fetchone() is None:
                raise UnknownWarning(f"there is no warning {warning!r} in this namespace; memory.warnings.all() lists them")
            before = _decided(connection, namespace, warning).get(warning, WarningDecision())
            part = part_of(decision, before, action.kind)
            if part is None:
                return False
            entry = action_log.write(connection, namespace, action, subject=warning)
            connection.execute(
                """INSERT INTO warning_decision (namespace, warning, action, retired, advice, by_model)
                   VALUES (?, ?, ?, ?, ?, ?)""",
                (namespace, warning, entry, *part),
            )
            note(connection, namespace, DECIDED, 0)
            return True

    def keep_newest(self, namespace: int, keep: int, *, since: float = 0.0) -> int:
        """Delete the failures beyond the newest ``keep`` and those before ``since``; return how many were deleted.

        The results of checks are kept. The write is not durable.
        """
        with self._connections.read() as connection:
            beyond = connection.execute(_BEYOND, (namespace, keep)).fetchone()
            values = (namespace, 0 if beyond is None else beyond[0], since)
            old = beyond is not None or (since > 0.0 and connection.execute(f"{_OLD} LIMIT 1", values).fetchone() is not None)
        if not old:
            return 0
        with self._connections.write(durable=False) as connection:
            query = f"DELETE FROM failure WHERE key IN ({_OLD}) RETURNING namespace, warning"
            lost = connection.execute(query, values).fetchall()
            settle_up(connection, lost)
            if lost:
                note(connection, namespace, DECIDED, 0)
            return len(lost)


def _decided(connection: Connection, namespace: int, warning: str | None = None) -> dict[str, WarningDecision]:
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


def _tally(warned: tuple[int, int, float], silent: tuple[int, int, float]) -> Tally:
    return Tally(
        warned=warned[0],
        warned_repeated=warned[1],
        warned_reward=warned[2],
        silent=silent[0],
        silent_repeated=silent[1],
        silent_reward=silent[2],
    )


def _failure(row: Sequence[Any], vector: NDArray[Any]) -> Failure:
    key, episode_id, why, tool, action, happened, warning, words, instead, case, *rest = row
    query, at, source, trust, actor, channel, reporter, _ = rest
    said = tuple(json.loads(words))
    if why not in _WHY or not all(type(text) is str for text in (action, happened, warning, instead, query, *said)):
        raise ValueError(f"the failure {key!r} holds what it cannot hold")  # an edited row may hold anything
    blame = Blame(
        why=why,
        tool=tool,
        action=action,
        happened=happened,
        group=warning,
        words=said,
        instead=instead,
        instead_case=case,
    )
    return Failure(
        key=key,
        episode_id=episode_id,
        blame=blame,
        query=query,
        vector=vector,
        at=at,
        source=source,
        trust=trust,
        actor=actor,
        channel=channel,
        reporter=reporter,
    )


def _check(row: Sequence[Any]) -> Check:
    episode_id, warning, warned, propensity, at, call, repeated, reward = row
    return Check(
        episode_id=episode_id,
        warning=warning,
        warned=bool(warned),
        propensity=propensity,
        at=at,
        call=call,
        repeated=None if repeated is None else bool(repeated),
        reward=reward,
    )

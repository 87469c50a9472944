"""Settles episodes: records their outcomes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.digests import Signed
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.records import CASE_ADDED, SETTLED, Column, NewCase, Settled, Settlement, Unsettled
from cascade_memory.domain.trust import REVISED, level
from cascade_memory.errors import AlreadyRewarded, ContentChanged, EpisodeClosed, TicketRefused, UnknownEpisode
from cascade_memory.ledger import case_states, cases, episode_states, redeeming, verdicts
from cascade_memory.ledger.before_settling import UNSETTLED, Before, capped, read_before
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.episodes import read_episode
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.filters import OUTCOMES, keep_fields
from cascade_memory.ledger.observer import Standing
from cascade_memory.ledger.recalls import count_use, recorded
from cascade_memory.ledger.reports import check_room, withdraw
from cascade_memory.ledger.rows import (
    metadata_if_readable,
    note,
    note_both,
    pack_floats,
    pack_metadata,
    pack_solution,
    solution_if_readable,
    unpack_floats,
    unpack_ints,
)
from cascade_memory.ledger.verifications import is_correction, metadata_of_outcome, reconsider

_NONE = np.zeros(0, np.float32)


class Settling:
    """The methods of the ledger that record outcomes."""

    connections: Database

    def unsettled(self, episode_id: str, namespace: int | None) -> Unsettled:
        """Return what is needed to settle an episode; raise ``UnknownEpisode`` if this namespace has no such episode."""
        with self.connections.read() as connection:
            rows = connection.execute(UNSETTLED, (episode_id,)).fetchall()
            kinds = self._asked_kinds(connection, episode_id)
            row = rows[0] if rows else None
            if row is None or namespace not in (None, row[1]):  # one answer for both: it says nothing of other namespaces
                raise UnknownEpisode(
                    f"there is no episode {episode_id!r} here; recall() opens one and returns its id, and a reward goes to the "
                    "namespace of its recall (memory.acting(namespace=...))"
                )
            return Unsettled(
                key=row[0],
                namespace=row[1],
                query=row[2],
                vector=unpack_floats(row[3] or b""),
                solution=solution_if_readable(row[4], row[5]),
                agents_words=bool(row[6]),
                watched=bool(row[7]),
                groups={key: unpack_ints(groups) for *_, key, groups, _ in rows if key is not None},
                similarity={key: _similarity(numbers) for *_, key, _, numbers in rows if key is not None},
                kinds=None if kinds is None else {group: (digest, kind) for group, digest, kind in kinds},
            )

    def _asked_kinds(self, connection: Connection, episode_id: str) -> Sequence[Any] | None:
        """Return (group, digest, kind) for the recalled solutions, if reading them here saves a round trip to a server.

        These tell the solutions apart (``cases.told_apart``). None if it saves nothing: they are then read later.
        """
        del connection, episode_id
        return None

    def settle(self, new: Settlement) -> Settled:
        """Record an outcome, its labels and its case, durably: all or nothing. Recording the same value again changes nothing.

        Raises ``AlreadyRewarded`` if the outcome contradicts one that it may not replace, ``EpisodeClosed`` if the episode was
        closed without an outcome, ``UnknownEpisode`` if the episode was deleted, ``ContentChanged`` if the episode differs from
        what was confirmed, and ``QuotaExceeded`` if too many agents' reports already wait for confirmation.
        """
        with self.connections.write(durable=True, brings_vectors=True) as connection:
            if new.opens is not None:
                recorded(connection, new.opens)
            return settled(connection, new)


def settled(connection: Connection, new: Settlement, *, forgotten: bool = False) -> Settled:
    """Record an outcome within a transaction; with ``forgotten``, the outcome that it replaces is about to be forgotten."""
    before = read_before(connection, new)
    episode, status, asked_by = before.key, before.status, before.asked_by
    if new.ticket is not None and not _redeems(connection, new, new.ticket, episode):
        return Settled(episode_id=new.episode_id, changed=False, case_id=_case_of(connection, episode))
    taken = _takes_back(new)
    _check_confirmed(connection, new)
    new, within_a_minute = (new, 0) if new.cap is None else capped(connection, new)
    current = _current_outcome(connection, episode) if status == "settled" else None
    if current is None and status != "open":
        raise EpisodeClosed(f"episode {new.episode_id!r} is {status} and can no longer be rewarded")
    if current is not None and not verdicts.is_verdict(new.action) and not _may_replace(current, new):
        return Settled(episode_id=new.episode_id, changed=False, case_id=current["case"])
    if new.action is not None:
        verdicts.prepare(connection, new.namespace, new.action, current, episode, new.episode_id)
    reported, replaced = _reported(connection, new, episode), None if current is None else current["key"]
    metadata = _metadata(connection, new, before.metadata, replaced)
    if current is not None:
        _replace(connection, new, current, asked_by)
        before = before._replace(known=None)  # the same case may have gone with the outcome
    case_key, case_id, is_new, packed = None, None, False, pack_solution(new.solution)
    keys = count_use(connection, before.shown, new.value, sign=1, unkept=new.unkept) if before.shown else []
    if new.case is not None:
        case_key, case_id, is_new = _stored(connection, new, new.case, before, current, metadata, keys, packed)
    by_agent = new.source not in TRUSTED_SOURCES
    outcome = _written(connection, new, episode, case_key, metadata, packed)
    _label(connection, new)
    episode_states.settle(connection, episode, at=new.at, source=new.source, reported=reported)
    if before.has_attempt and not by_agent:  # a recorded run end stays beside the agent's report until somebody else judges
        _end_attempt(connection, episode, by_another=new.actor not in (None, asked_by[0]) or new.channel in REVISED)
    _tell(connection, new.namespace, case_key if is_new else None, outcome if taken is None else None)
    now = Standing(episode, outcome, new, keys, replaced, forgotten, watched=before.watched)
    for one in HEARING:
        one.on_settled(connection, now)
    if new.action is not None:
        verdicts.conclude(connection, new, new.action, episode, outcome, current, case_id)
    return Settled(
        episode_id=new.episode_id,
        changed=True,
        case_id=case_id,
        capped=new.unkept == "capped",
        within_a_minute=within_a_minute,
    )


def _stored(
    connection: Connection,
    new: Settlement,
    case: NewCase,
    before: Before,
    current: Mapping[str, Any] | None,
    metadata: Mapping[str, Any],
    keys: Sequence[int],
    packed: tuple[str | None, str | None],
) -> tuple[int, str, bool]:
    """Store the case of an outcome; return its key, its id, and whether the log must still say that it is new."""
    by_hand, asked_by = new.action is not None and _is_by_hand(connection, new.action, before.key), before.asked_by
    by = (new.actor, new.channel) if by_hand or asked_by[0] is None else asked_by
    its = packed if case.solution is new.solution else None
    case = case if case.metadata == metadata else dataclasses.replace(case, metadata=metadata)
    taken = _takes_back(new)
    if taken is not None and taken.before is not None:
        case = dataclasses.replace(case, created_at=taken.before.at)
    case, gone = case_states.under_its_id(connection, case, current, taken)
    key, case_id, is_new = cases.insert(
        *(connection, case, its, before.key, before.known, before.run),
        seen=() if by_hand else keys,
        by=by,
        tells=gone is not None,
    )
    if gone is None:
        return key, case_id, is_new
    case_states.decide_again(connection, new.namespace, case_id, gone if is_new else None)
    return key, case_id, False


def _replace(
    connection: Connection, new: Settlement, current: Mapping[str, Any], asked_by: tuple[str | None, str | None]
) -> None:
    """Withdraw the outcome that a new one replaces.

    Its content stays if a verdict or another source replaces it, because it counts again if the verdict is taken back or the
    source is undone. If neither outcome names an actor, only a verdict keeps the content.
    """
    taken = _takes_back(new)
    now, then = (_whose(*one, asked_by) for one in ((new.actor, new.channel), (current["actor"], current["channel"])))
    others = now != then and (now[0], then[0]) != (None, None)
    others |= new.channel in REVISED and current["channel"] not in REVISED
    keep = (others or verdicts.is_verdict(new.action)) and taken is None
    at = new.at if taken is None else time.time()
    withdraw(connection, new.namespace, at, current["key"], "replaced", keep=keep)


def _whose(actor: str | None, channel: str | None, asked_by: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """Return the (actor, channel) of an outcome; if no named actor reported it, those of whoever asked."""
    return asked_by if actor is None and asked_by[0] is not None else (actor, channel)


def _tell(connection: Connection, namespace: int, added: int | None, settled: int | None) -> None:
    """Write the log lines for a new case and for the outcome.

    ``settled`` is None if an older outcome counts again. The log then says that another outcome was withdrawn, after which
    everything is learned again.
    """
    if added is not None and settled is not None:
        note_both(connection, namespace, (CASE_ADDED, added), (SETTLED, settled))
    elif added is not None:
        note(connection, namespace, CASE_ADDED, added)
    elif settled is not None:
        note(connection, namespace, SETTLED, settled)


def _redeems(connection: Connection, new: Settlement, ticket: Signed, episode: int) -> bool:
    """Redeem the ticket of a reward; return False if the reward changes nothing.

    It changes nothing if the ticket was redeemed for this value before. An episode may have several tickets, but by tickets
    each source can report only one value: a further ticket with another value is refused, and one with the same value changes
    nothing if the host has replaced that outcome since.
    """
    named = f"the ticket of episode {new.episode_id!r}"
    value = repr(new.value + 0.0)  # -0.0 is the same reward as 0.0
    if redeeming.redeem(connection, ticket, value, named=named, wall=time.time()):
        query = "SELECT value, withdrawn_at FROM outcome WHERE episode = ? AND source = ? ORDER BY key"
        said = connection.execute(query, (episode, new.source)).fetchall() if new.overwrite else []
        if any(repr(before + 0.0) != value for before, _ in said):
            raise TicketRefused(
                f"another ticket of episode {new.episode_id!r} was redeemed before: only the host can change it"
            )
        return not said or said[-1][1] is None
    before = connection.execute("SELECT 1 FROM outcome WHERE episode = ? AND withdrawn_at IS NULL", (episode,)).fetchone()
    if before is not None and _adds_to(_current_outcome(connection, episode), new):
        raise TicketRefused(f"{named} was redeemed before: only the host can add a solution or a better source now")
    return False


def _case_of(connection: Connection, episode: int) -> str | None:
    """Return the id of the case that the present outcome of an episode stored, if there is one."""
    row = connection.execute(
        """SELECT cases.id FROM outcome JOIN cases ON cases.key = cases_key
           WHERE outcome.episode = ? AND withdrawn_at IS NULL""",
        (episode,),
    ).fetchone()
    return None if row is None else str(row[0])


def _label(connection: Connection, new: Settlement) -> None:
    """Store the labels from hindsight, except for recalls of which a candidate was forgotten after the labels were made."""
    for recall, labels in new.agreement.items():
        connection.execute(
            "UPDATE recall SET agreement = ? WHERE key = ? AND length(groups) = ?",
            (pack_floats(labels), recall, 8 * len(labels)),
        )


def _end_attempt(connection: Connection, episode: int, *, by_another: bool) -> None:
    """Delete what the run of an episode recorded; set it aside first if another actor judged the episode, who may be undone."""
    if by_another:
        verdicts.set_aside_attempt(connection, episode)
    connection.execute("DELETE FROM attempt WHERE episode = ?", (episode,))


def _takes_back(new: Settlement) -> Taken | None:
    """Return the verdict that this settlement takes back, if any; then an older outcome counts again."""
    return None if new.action is None else new.action.takes_back


def _is_by_hand(connection: Connection, action: NewAction, episode: int) -> bool:
    """Tell whether a person wrote the solution; if so, no case that was shown has led to it."""
    taken = action.takes_back
    return action.corrects if taken is None else is_correction(connection, episode, taken.replaced)


def _written(
    connection: Connection,
    new: Settlement,
    episode: int,
    case_key: int | None,
    metadata: Mapping[str, Any],
    packed: tuple[str | None, str | None],
) -> int:
    """Store the outcome and its metadata, and return its key; an older outcome that counts again keeps its key."""
    if (taken := _takes_back(new)) is not None:
        older = taken.replaced
        connection.execute("UPDATE outcome SET withdrawn_at = NULL, cases_key = ? WHERE key = ?", (case_key, older))
        if case_key is not None:
            reconsider(connection, case_key)  # others may have verified it later, and it shows its oldest verification
        return int(older or 0)
    kind, text = packed
    by_agent = new.source not in TRUSTED_SOURCES
    (outcome,) = connection.execute(
        """INSERT INTO outcome (episode, namespace, value, source, at, solution_kind, solution, learns, cases_key,
             metadata, agents_words, unkept, actor, channel)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key""",
        (
            episode,
            new.namespace,
            new.value,
            new.source,
            new.at,
            kind,
            text,
            int(new.learns),
            case_key,
            pack_metadata(metadata) if metadata else None,
            int((by_agent or new.agents_words) and text is not None),
            new.unkept,
            new.actor,
            new.channel,
        ),
    ).fetchone()
    if metadata:
        keep_fields(connection, OUTCOMES, new.namespace, outcome, metadata)
    return outcome


def _check_confirmed(connection: Connection, new: Settlement) -> None:
    """Raise if the report that ``new`` confirms, by its fingerprint, has changed since or is gone."""
    if new.confirms is None:
        return
    found, corrects = read_episode(connection, new.episode_id), new.action is not None and new.action.corrects
    # Whoever repeats a reward, or judges second, is told so elsewhere; who corrects must have seen who judged before.
    if found is None or not found.is_as_seen(new.confirms, whoever_judged=not corrects):
        raise ContentChanged.of(new.episode_id, new.confirms)


def _reported(connection: Connection, new: Settlement, episode: int) -> int | None:
    """Return the size of an agent's report if it waits for confirmation; None if it does not.

    Raise if the namespace holds too many such reports.
    """
    if not new.waits:
        return None
    query, before = connection.execute("SELECT query, reported FROM episode WHERE key = ?", (episode,)).fetchone()
    size = len((pack_solution(new.solution)[1] or "").encode()) + (len(query.encode()) if before is None else before)
    if _takes_back(new) is None:  # what comes back had its place before
        check_room(connection, new.namespace, 1 if before is None else 0, size - (before or 0))
    return size


def _metadata(connection: Connection, new: Settlement, of_episode: str | None, withdrawn: int | None) -> Mapping[str, Any]:
    """Return the metadata to store: those of the episode and those of the outcome, which win over the former.

    If the outcome has none of its own, those of the outcome that it replaces are used.
    """
    of_outcome = dict(new.metadata)
    if not of_outcome and withdrawn is not None and _takes_back(new) is None:
        of_outcome = metadata_of_outcome(connection, withdrawn)
        if new.action is not None and new.action.corrects and of_outcome.get("solved") is False:
            del of_outcome["solved"]  # the case that was stored for a failure said so; the new one is right
    return {**(metadata_if_readable(of_episode) if of_episode else {}), **of_outcome}


def _current_outcome(connection: Connection, episode: int) -> dict[str, Any]:
    row = connection.execute(
        """SELECT outcome.key, value, outcome.solution IS NOT NULL, learns, outcome.source, cases.id, agents_words, cases.pair,
             cases.pinned, coalesce(cases.hidden, 0) & 1, outcome.actor, outcome.channel, cases.trust
           FROM outcome LEFT JOIN cases ON cases.key = cases_key WHERE outcome.episode = ? AND withdrawn_at IS NULL""",
        (episode,),
    ).fetchone()
    names = (
        *("key", "value", "solved", "learns", "source", "case"),
        *("agents_words", "pair", "pinned", "hidden", "actor", "channel", "trust"),
    )
    return dict(zip(names, row, strict=True))


def _may_replace(current: dict[str, Any], new: Settlement) -> bool:
    """Tell whether an outcome replaces the current one; False if it changes nothing; raise if it may not replace it."""
    if new.unkept == "capped" and current["learns"]:
        return False  # what is beyond the cap teaches nothing, and takes nothing back that was learned
    if new.overwrite and not _is_less_trusted(current, new):
        return True
    if _adds_to(current, new):
        return True
    if current["value"] == new.value:
        return False
    before = f"episode {new.episode_id!r} was rewarded with {current['value']:g} before"
    if _is_less_trusted(current, new):
        raise AlreadyRewarded(f"{before}, and not by its agent: an agent's own report cannot replace that")
    raise AlreadyRewarded(f"{before}; pass overwrite=True to replace that by {new.value:g}")


def _is_less_trusted(current: dict[str, Any], new: Settlement) -> bool:
    """Tell whether this is an agent's report on an episode that a trusted source has already judged."""
    return current["source"] in TRUSTED_SOURCES and new.source not in TRUSTED_SOURCES


def _adds_to(current: dict[str, Any], new: Settlement) -> bool:
    """Tell whether an outcome may replace another one without ``overwrite``, since it brings what that one lacks."""
    if _is_less_trusted(current, new):
        return False
    if current["channel"] in REVISED and new.channel not in REVISED and level(new.source) >= level(current["source"]):
        return True  # the current one goes with its scores, and this direct one must not
    trusted, was_trusted = new.source in TRUSTED_SOURCES, current["source"] in TRUSTED_SOURCES
    brings_solution = new.value == current["value"] and new.solution is not None and not current["solved"]
    confirms = trusted and current["agents_words"] and not new.agents_words and new.value == current["value"]
    return brings_solution or confirms or (trusted and not was_trusted) or (new.learns and not current["learns"])


def _similarity(numbers: bytes) -> NDArray[np.float32]:
    return unpack_floats(numbers, NUMBERS)[:, Column.SIMILARITY] if numbers else _NONE

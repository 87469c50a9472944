"""Forgetting: deletes everything that a ``naming.Named`` names, except cases that other sources still verify."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence

from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import FORGOTTEN, PURGED, Settlement, Undone
from cascade_memory.errors import NamespaceForgotten
from cascade_memory.ledger import action_log, cases, episode_states, numbering, owned, room
from cascade_memory.ledger.compaction import offering, take_out
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.naming import Named, Naming, by_episode, by_ids, by_source, by_where
from cascade_memory.ledger.recalls import count_use, shown_to
from cascade_memory.ledger.restoring import as_prepared, coming_back, forget_outcomes, take_back, take_back_verdicts
from cascade_memory.ledger.rows import KEYS, executed_for, fetched_for, note
from cascade_memory.ledger.schema import ACTIONS
from cascade_memory.ledger.undoing import Undoing
from cascade_memory.ledger.verifications import reconsider, verified_by

_AT_ONCE = 2_000  # recalls examined at a time
_PART = 50  # recalls changed per transaction
_FREE = 0.001  # seconds of pause, so that others can write


def cases_to_delete(connection: Connection, named: Named) -> set[int]:
    """Return the keys of the named cases, and of those that will have no verification left (evicted ones included)."""
    return set(named.cases) | {key for key in _touched(connection, named) if _is_unverified(connection, key, named)}


def _touched(connection: Connection, named: Named) -> set[int]:
    retained = "SELECT cases_key FROM outcome WHERE episode = ? AND withdrawn_at IS NULL AND cases_key IS NOT NULL"
    episodes = named.episodes | named.reopened
    touched = {key for episode in episodes for (key,) in connection.execute(retained, (episode,))}
    added = "SELECT cases_key FROM addition WHERE key = ?"
    touched |= {key for addition in named.additions for (key,) in connection.execute(added, (addition,))}
    return touched | named.matching


def _is_unverified(connection: Connection, key: int, named: Named) -> bool:
    if key in named.verified:
        return False
    there = "SELECT 1 FROM cases WHERE key = ? UNION ALL SELECT 1 FROM expired WHERE key = ?"
    if connection.execute(there, (key, key)).fetchone() is None:
        return True
    episodes, additions = verified_by(connection, key)
    return episodes <= named.episodes | named.reopened and additions <= named.additions


def forget(
    connection: Connection,
    named: Named,
    namespace: int = 0,
    again: Mapping[int, Settlement] | None = None,
    by: str | None = None,
) -> dict[str, int]:
    """Delete what is named, and the cases that no other source verifies; return the numbers of deleted rows by name.

    The candidates of logged recalls are not changed here. For ``again``, see ``restoring.forget_outcomes``; ``by`` is the
    actor who forgets.
    """
    gone = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
    touched = _touched(connection, named)
    for episode in sorted(named.episodes):
        forget_episode(connection, episode, gone)
    if named.outcomes:
        take_back_verdicts(connection, namespace, named.outcomes, by)
        _add(gone, forget_outcomes(connection, named.outcomes, again))
    if named.decisions:  # now that the cases are there again that it hid, and then corrected
        gone["decisions"] = take_back(connection, namespace, named.decisions, by)
    for table, keys in named.rows:
        owned.delete_with(connection, table, sorted(keys))
        executed_for(connection, f"DELETE FROM {table} WHERE key IN ({KEYS})", sorted(keys))
    for addition in named.additions:
        owned.delete_with(connection, "addition", [addition])
        connection.execute("DELETE FROM addition WHERE key = ?", (addition,))
    if named.cases:
        _forget_texts(connection, named.cases)
    for key in sorted(named.cases):
        gone["cases"] += cases.delete_expired(connection, key)
        if connection.execute("SELECT 1 FROM cases WHERE key = ?", (key,)).fetchone():
            cases.delete(connection, key)
            gone["cases"] += 1
    for key in sorted(touched - named.cases):
        gone["cases"] += reconsider(connection, key)
    return gone


def _forget_texts(connection: Connection, keys: frozenset[int]) -> None:
    """Delete the content of replaced outcomes whose solution is that of one of these cases: it could not be found later.

    Replaced outcomes keep their content so that the replacement can be undone.
    """
    texts = f"""SELECT cases.namespace, case_text.solution FROM cases JOIN case_text ON case_text.key = cases.key
      WHERE cases.key IN ({KEYS})"""
    for namespace, text in fetched_for(connection, texts, sorted(keys)):
        same = "namespace = ? AND withdrawn_at IS NOT NULL AND solution = ?"
        fields = f"DELETE FROM outcome_field WHERE outcome IN (SELECT key FROM outcome WHERE {same})"
        connection.execute(fields, (namespace, text))
        blank = f"UPDATE outcome SET metadata = NULL, solution_kind = NULL, solution = NULL WHERE {same}"
        connection.execute(blank, (namespace, text))


def forget_episode(connection: Connection, episode: int, gone: dict[str, int]) -> None:
    """Delete an episode with everything that belongs to it; its case is not touched.

    Its outcome is subtracted from the counts of the cases that the episode was shown. The numbers of deleted rows are added to
    ``gone``.
    """
    (namespace,) = connection.execute("SELECT namespace FROM episode WHERE key = ?", (episode,)).fetchone()
    query = "SELECT value, unkept FROM outcome WHERE episode = ? AND withdrawn_at IS NULL"
    current = connection.execute(query, (episode,)).fetchone()
    if current is not None:
        shown = count_use(connection, shown_to(connection, episode), current[0], sign=-1, unkept=current[1])
        room.uncount(connection, () if current[1] == "capped" else shown, current[0])
    connection.execute("UPDATE cases SET episode = NULL WHERE episode = ?", (episode,))
    _add(gone, owned.count_with(connection, "episode", episode))
    for one in HEARING:
        one.on_episode_gone(connection, episode)
    owned.delete_with(connection, "episode", [episode])
    gone["episodes"] += episode_states.delete(connection, episode)
    note(connection, namespace, FORGOTTEN, episode)


def _add(gone: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counts to those in ``gone``; a count of 0 adds no name."""
    for name, count in more.items():
        if count:
            gone[name] = gone.get(name, 0) + count


def _instead_of(again: Settlement) -> int:
    """Return the key of the outcome in whose place an older one counts again; -1 if there is none."""
    taken = None if again.action is None else again.action.takes_back
    return -1 if taken is None or taken.outcome is None else taken.outcome


class _NotAsPrepared(Exception):
    """Rolls back a transaction if other outcomes than the prepared ones would count again."""


class _OnlyPreviewed(Exception):
    """Rolls back a transaction that was only to show what it would do."""


def _ids(connection: Connection, named: Named, keys: Sequence[int]) -> list[str]:
    """Return the ids of what is about to be deleted: cases, expired ones, and episodes."""
    wanted = [(table, key) for table in ("cases", "expired") for key in keys]
    wanted += [("episode", key) for key in named.episodes]
    found = [connection.execute(f"SELECT id FROM {table} WHERE key = ?", (key,)).fetchone() for table, key in wanted]
    return [row[0] for row in found if row is not None]


class SQLForgetting:
    """Deletes data on request. Others can write while it searches the logged recalls."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def forget(
        self, namespace: int, keys: Sequence[int], action: NewAction | None = None, *, preview: bool = False
    ) -> dict[str, int]:
        """Delete cases, whoever verified them, and the episodes that ended in one of them, since they have the same text."""
        return self._forget(namespace, lambda connection: by_ids(connection, keys), action, preview=preview)

    def forget_where(
        self, namespace: int, where: object, action: NewAction | None = None, *, preview: bool = False
    ) -> dict[str, int]:
        """Delete everything with matching metadata; a case is deleted unless another source verifies it."""
        return self._forget(namespace, lambda connection: by_where(connection, namespace, where), action, preview=preview)

    def forget_episode(self, episode_id: str, action: NewAction | None = None, *, preview: bool = False) -> dict[str, int]:
        """Delete an episode, and its case unless another source verifies that case."""
        with self._connections.read() as connection:
            row = connection.execute("SELECT namespace FROM episode WHERE id = ?", (episode_id,)).fetchone()
        number = 0 if row is None else row[0]
        return self._forget(number, lambda connection: by_episode(connection, episode_id), action, preview=preview)

    def coming_back(self, namespace: int, wanted: Wanted) -> list[Taken]:
        """Return, as actions to take back, the outcomes of a source that replaced outcomes of others.

        ``forget_source`` takes them back.
        """
        with self._connections.read() as connection:
            named = by_source(connection, namespace, wanted)
            return [taken for taken, _ in coming_back(connection, named.outcomes)]

    def forget_source(
        self,
        namespace: int,
        wanted: Wanted,
        action: NewAction | None = None,
        *,
        again: Sequence[Settlement] = (),
        strict: bool = False,
        max_cases: int | None = None,
        window: int,
        preview: bool = False,
    ) -> Undone:
        """Undo a source: delete what it asked, reported and added, and the cases that nobody else verifies.

        What the source decided about cases, actors and warnings is taken back, unless somebody has decided anew since. If it
        reported an outcome on an episode of somebody else, that episode is then as it was before. ``again`` are the older
        outcomes that count again, with their cases and labels, prepared from what ``coming_back`` returned. With ``strict``,
        nothing is done if ``coming_back`` would return something else by now. An episode of the source stays if a named person
        judged it. Of the cases that were evicted since the source's first outcome or addition, the most valuable ones, by the
        last ``window`` outcomes, come back: until there are ``max_cases``, or (None) as many as before this call.
        """
        undoing = Undoing(namespace, max_cases, window)
        prepared = {_instead_of(one): one for one in again}

        def naming(connection: Connection) -> Named:
            named = by_source(connection, namespace, wanted)
            if strict and not as_prepared(connection, named.outcomes, prepared):
                raise _NotAsPrepared
            return named

        try:
            gone = self._forget(namespace, naming, action, preview=preview, undoing=undoing, again=prepared)
        except _NotAsPrepared:
            return Undone(counts={}, as_prepared=False)
        return Undone(counts=gone, brought_back=tuple(undoing.brought_back), made_after=tuple(undoing.made_after))

    def forget_namespace(self, namespace: int, action: NewAction | None = None, *, preview: bool = False) -> dict[str, int]:
        """Delete everything in a namespace except its name and id, which a recall may be using right now."""
        with self._writing(preview=preview) as connection:
            gone: dict[str, int] = {"cases": 0, "outcomes": 0, "recalls": 0, "episodes": 0}
            _add(gone, owned.delete_namespace(connection, namespace))
            note(connection, namespace, FORGOTTEN, 0)
            connection.execute("UPDATE action SET note = NULL WHERE namespace = ?", (namespace,))
            action_log.write(connection, namespace, action, counts=gone)
            return gone

    def forget_name(self, namespace: int) -> bool:
        """Forget the name of a namespace that was emptied; return False, and keep it, if something has come in since.

        The id of the namespace is never used again, and nothing can be stored under it any more (``NamespaceForgotten``).
        """
        try:
            with self._connections.write(durable=True) as connection:
                return numbering.forget(connection, namespace)
        except NamespaceForgotten:  # somebody was writing at the same time, and PostgreSQL noticed it
            return False

    def names(self, namespace: int, actor: str | None = None) -> int:
        """Count the audit log entries of a namespace that name this actor (None: any actor). Forgetting keeps such entries."""
        of_actor = f"kind IN ({', '.join(repr(kind.name) for kind in ACTIONS.values() if kind.of_actor) or 'NULL'})"
        named, values = f"(actor IS NOT NULL OR ({of_actor} AND subject IS NOT NULL))", ()
        if actor is not None:
            named, values = f"(actor = ? OR ({of_actor} AND subject = ?))", (actor, actor)
        with self._connections.read() as connection:
            query = f"SELECT count(*) FROM action WHERE namespace = ? AND {named}"
            return int(connection.execute(query, (namespace, *values)).fetchone()[0])

    def scrub(self, namespace: int, action: NewAction | None = None) -> tuple[int, str]:
        """Remove every byte of deleted data from the file; return the last line of the log, and where bytes may remain.

        The latter is a text for people, and empty if no bytes remain. Some remain while another process reads an older state
        from the write-ahead log, or if the database role has no right to clean.

        The namespace's log of searches is deleted as well: their queries belong to no episode by which they could be found. The
        checks of warnings whose failures are gone are also deleted: nobody could say any more whose they were. The notes that
        say whose data was forgotten are deleted, too.
        """
        with self._connections.write(durable=True) as connection:
            owned.purge(connection, namespace)
            connection.execute("UPDATE action SET note = NULL WHERE namespace = ? AND kind = 'forget'", (namespace,))
            note(connection, namespace, PURGED, 0)
            action_log.write(connection, namespace, action)
        left = self._connections.vacuum()
        with self._connections.read() as connection:
            (line,) = connection.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()
        return int(line), left

    @interruptible
    def _writing(self, *, preview: bool) -> Generator[Connection, None, None]:
        """Yield a transaction; a preview is the same transaction, rolled back."""
        with contextlib.suppress(_OnlyPreviewed), self._connections.write(durable=not preview) as connection:
            yield connection
            if preview:
                raise _OnlyPreviewed

    def _forget(
        self,
        namespace: int,
        naming: Naming,
        action: NewAction | None,
        *,
        preview: bool,
        undoing: Undoing | None = None,
        again: Mapping[int, Settlement] | None = None,
    ) -> dict[str, int]:
        early, until = set[int](), 0
        if not preview:
            if undoing is not None:  # what was shown to whom is known only as long as nothing is taken out of the recalls
                with self._connections.read() as connection:
                    undoing.trace(connection, cases_to_delete(connection, naming(connection)))
            early, until = self._take_out_early(namespace, naming)
        gone: dict[str, int] = {}
        with self._writing(preview=preview) as connection:
            named = naming(connection)
            keys = sorted(cases_to_delete(connection, named))
            notes = _ids(connection, named, keys)
            if undoing is not None:
                undoing.trace(connection, set(keys))
                undoing.measure(connection, named)
            gone = forget(connection, named, namespace, again, None if action is None else action.actor)
            counts = dict(gone)
            if undoing is not None:
                counts["cases brought back"] = undoing.make_good(connection)
            if preview:
                return gone
            action_log.drop_notes(connection, notes)
            action_log.write(connection, namespace, action, subject=None if action is None else action.subject, counts=counts)
            # If all these cases were handled early, only recalls added since need a search; otherwise all recalls do.
            after = until if early.issuperset(keys) else 0
            while keys and (found := offering(connection, namespace, keys, after, _AT_ONCE)).looked_at:
                take_out(connection, found.recalls, keys)
                after = found.last
        return gone

    def _take_out_early(self, namespace: int, naming: Naming) -> tuple[set[int], int]:
        """Remove the cases that are about to be deleted from the candidates of the logged recalls.

        One transaction changes only a few recalls, so that others can write in between. Return the cases, and the key of the
        last recall examined. If the process dies here, nothing is forgotten yet.
        """
        with self._connections.read() as connection:
            keys = cases_to_delete(connection, naming(connection))
        until = 0
        while keys:
            with self._connections.read() as connection:
                found = offering(connection, namespace, sorted(keys), until, _AT_ONCE)
            for start in range(0, len(found.recalls), _PART):
                with self._connections.write(durable=False) as connection:
                    take_out(connection, found.recalls[start : start + _PART], sorted(keys))
                time.sleep(_FREE)
            until = max(until, found.last)
            if found.looked_at < _AT_ONCE:
                break
        return keys, until

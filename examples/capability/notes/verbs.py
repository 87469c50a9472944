"""``memory.notes``: notes that people pin to cases."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from cascade_memory.capabilities.notes.tables import LONGEST, NOTE

from cascade_memory.errors import InvalidInput
from cascade_memory.memory import Capable, explained

_COLUMNS = ("id", "case_id", "text", "actor", "at")
_NOTES = "SELECT note.id, cases.id, note.text, note.actor, note.at FROM note JOIN cases ON cases.key = note.cases_key"


@dataclass(frozen=True, slots=True)
class Note:
    """A note on a case.

    >>> Note("n1", "c1", "only for the old printer", "ann", 0.0).text
    'only for the old printer'
    """

    id: str
    case_id: str
    text: str
    actor: str | None
    at: float  # seconds since 1970


@explained
class Notes(Capable):
    """Notes that people pin to cases.

    They go with their case, also when its answer is corrected. One that expires or makes room brings them back with it.

    >>> from cascade_memory import CascadeMemory
    >>> memory = CascadeMemory(embedder="hashing").acting(actor="ann")
    >>> case = memory.add("the printer jams", "pull the tray")
    >>> note = memory.notes.pin(case, "only for the old printer")
    >>> [(one.text, one.actor) for one in memory.notes.of(case)]
    [('only for the old printer', 'ann')]
    """

    def pin(self, case_id: str, text: str) -> str:
        """Pin a note of up to 2,000 characters to a case; return the id of the note.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case = memory.add("the printer jams", "pull the tray")
        >>> memory.notes.pin(case, "only for the old printer") == memory.notes.of(case)[0].id
        True
        """
        said, actor, note_id = self._said(text, "text", LONGEST), self._actor_now(), str(uuid.uuid4())
        with self._writing() as tx:
            case = self._key_of_case(tx, case_id)
            values = (note_id, case, self._namespace_id(), said, actor, time.time())
            tx.execute("INSERT INTO note (id, cases_key, namespace, text, actor, at) VALUES (?, ?, ?, ?, ?, ?)", values)
        return note_id

    def unpin(self, note_id: str) -> None:
        """Delete a note.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case = memory.add("the printer jams", "pull the tray")
        >>> memory.notes.unpin(memory.notes.pin(case, "only for the old printer"))
        >>> memory.notes.of(case)
        []
        """
        found = self._id(note_id, "note_id")
        with self._writing() as tx:
            of = (found, self._namespace_id())
            if tx.execute("SELECT key FROM note WHERE id = ? AND namespace = ?", of).fetchone() is None:
                raise InvalidInput(f"there is no note {found!r} in this namespace")
            tx.execute("DELETE FROM note WHERE id = ? AND namespace = ?", of)

    def of(self, case_id: str) -> list[Note]:
        """Return the notes on a case, the oldest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case = memory.add("the printer jams", "pull the tray")
        >>> for text in ("only for the old printer", "it has a second tray"):
        ...     _ = memory.notes.pin(case, text)
        >>> [note.text for note in memory.notes.of(case)]
        ['only for the old printer', 'it has a second tray']
        """
        with self._reading() as tx:
            case = self._key_of_case(tx, case_id)
            found = tx.execute(f"{_NOTES} WHERE note.cases_key = ? ORDER BY note.at, note.key", (case,)).fetchall()
        return [Note(**row) for row in self._fitting(NOTE, found, _COLUMNS)]

    def all(self, limit: int = 50) -> list[Note]:
        """Return the notes of the namespace, the newest first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> case = memory.add("the printer jams", "pull the tray")
        >>> for text in ("only for the old printer", "it has a second tray"):
        ...     _ = memory.notes.pin(case, text)
        >>> [note.text for note in memory.notes.all(limit=1)]
        ['it has a second tray']
        """
        most = self._limited(limit)
        query = f"{_NOTES} WHERE note.namespace = ? ORDER BY note.at DESC, note.key DESC LIMIT ?"
        with self._reading() as tx:
            found = tx.execute(query, (self._namespace_id(), most)).fetchall()
        return [Note(**row) for row in self._fitting(NOTE, found, _COLUMNS)]

"""``memory.data``: the folder or the database as a whole."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from cascade_memory.errors import TicketRefused
from cascade_memory.memory import transfer
from cascade_memory.memory.backup import backup
from cascade_memory.memory.bound import Bound, stored_at
from cascade_memory.memory.doctor import Check, examine, mend
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.stored_texts import StoredSecret, secrets_in, set_aside_record


@explained
class Data(Bound):
    """Everything that is stored, in all namespaces."""

    @property
    def place(self) -> str:
        """Where the memory is stored, as text for people."""
        return stored_at(self._engine)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of the folder."""
        return list(self._open().parts.ledger.namespaces())

    # -- copies ----------------------------------------------------------------------------------------------------------

    def export(self, target: str | Path | IO[str], *, progress: bool | None = None) -> int:
        """Write everything as JSON lines (to a path or an open file); return the number of lines."""
        return transfer.export(self._open(), target, progress=progress)

    def import_(self, source: str | Path | Iterable[str], *, progress: bool | None = None) -> int:
        """Read what ``export`` wrote and add what does not exist yet; return the number of records added."""
        engine = self._open()
        added = transfer.import_(engine, source, progress=progress, actor=self._who())
        engine.learn_soon()
        return added

    def backup(self, target: str | os.PathLike[str]) -> dict[str, int]:
        """Copy the memory as it is now into a new folder, while its users go on; return counts of what the copy holds.

        The copy is checked before it gets its name. It is a complete memory: open it, or put it back with ``restore``.
        """
        return backup(self._open(), target)

    # -- upkeep ----------------------------------------------------------------------------------------------------------

    def examine(self, *, fix: bool = False) -> list[Check]:
        """Compare ledger, index and Chroma; return the findings. With ``fix``, repair what can be repaired."""
        return mend(self._open()) if fix else examine(self._open())

    def rebuild(self) -> None:
        """Build the Chroma folder again from the ledger."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.rebuild()

    def refit(self) -> None:
        """Learn everything again from the outcomes in the ledger; a trained encoder starts from its pretrained weights.

        After ``forget``, this is needed to make a cross-encoder forget as well. Training takes time: ``sync`` waits for it.
        """
        self._open().refit(self._new_in())

    def find_secrets(self) -> list[StoredSecret]:
        """Look for secrets in everything that is stored, in all namespaces: an older version may have let them in.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", redact=False)
        >>> case_id = memory.add("log in to the wiki", "use password=Tr0ub4dor there")
        >>> [(one.kind, one.where, one.id == case_id) for one in memory.data.find_secrets()]
        [('password', 'case solution', True)]
        """
        engine = self._open()
        ledger, known = engine.parts.ledger, engine.parts.door.kept
        aside = [one for number in ledger.namespaces().values() for one in ledger.expiry.expired(number)]
        dumps: list[Generator[dict[str, Any], None, None]] = []

        def records() -> Iterator[dict[str, Any]]:
            dumps.append(ledger.archive.dump())
            return itertools.chain(dumps[-1], map(set_aside_record, aside))

        try:
            return list(secrets_in(records, known))
        finally:
            for dump in dumps:
                dump.close()  # with its snapshot, also where a traceback keeps it

    def stand_aside(self) -> None:
        """Leave feeding Chroma to other processes; meant for a process that only looks at the memory while agents use it."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.stand_aside()

    # -- for adapters ----------------------------------------------------------------------------------------------------

    def shares_engine_with(self, other: Bound) -> bool:
        """Say whether this memory and another one are handles on the same open folder."""
        return self._engine is other._engine  # pyright: ignore[reportPrivateUsage] - it is of the same class

    def note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that was hidden from the agent; see ``health()``."""
        self._note_failure(step, error)

    def sign_code(self, purpose: str, about: Sequence[str], *, lasts: float) -> str:
        """Return a signed code with which somebody can confirm an action later, in this process or another; for adapters.

        ``purpose`` and ``about`` say what is confirmed: ``redeem_code`` must be called with the same. The code is valid for
        ``lasts`` seconds.
        """
        return self._open().signing.made(purpose, about, lasts=lasts)

    def redeem_code(self, purpose: str, about: Sequence[str], code: object) -> None:
        """Accept a code once; raise ``TicketRefused`` if it was used, is too old, or was made for another purpose or text."""
        engine = self._open()
        found = engine.signing.read(purpose, about, code)
        if found is None or not engine.parts.ledger.facts.redeem(found, "", named="this code"):
            raise TicketRefused("this code is not good for that, or was used before")

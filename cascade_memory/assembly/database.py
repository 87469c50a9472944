"""A memory in a PostgreSQL database, which many machines share."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from psycopg.conninfo import conninfo_to_dict

from cascade_memory.assembly.folder import elsewhere
from cascade_memory.assembly.mirror import identity
from cascade_memory.assembly.settings import Settings
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.postgres.explained import place_of
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.snapshots import SnapshotsInRows
from cascade_memory.stores.chroma_server import ChromaServer

_FEEDING = "feeding Chroma"
_REREADS = 0.5  # seconds
_SECRET = {"password", "sslpassword", "passfile"}
_LEFT = (
    "the dead rows in PostgreSQL's files, which VACUUM FULL rewrites, in its write-ahead log until that is recycled, and in "
    "replicas and backups"
)


class Database:
    """A place where everything is in the database, except the copy of the cases that a Chroma server searches."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._name = place_of(url)

    def __str__(self) -> str:
        """Name the database, without its password."""
        return self._name

    @property
    def key(self) -> str:
        """The parts of the URL that say which database it is and who the user is; no passwords."""
        parts = conninfo_to_dict(self._url)
        return "postgresql " + " ".join(f"{name}={parts[name]}" for name in sorted(parts.keys() - _SECRET))

    @property
    def is_new(self) -> bool:
        """Always False: opening a database makes no files here, and only the server knows whether it has tables."""
        return False

    def check_there(self) -> None:
        """Raise if there is no memory."""
        if not PostgresLedger.exists(self._url):
            raise InvalidInput(f"there is no memory in {self}; CascadeMemory(URL) would create one")

    def ledger(self) -> Ledger:
        """Open the ledger; create it if there is none."""
        return PostgresLedger(self._url)

    def complete(self, parts: Parts, settings: Settings) -> Parts:
        """Return the parts with those of the database: the snapshots and leases, which are rows of it, and the Chroma server.

        A lease is the right to do a job, such as feeding Chroma, that only one process at a time may do.
        """
        ledger = parts.ledger
        assert isinstance(ledger, PostgresLedger)
        name = None if settings.chroma is None else identity(ledger)
        mirror = None if settings.chroma is None or name is None else ChromaServer(settings.chroma, name)
        feeding = None if mirror is None else ledger.lease(_FEEDING, 0)
        return replace(
            parts,
            snapshots=SnapshotsInRows(ledger.snapshots),
            mirror=mirror,
            lock=feeding,
            fence=contextlib.nullcontext if feeding is None else feeding.held,
            job=ledger.lease,
            shared=ledger.leases,
            rereads=_REREADS,
            sweep=lambda: (_LEFT, *elsewhere(ledger, "" if mirror is None else mirror.place)),
        )

    def opened(self, engine: Engine) -> None:
        """Do nothing: a database leaves nothing to be done once the engine works."""

"""Chroma holds a copy of every case, for its HNSW index and for other tools. The ledger stays the system of record."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.metadata import RESERVED_PREFIX
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.errors import StoreError
from cascade_memory.stores.chroma_answers import (
    NAMESPACE,
    SPACE,
    checked_collection,
    checked_count,
    checked_ids,
    failing_as_one,
)
from cascade_memory.stores.folder_files import is_sealed, make_private, remove, seal, zeroed_allocations

_PLAIN_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{1,60}[a-zA-Z0-9]")
_ENCODED_PREFIX = "ns-"
BATCH = 1_000
_SHARE = 20  # make_private pauses for 20 times as long as it took, since a thousand namespaces have many files
MOST_OPEN = 16  # collections: each open one takes four descriptors and 2.7 MB, since its index has 65,536 locks
_MOST_BESIDE_LARGE = 256  # the same where a large collection is queried, which takes seconds to load again
EF_SEARCH = 130  # at 100,000 MiniLM vectors: recall@32 is 0.993, with Chroma's default of 100 it is 0.990; costs 0.3 ms


def collection_name(namespace: str) -> str:
    """Return the name of a namespace's collection: the namespace's own name if Chroma allows it, else a slug and a digest.

    >>> collection_name("default")
    'default'
    >>> collection_name("tenant/42")
    'ns-tenant-42-c482fdddde7ce4adddeefe87c267c88b'
    """
    if _PLAIN_NAME.fullmatch(namespace) and not namespace.startswith(_ENCODED_PREFIX):
        return namespace
    slug = re.sub(r"[^a-zA-Z0-9]+", "-", namespace).strip("-")[:24].strip("-") or "x"
    # 128 bits: with 48 bits, a user who may choose a namespace finds one with the collection name of another within a minute.
    return f"{_ENCODED_PREFIX}{slug}-{hashlib.blake2b(namespace.encode(), digest_size=16).hexdigest()}"


def chroma_metadata(case: Case) -> dict[str, Any]:
    """Return the user's metadata and, under reserved keys, the fields with which other programs can use the case."""
    return {
        **case.metadata,
        f"{RESERVED_PREFIX}solution": solution_text(case.solution),
        f"{RESERVED_PREFIX}source": case.source,
        f"{RESERVED_PREFIX}created_at": case.created_at,
        NAMESPACE: case.namespace,
    }


class Collections:
    """The collections of a memory in Chroma, one for each namespace, and the connection to them.

    This class calls the layer below Chroma's client and collection objects, because those objects build any embedding function
    that a collection names. It passes vectors and receives ids, and it accepts only collections that it would create itself.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._api: Any = None
        self._collections: dict[str, UUID] = {}
        self.trouble = ""

    @property
    def place(self) -> str:
        """The address of the server; empty for the Chroma in the memory's own folder."""
        return ""

    @property
    def answers(self) -> bool:
        """False if the last query failed."""
        return not self.trouble

    def _connect(self) -> Any:
        raise NotImplementedError

    def _disconnect(self, api: Any) -> None:
        raise NotImplementedError

    def _name(self, namespace: str) -> str:
        return collection_name(namespace)

    def _writing(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _chroma_errors(self) -> AbstractContextManager[None]:
        return failing_as_one(f"Chroma{self.place and ' at ' + self.place[1:]}")

    def open(self) -> None:
        """Import chromadb and connect. Slow the first time."""
        with self._lock:
            if self._api is None:
                with self._chroma_errors():
                    self._api = self._connect()

    def collection(self, namespace: str) -> UUID:
        """Return the id of a namespace's collection; create a missing one. Refuse one that this class would not create."""
        with self._lock:
            self.open()
            if namespace not in self._collections:
                name = self._name(namespace)
                with self._chroma_errors(), self._writing():
                    model = self._api.get_or_create_collection(
                        name,
                        configuration={"hnsw": {"space": SPACE, "ef_search": EF_SEARCH}},
                        metadata={NAMESPACE: namespace},
                    )
                    found = checked_collection(model, name, namespace)
                    self._api._count(found)  # this creates the index files if they are missing
                self._collections[namespace] = found
            return self._collections[namespace]

    def _make_room(self, namespace: str) -> None:
        """Do nothing; before a collection is used outside of a query, a subclass may close others if too many are open."""

    def upsert(self, namespace: str, cases: Sequence[Case], vectors: NDArray[np.float32]) -> None:
        """Store cases, or replace them."""
        self._make_room(namespace)
        collection = self.collection(namespace)
        for start in range(0, len(cases), BATCH):
            part = cases[start : start + BATCH]
            with self._chroma_errors(), self._writing():
                self._api._upsert(
                    collection,
                    ids=[case.id for case in part],
                    embeddings=list(vectors[start : start + BATCH]),
                    documents=[case.query for case in part],
                    metadatas=[chroma_metadata(case) for case in part],
                )

    def delete(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove cases; unknown ids are ignored."""
        self._make_room(namespace)
        collection = self.collection(namespace)
        for start in range(0, len(ids), BATCH):
            with self._chroma_errors():
                self._api._delete(collection, ids=list(ids[start : start + BATCH]))

    def drop(self, namespace: str) -> None:
        """Remove a namespace's collection, if there is one."""
        with self._lock:
            self.open()
            self._collections.pop(namespace, None)
            with self._chroma_errors():
                self._delete_collection(self._name(namespace))

    def _delete_collection(self, name: str) -> None:
        from chromadb.errors import NotFoundError

        with contextlib.suppress(NotFoundError):
            self._api.delete_collection(name)

    def count(self, namespace: str) -> int:
        """Return the number of cases of a namespace."""
        self._make_room(namespace)
        collection = self.collection(namespace)
        with self._chroma_errors():
            return checked_count(self._api._count(collection))

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Load what a query needs, so that the first query does not wait for it."""
        self._ask(self.collection(namespace), vector, 1)
        self.trouble = ""

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of the (approximately) k nearest cases."""
        try:
            return self._ask(self.collection(namespace), vector, k)
        except StoreError as error:
            self.trouble = str(error)
            raise

    def _ask(self, collection: UUID, vector: NDArray[np.float32], k: int) -> list[str]:
        with self._chroma_errors():
            return checked_ids(self._api._query(collection, [vector], n_results=k, include=["distances"]), k)

    def close(self) -> None:
        """Save everything and close the connection."""
        with self._lock:
            if self._api is not None:
                api, self._api, self._collections = self._api, None, {}
                with self._chroma_errors():
                    self._disconnect(api)


_not_closed: set[str] = set()  # folders that this process has connected to, and not closed again


class ChromaFolder(Collections):
    """The collections in a folder, opened by one ``PersistentClient``. Only the process that owns the folder may open it."""

    shared = False
    residue = ""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._client: Any = None
        self._private_until = 0.0
        self._queried: dict[str, NDArray[np.float32]] = {}  # namespaces that were prepared for queries, with a vector to ask
        self._reopening = False
        self._asking: set[object] = set()  # queries in progress

    @interruptible
    def _writing(self) -> Generator[None, None, None]:
        with zeroed_allocations():
            yield
        began = time.monotonic()
        if began >= self._private_until:  # Chroma creates files with the process's umask; their folder is private already
            make_private(self.path)
            self._private_until = time.monotonic() + _SHARE * (time.monotonic() - began)

    def _connect(self) -> Any:
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings

        if self.path.is_symlink():
            raise StoreError(f"{self.path} is a link; remove it, so that Chroma can have a real folder there")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Read no .env file of the working directory. Send no telemetry, even with older versions of Chroma that can.
        settings = Settings(_env_file=None, anonymized_telemetry=False)  # pyright: ignore[reportCallIssue]
        name = str(self.path)
        if name in _not_closed:
            # Chroma caches a system even if it failed to start, or if an interrupt kept us from knowing or closing it. It would
            # return it now, although the folder may be a new one.
            getattr(SharedSystemClient, "_identifier_to_refcount", {}).pop(name, None)
            left = getattr(SharedSystemClient, "_identifier_to_system", {}).pop(name, None)
            with contextlib.suppress(Exception):
                left.stop()
        _not_closed.add(name)
        client: Any = chromadb.PersistentClient(name, settings=settings)
        self._client = client
        self._make_files_private()
        return client._server

    def _disconnect(self, api: Any) -> None:  # noqa: ARG002
        client, self._client = self._client, None
        client.close()
        _not_closed.discard(str(self.path))
        self._make_files_private()

    def _make_files_private(self) -> None:
        if not self._reopening:  # that happens too often to look at every file each time
            make_private(self.path)

    def _make_room(self, namespace: str) -> None:
        """Close Chroma and open it again if too many collections are open.

        Chroma itself could close the least recently used ones. But it saves a collection for the first time when it has a
        thousand cases, and one that it closed earlier cannot be queried any more: "Nothing found on disk" (version 1.5).
        """
        most = _MOST_BESIDE_LARGE if self._queried else MOST_OPEN
        mine = False
        try:
            with self._lock:
                if namespace in self._collections or len(self._collections) < most or self._asking:
                    return
                mine = self._reopening = True
            queried, self._queried = self._queried, {}
            self.close()
            self.open()
            for name, vector in queried.items():
                self.prepare(name, vector)
        finally:
            if mine:
                self._reopening = False

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Load what a query needs, so that the first query does not wait for it."""
        super().prepare(namespace, vector)
        self._queried[namespace] = vector

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of the (approximately) k nearest cases. While Chroma is opened again, raise at once."""
        asking = object()
        try:
            with self._lock:
                if self._reopening:
                    raise StoreError("Chroma is being opened again")
                self._asking.add(asking)
            return super().nearest_ids(namespace, vector, k)
        finally:
            self._asking.discard(asking)

    def exists(self) -> bool:
        """Say whether anything exists at the path of the Chroma folder."""
        return os.path.lexists(self.path)

    def seal(self) -> str:
        """Return a digest that shows later whether somebody changed the folder while it was closed."""
        return seal(self.path)

    def is_sealed(self, before: str) -> bool:
        """Say whether the folder is unchanged since ``seal``; Chroma itself does not read it for this."""
        return is_sealed(self.path, before)

    def recover(self) -> bool:
        """Return False: after a failure the files may be damaged and the client may hang, so the mirror is rebuilt."""
        self.discard()
        return False

    def discard(self) -> None:
        """Delete the folder without reading its files: a damaged file may crash its reader."""
        with self._lock:
            # First, in one step: a client of a deleted folder goes on as if nothing had happened, and what it is given is lost.
            api, self._api, self._collections, self._queried = self._api, None, {}, {}
            with contextlib.suppress(Exception):  # the folder is deleted whatever the state of the client is
                if api is not None:
                    self._disconnect(api)
            remove(self.path)
            remove(unfinished(self.path))
            self.trouble = ""


def unfinished(path: Path) -> Path:
    """Return the folder in which a new Chroma is built before it replaces the one at ``path``."""
    return path.with_name(path.name + ".building")

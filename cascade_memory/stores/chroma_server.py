"""A Chroma server instead of a folder: it may be shared, it outlives us, and it may be away for a while."""

from __future__ import annotations

import contextlib
import http.client
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.stores.chroma import Collections, collection_name

_ASKING = 1.0  # seconds that a recall waits for an answer before it scans by itself
_FEEDING = 60.0
_DEFAULT_PORT = {"http": 8000, "https": 443}


def parsed(url: str) -> tuple[str, int, bool]:
    """Return (host, port, whether by TLS).

    >>> parsed("http://localhost:8000")
    ('localhost', 8000, False)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT.get(parts.scheme)
    except ValueError as error:
        raise InvalidInput(f"chroma={url!r} is no address: {error}") from error
    if port is None or not parts.hostname or parts.path not in ("", "/") or parts.username is not None:
        raise InvalidInput(f'chroma must look like "http://host:port", not {url!r}')
    return parts.hostname, port, parts.scheme == "https"


class ChromaServer(Collections):
    """The collections of one memory on a server. ``owner`` tells them from those of other memories there."""

    shared = True

    @property
    def place(self) -> str:
        """The address."""
        return f":{self.url}"

    def __init__(self, url: str, owner: str, *, timeout: float = _FEEDING) -> None:
        super().__init__()
        self.url, self._owner, self._timeout = url, owner, timeout
        self._address = parsed(url)
        self._asking = self if timeout == _ASKING else ChromaServer(url, owner, timeout=_ASKING)

    @property
    def residue(self) -> str:
        """Say where something may be left after ``discard``."""
        return f"the files of the Chroma server at {self.url}: it was told to delete, when its bytes go is up to it"

    def _name(self, namespace: str) -> str:
        return f"{collection_name(namespace)[:100]}-{self._owner}"

    def _connect(self) -> Any:
        import chromadb
        from chromadb.config import Settings

        host, port, tls = self._address
        self._knock(host, port, tls)
        settings = Settings(_env_file=None, anonymized_telemetry=False)  # pyright: ignore[reportCallIssue]
        client = chromadb.HttpClient(host, port, ssl=tls, settings=settings)
        # Chroma's client waits for ever; there is no setting for that.
        client._server._session.timeout = self._timeout  # pyright: ignore[reportPrivateUsage,reportAttributeAccessIssue]
        return client

    def _knock(self, host: str, port: int, tls: bool) -> None:
        """See whether somebody answers: Chroma's client asks while it is made, and would wait for ever then."""
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        connection = kind(host, port, timeout=min(self._timeout, 5.0))
        try:
            connection.request("GET", "/api/v2/heartbeat")
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            raise StoreError(f"what answers at {self.url} is no web server ({error})") from error
        finally:
            connection.close()
        if status != 200:
            raise StoreError(f"what answers at {self.url} is no Chroma server (status {status})")

    def _disconnect(self, client: Any) -> None:
        client._server._session.close()  # pyright: ignore[reportPrivateUsage] - Chroma leaves it open
        client.close()

    def exists(self) -> bool:
        """True: whether the server has what was fed is found out when it is reached."""
        return True

    def recover(self) -> bool:
        """Connect anew the next time; what was fed is still there, or is found missing then."""
        with contextlib.suppress(Exception):  # whatever state it is in
            Collections.close(self)
        return True

    @property
    def answers(self) -> bool:
        """True once it was prepared, until an answer fails to come."""
        return bool(self._asking._collections)

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Connect, with the short patience that recalls have."""
        self._asking.collection(namespace).query(query_embeddings=[vector], n_results=1, include=["distances"])

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of about the k nearest. Never connects, and never waits for anybody who does."""
        collection = self._asking._collections.get(namespace)
        if collection is None:
            raise StoreError(f"the Chroma server at {self.url} is not connected")
        try:
            found = collection.query(query_embeddings=[vector], n_results=k, include=["distances"])
        except Exception:
            self._asking._collections = {}  # nobody asks before it is prepared again
            raise
        return list(found["ids"][0])

    def discard(self) -> None:
        """Delete the collections of this memory."""
        with self._lock:
            self._collections = {}
            self._asking._collections = {}
            self.open()
            for collection in self._client.list_collections():
                if collection.name.endswith(f"-{self._owner}"):
                    self._client.delete_collection(collection.name)

    def close(self) -> None:
        """Let go of the connections; the server keeps everything."""
        super().close()
        if self._asking is not self:
            self._asking.close()

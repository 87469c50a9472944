"""A Chroma server instead of a folder: it may be shared, it outlives us, and it may be away for a while."""

from __future__ import annotations

import contextlib
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.stores.chroma import Collections, collection_name

_ASKING = 1.0  # seconds that a recall waits for an answer before it scans by itself
_FEEDING = 60.0
_PAUSE = 5.0  # seconds after a failure in which recalls do not ask again
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

    def __init__(self, url: str, owner: str, *, timeout: float = _FEEDING) -> None:
        super().__init__()
        self.url, self._owner, self._timeout = url, owner, timeout
        self._address = parsed(url)
        self._asking = self if timeout == _ASKING else ChromaServer(url, owner, timeout=_ASKING)
        self._not_before = 0.0

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
        settings = Settings(_env_file=None, anonymized_telemetry=False)  # pyright: ignore[reportCallIssue]
        client = chromadb.HttpClient(host, port, ssl=tls, settings=settings)
        # Chroma's client waits for ever; there is no setting for that.
        client._server._session.timeout = self._timeout  # pyright: ignore[reportPrivateUsage,reportAttributeAccessIssue]
        return client

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

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of about the k nearest; at once an error while the server does not answer."""
        if self._asking is not self:
            return self._asking.nearest_ids(namespace, vector, k)
        if time.monotonic() < self._not_before:
            raise StoreError(f"the Chroma server at {self.url} did not answer a moment ago")
        try:
            return super().nearest_ids(namespace, vector, k)
        except Exception:
            self._not_before = time.monotonic() + _PAUSE
            self.recover()
            raise

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

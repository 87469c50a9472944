"""A Chroma server instead of a folder. Others may use it too, it goes on after this process, and it may be down for a while."""

from __future__ import annotations

import contextlib
import re
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.stores.chroma import Collections, collection_name
from cascade_memory.stores.chroma_answers import shown

ASKING = 1.0  # seconds that a recall waits for an answer before it scans its own vectors instead
_FEEDING = 60.0
_CONNECTING = 5.0
_PAGE, _MOST_PAGES = 100, 1_000  # of the list of collections
_HINT = ", with nothing after the port, and no user or password before the host"
_DEFAULT_PORT = {"http": 8000, "https": 443}


def parsed(url: str) -> tuple[str, int, bool]:
    """Return the host, the port, and whether the connection uses TLS.

    >>> parsed("http://localhost:8000")
    ('localhost', 8000, False)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT.get(parts.scheme)
    except ValueError:
        raise InvalidInput(f'chroma is not an address; it must look like "http://host:port"{_HINT}') from None
    if port is None or not parts.hostname or parts.path not in ("", "/") or "@" in url or "?" in url or "#" in url:
        # The message does not quote the address, since a wrong part of it may be a password.
        raise InvalidInput(f'chroma must look like "http://host:port"{_HINT}')
    return parts.hostname, port, parts.scheme == "https"


class ChromaServer(Collections):
    """The collections of one memory on a server. ``owner`` distinguishes them from those of other memories on it."""

    shared = True

    def __init__(self, url: str, owner: str, *, timeout: float = _FEEDING) -> None:
        super().__init__()
        self.url, self._owner, self.timeout = url, owner, timeout
        self._address = parsed(url)
        self._asking = self if timeout == ASKING else ChromaServer(url, owner, timeout=ASKING)

    @property
    def place(self) -> str:
        """The address of the server."""
        return f":{self.url}"

    @property
    def residue(self) -> str:
        """A sentence that says where data may be left after ``discard``."""
        return f"the files of the Chroma server at {self.url}: it has deleted the cases, but may erase their bytes later"

    def _name(self, namespace: str) -> str:
        return f"{collection_name(namespace)}-{self._owner}"

    def _connect(self) -> Any:
        """Build Chroma's client with a transport that has a time limit: the one that Chroma builds can wait for ever."""
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        from cascade_memory.stores.bounded_http import bounded_client

        host, port, tls = self._address
        settings: Any = Settings(_env_file=None, anonymized_telemetry=False)  # pyright: ignore[reportCallIssue]
        settings.chroma_api_impl = "chromadb.api.fastapi.FastAPI"
        settings.chroma_server_host, settings.chroma_server_http_port = host, port
        settings.chroma_server_ssl_enabled = tls
        system = System(settings)
        api: Any = system.instance(ServerAPI)
        api._session.close()
        api._session, transport = bounded_client(api._session.headers, min(self.timeout, _CONNECTING), tls=tls)
        try:
            api.heartbeat()
        except Exception as error:
            api._session.close()
            raise StoreError(f"no Chroma server answers at {self.url}: {shown(error) or type(error).__name__}") from error
        transport.seconds = self.timeout
        system.start()
        return api

    def _disconnect(self, api: Any) -> None:
        api._session.close()
        api._system.stop()

    def exists(self) -> bool:
        """Return True: whether the server still has the cases is checked after connecting."""
        return True

    def seal(self) -> str:
        """Return an empty text: the data of a server cannot be digested as a whole."""
        return ""

    def is_sealed(self, before: str) -> bool:  # noqa: ARG002
        """Return False: others may write to the server at any time."""
        return False

    def recover(self) -> bool:
        """Disconnect, so that the next use connects again, and return True: the server may still have the cases."""
        with contextlib.suppress(Exception):  # whatever state the client is in
            Collections.close(self)
        return True

    @property
    def answers(self) -> bool:
        """True from ``prepare`` on, until a query fails."""
        return bool(self._asking._collections)

    def prepare(self, namespace: str, vector: NDArray[np.float32]) -> None:
        """Connect for queries, with the short time limit of a recall."""
        self._asking._ask(self._asking.collection(namespace), vector, 1)
        self.trouble = ""

    def nearest_ids(self, namespace: str, vector: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of the (approximately) k nearest cases, on the connection that ``prepare`` made."""
        collection = self._asking._collections.get(namespace)
        if collection is None:
            raise StoreError(f"the Chroma server at {self.url} is not connected")
        try:
            return self._asking._ask(collection, vector, k)
        except StoreError as error:
            self.trouble = str(error)
            self._asking._collections = {}  # no query before it is prepared again
            raise

    def discard(self) -> None:
        """Delete the collections of this memory."""
        with self._lock:
            self._collections = {}
            self._asking._collections = {}
            self.open()
            with self._chroma_errors():
                for name in self._named():
                    self._delete_collection(name)

    def _named(self) -> list[str]:
        """Return the names of this memory's collections, those in the format of older versions included."""
        found: dict[str, None] = {}
        for page in range(_MOST_PAGES):
            names = [model.name for model in self._api.list_collections(limit=_PAGE, offset=page * _PAGE)]
            if not names or found.keys() >= set(names):
                break
            found.update(dict.fromkeys(names))
        ours = re.compile(rf"[a-zA-Z0-9._-]{{1,500}}-{re.escape(self._owner)}")
        return [name for name in found if ours.fullmatch(name)]

    def close(self) -> None:
        """Close the connections; the server keeps its data."""
        super().close()
        if self._asking is not self:
            self._asking.close()

"""Runs the inspector: from the command line until it is stopped, or beside a notebook."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape
from typing import Any

from cascade_memory import CascadeMemory
from cascade_memory.domain import check_whole, login_name
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.gate import LOOPBACK, checked_hosts
from cascade_memory.inspector.sessions import Sessions
from cascade_memory.inspector.site import Site, guarded, start_path
from cascade_memory.serving import Server, settings

_LEAST_TOKEN = 16
_PATIENCE = 10.0  # seconds for the server to start or to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the inspector listens. Beyond loopback it needs a token, and the host names under which browsers ask for it.

    With ``port=0`` the system chooses a free port.
    """

    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_whole(self.port, "a port", 0, 65_535)
        checked_hosts(self.allow_hosts)
        if self.token is not None and len(self.token) < _LEAST_TOKEN:
            make = "python -c 'import secrets; print(secrets.token_urlsafe())'"
            raise InvalidInput(f"a token needs {_LEAST_TOKEN} characters or more; create one with: {make}")
        if self.is_local:
            return
        if self.token is None:
            raise InvalidInput(
                f"{self.host} can be reached from other machines, so people must enter a token: name a file with --token-file, "
                "or set the environment variable CASCADE_MEMORY_TOKEN; or listen on 127.0.0.1"
            )
        if not self.allow_hosts:
            raise InvalidInput(
                f"{self.host} can be reached from other machines: name the host under which browsers ask for it with "
                "--allow-host NAME, so that no other site's name can lead here"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the inspector."""
        return self.host in LOOPBACK

    @property
    def hosts(self) -> Collection[str]:
        """The host names under which browsers may ask for the inspector."""
        return (*LOOPBACK, *self.allow_hosts) if self.is_local else self.allow_hosts


class _Server:
    """The pages of a memory behind a login of their own, and the server that runs them."""

    def __init__(self, memory: CascadeMemory, listening: Listening, *, edit: bool, actor: str | None, rate: float) -> None:
        actor = actor or login_name() or "somebody"
        self.sessions = Sessions(actor=actor, token=listening.token)
        # Browsers send the cookies of one port to all ports of a host: each inspector has a name of its own for its cookie.
        cookie = f"cascade_inspector_{secrets.token_hex(4)}"
        self.site = Site(memory, edit=edit, actor=actor, namespaces=None, sessions=self.sessions, cookie=cookie, rate=rate)
        site = guarded(self.site, listening.hosts)
        self.server = Server(settings(site, server_header=False, lifespan="off", timeout_graceful_shutdown=2))
        self.socket = _bound(listening.host, listening.port)
        host = f"[{listening.host}]" if ":" in listening.host else listening.host
        self.address = f"http://{host}:{self.socket.getsockname()[1]}"

    def link(self) -> str:
        """Return a link that lets one browser in, once."""
        return self.address + start_path(self.sessions.new_link())


def _bound(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise InvalidInput.cannot_listen(host, port, error) from error
    return bound


def run(
    memory: CascadeMemory,
    listening: Listening,
    *,
    edit: bool = False,
    actor: str | None = None,
    browser: bool = True,
    rate: float = 1.0,
) -> None:
    """Run the inspector until it is stopped; if only this machine can reach it, open it in the browser.

    Args:
        memory: The memory; close it afterwards.
        listening: Where to listen.
        edit: Allow changes.
        actor: The name under which changes are recorded; by default that of the user of this process.
        browser: Open the browser; otherwise the link is only printed.
        rate: The share of episodes about which people are asked for a verdict.
    """
    server = _Server(memory, listening, edit=edit, actor=actor, rate=rate)
    if listening.is_local:
        link = server.link()
        sys.stderr.write(f"cascade-memory: {memory!r} at {link}\nThe link lets one browser in, once. Stop with Ctrl-C.\n")
        if browser:
            threading.Thread(target=_open, args=(server, link), name="cascade-memory-browser", daemon=True).start()
    else:
        names = ", ".join(listening.allow_hosts)
        sys.stderr.write(f"cascade-memory: {memory!r} at {server.address} for {names}; people enter the token. Ctrl-C stops.\n")
    try:
        server.server.run(sockets=[server.socket])
    finally:
        server.site.close()
        server.socket.close()


def _open(server: _Server, link: str) -> None:
    """Open the browser once the server answers."""
    for _ in range(100):
        if server.server.started:
            break
        threading.Event().wait(0.05)
    webbrowser.open(link)


class Inspector:
    """A running inspector on this machine: shows a link in a notebook; ``close`` ends it, and the memory stays open."""

    def __init__(
        self,
        memory: CascadeMemory,
        *,
        edit: bool = False,
        actor: str | None = None,
        port: int = 0,
        rate: float = 1.0,
    ) -> None:
        self._server: Any = _Server(
            memory, Listening(port=port), edit=edit, actor=actor or login_name() or "somebody", rate=rate
        )
        self._edit = edit
        self._closed = False
        self._thread = threading.Thread(
            target=self._server.server.run, args=([self._server.socket],), name="cascade-memory-inspector", daemon=True
        )
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_PATIENCE / 0.01)):
            if self._server.server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)

    @property
    def address(self) -> str:
        """The address at which the inspector listens."""
        return str(self._server.address)

    @property
    def link(self) -> str:
        """A new link that lets one browser in, once."""
        return str(self._server.link())

    def close(self) -> None:
        """Stop the inspector; closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._server.server.should_exit = True
        self._thread.join(_PATIENCE)
        self._server.site.close()
        self._server.socket.close()

    def __enter__(self) -> Inspector:
        """Return this inspector; the end of the ``with`` block stops it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the inspector."""
        self.close()

    def __repr__(self) -> str:
        """Say at which address the inspector is. The link is not shown, since it lets people in."""
        return f"Inspector({'closed' if self._closed else self.address})"

    def _repr_html_(self) -> str:
        if self._closed:
            return "<div>Inspector (closed)</div>"
        what = "Look into the memory, and correct it" if self._edit else "Look into the memory"
        return f'<div><a href="{escape(self.link)}" target="_blank" rel="noopener noreferrer">{what}</a> (once per link)</div>'


def inspect(memory: CascadeMemory, **options: Any) -> Inspector:
    """Open the inspector beside a notebook or a script; see ``CascadeMemory.inspect``."""
    return Inspector(memory, **options)

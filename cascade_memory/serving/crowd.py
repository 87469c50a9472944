"""The limit on open connections: a new connection is always accepted, and an old one is closed for it if necessary."""

from __future__ import annotations

from typing import Protocol

try:
    import resource
except ImportError:  # no such limits on Windows
    resource = None  # type: ignore[assignment]

VOUCH = "cascade_memory.vouch"  # in the ASGI scope: a function that says whether an accepted request can be answered now
MOST = 1_024  # open connections
_WANTED = 8_192  # descriptors; macOS allows ten thousand
_OTHERS = 256  # descriptors for the ledger, Chroma, the model, ...


class Visitor(Protocol):
    """What ``Crowd`` needs to know of a connection."""

    @property
    def busy(self) -> bool:
        """True while one of its requests is being answered."""
        ...

    def leave(self) -> None:
        """Close at once."""
        ...


class Crowd:
    """The open connections of a server. Beyond the limit, one of them is closed without a response.

    A connection is a stranger until it has sent a complete request that the application's own checks accepted; from then on it
    is known. Usually the oldest stranger is closed. If the known connections are more than half of the allowed number, the one
    of them that was used longest ago is closed, but never one that has a request being answered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: dict[Visitor, None] = {}  # in the order in which they came
        self._known: dict[Visitor, None] = {}  # in the order in which they were used

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._strangers) + len(self._known)

    def enter(self, visitor: Visitor) -> None:
        """Add a connection; close another one if there are too many."""
        self._strangers[visitor] = None
        if len(self) > self._most:
            going = self._idle() if 2 * len(self._known) > self._most else None
            going = going or next(iter(self._strangers))
            self.forget(going)
            going.leave()

    def vouch(self, visitor: Visitor) -> bool:
        """Record that a connection has sent an accepted request; say whether it can be answered now.

        At most half of the allowed connections may have requests being answered at once.
        """
        if visitor not in self._strangers and visitor not in self._known:
            return True  # this connection was just closed
        busy = sum(one.busy for one in self._known if one is not visitor)
        self.forget(visitor)
        self._known[visitor] = None
        return 2 * busy < self._most

    def forget(self, visitor: Visitor) -> None:
        """Remove a connection that is closed."""
        self._strangers.pop(visitor, None)
        self._known.pop(visitor, None)

    def _idle(self) -> Visitor | None:
        return next((one for one in self._known if not one.busy), None)


def room() -> tuple[int, int]:
    """Compute how many connections may be open, and how many are accepted at once, from the limit on file descriptors.

    The soft limit is raised as far as the process may do that itself. Only a few connections are accepted at once, so that each
    is read before it might be closed to make room. Until then, up to four times as many may hold descriptors.
    """
    if resource is None:
        return MOST // 2, MOST // 16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _WANTED if hard == unlimited else min(_WANTED, hard)
    if soft != unlimited and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # then the present limit is used
            pass
    free = _WANTED if soft == unlimited else max(16, soft - _OTHERS)
    most = min(MOST, free // 2)
    return most, most // 8

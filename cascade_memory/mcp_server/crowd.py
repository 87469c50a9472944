"""Who may stay connected: however many come, whoever comes next gets in."""

from __future__ import annotations

from typing import Protocol

try:
    import resource
except ImportError:  # no such limits on Windows
    resource = None  # type: ignore[assignment]

_MOST = 1_024  # open connections
_WANTED = 8_192  # descriptors; macOS allows ten thousand
_OTHERS = 256  # descriptors for the ledger, Chroma, the model, ...


class Visitor(Protocol):
    """A connection."""

    @property
    def busy(self) -> bool:
        """True while a request of it is being answered."""
        ...

    def leave(self) -> None:
        """Close at once."""
        ...


class Crowd:
    """The open connections of a server. Beyond the limit the one that has waited longest goes, and says nothing.

    Strangers are those that have sent no whole request that was let in; they go first, oldest first. Those that have are
    known: they go in the order in which they were used last, once they take more than half of the room, and never while a
    request of theirs is being answered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: dict[Visitor, None] = {}  # in the order in which they came
        self._known: dict[Visitor, None] = {}  # in the order in which they were used

    def __len__(self) -> int:
        """Return how many are connected."""
        return len(self._strangers) + len(self._known)

    def enter(self, visitor: Visitor) -> None:
        """Let one in, and if need be another one go."""
        self._strangers[visitor] = None
        if len(self) > self._most:
            going = self._idle() if 2 * len(self._known) > self._most else None
            going = going or next(iter(self._strangers))
            self.forget(going)
            going.leave()

    def vouch(self, visitor: Visitor) -> bool:
        """Note that a whole request was let in; say whether it can be answered: half of the room is for such at once."""
        if visitor not in self._strangers and visitor not in self._known:
            return True  # it was just told to leave
        busy = sum(one.busy for one in self._known if one is not visitor)
        self.forget(visitor)
        self._known[visitor] = None
        return 2 * busy < self._most

    def forget(self, visitor: Visitor) -> None:
        """Note that one is gone."""
        self._strangers.pop(visitor, None)
        self._known.pop(visitor, None)

    def _idle(self) -> Visitor | None:
        return next((one for one in self._known if not one.busy), None)


def room() -> tuple[int, int]:
    """Return how many connections may be open, and how many are accepted at once, with the descriptors that there are.

    Takes as many descriptors as the process may have without asking anybody. Few at once: those in between are read
    before they would have to make room, and until they are, there are four times as many as are accepted at once.
    """
    if resource is None:
        return _MOST // 2, _MOST // 16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _WANTED if hard == unlimited else min(_WANTED, hard)
    if soft != unlimited and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # then with what there is
            pass
    free = _WANTED if soft == unlimited else max(16, soft - _OTHERS)
    most = min(_MOST, free // 2)
    return most, most // 8

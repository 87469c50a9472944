"""Projections of the log: each is a state that applies the log's lines in order, and can be rebuilt from the ledger.

The states of namespaces that were not used lately are unloaded, and loaded again when they are needed.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Protocol

from cascade_memory.domain.interruptible import interruptible, take
from cascade_memory.domain.records import Change
from cascade_memory.domain.waiting import seconds_left
from cascade_memory.errors import CascadeError

if TYPE_CHECKING:
    from cascade_memory.engine.namespace_state import NamespaceState
    from cascade_memory.ledger.core import Ledger

_LINES = 10_000  # of the log, read at once
MOST_STATES = 256  # states
MOST_BYTES = 2**30
_SMALL = 8 * 2**20  # bytes: loading a smaller state again takes milliseconds
_IDLE = 600.0  # seconds for which a larger state, which takes longer to load, stays after its last use


class Projection(Protocol):
    """State derived from the log: that of a namespace (index, ranker and shadow), the shared head, or the mirror."""

    @property
    def seq(self) -> int:
        """The number of the last log line that was applied."""
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply log lines of all namespaces, oldest first; lines up to ``seq`` were applied already."""
        ...

    def rebuild(self) -> None:
        """Build the whole state again from the ledger."""
        ...


class NamespaceProjection(Projection, Protocol):
    """State derived from the lines of one namespace."""

    @property
    def namespace_id(self) -> int:
        """The id of the namespace."""
        ...


def take_in(ledger: Ledger, projection: Projection) -> bool:
    """Let one projection apply its next lines; return whether there may be more lines."""
    changes = ledger.tail(projection.seq, _LINES)
    if changes:
        projection.apply(changes)
    return len(changes) == _LINES


class Follower:
    """Reads the log for the projections that every recall needs, one thread at a time; the mirror reads it by itself.

    Each line is applied to the projections that span all namespaces, and to the state of the one namespace to which the line
    belongs. If that state is not loaded, the line is passed to the function ``absent``.
    """

    def __init__(
        self, ledger: Ledger, rereads: float = 0.0, absent: Callable[[int, Sequence[Change]], object] | None = None
    ) -> None:
        self._ledger, self._rereads, self._absent = ledger, rereads, absent
        self.due = 0.0  # on the monotonic clock; until then a recall need not read what other processes wrote
        self._reading = threading.Lock()
        self._whole: list[Projection] = []  # those of all namespaces
        self._states: dict[int, NamespaceProjection] = {}
        self._torn: list[Projection] = []  # those that were interrupted while they applied lines
        self.seq = ledger.head()  # every projection has applied its lines up to here

    def join_whole(self, projection: Projection) -> None:
        """Add a projection of all namespaces: apply the lines written while it was being built, and every line from now on."""
        with self._reading:
            self._catch_up(projection)
            self._whole.append(projection)

    def join(self, state: NamespaceProjection) -> None:
        """Add the state of a namespace: apply its lines written while it was being built, and its lines from now on."""
        with self._reading:
            self._catch_up(state)
            self._states[state.namespace_id] = state

    def leave(self, state: NamespaceProjection) -> None:
        """Apply no more lines to the state of a namespace. Called while the projections are ``paused``."""
        if self._states.get(state.namespace_id) is state:
            del self._states[state.namespace_id]

    def _catch_up(self, projection: Projection) -> None:
        while projection.seq < self.seq and take_in(self._ledger, projection):
            pass

    @interruptible
    def paused(self) -> Generator[None, None, None]:
        """Keep all projections from applying lines during a ``with`` block."""
        with self._reading:
            yield

    def follow(self) -> bool:
        """Apply what any process has written since the last call; return whether there was anything."""
        held: list[bool] = []
        try:
            if not take(self._reading, held, seconds_left()):
                return False  # another thread applies many lines: a recall goes on with the present state
            self.due = time.monotonic() + self._rereads  # before reading: what is written during it is expected news
            while self._torn:
                self._torn[-1].rebuild()
                self._torn.pop()
            changes = self._ledger.tail(self.seq, _LINES)
            news = bool(changes)
            while changes:
                self._pass_on(changes)
                self.seq = changes[-1].seq  # only now: lines on which a projection failed are read again
                changes = self._ledger.tail(self.seq, _LINES) if len(changes) == _LINES else []
        except BaseException:
            self.due = 0.0  # the next recall tries again
            raise
        finally:
            if True in held:
                self._reading.release()
        return news

    def _pass_on(self, changes: Sequence[Change]) -> None:
        for projection in self._whole:
            self._apply(projection, changes)
        of: defaultdict[int, list[Change]] = defaultdict(list)
        for change in changes:
            of[change.namespace].append(change)
        for namespace_id, mine in of.items():
            state = self._states.get(namespace_id)
            if state is not None:
                self._apply(state, mine)
            elif self._absent is not None:
                self._absent(namespace_id, mine)

    def _apply(self, projection: Projection, changes: Sequence[Change]) -> None:
        try:
            projection.apply(changes)
        except (CascadeError, OSError):
            raise
        except BaseException:  # an interrupt, above all: nobody knows how much was applied
            self._torn.append(projection)
            raise


class LoadedStates:
    """Loads states by name; if there are too many, it unloads those that were not used for the longest time.

    A call that still uses an unloaded state sees the namespace as it was at that moment. The next call gets a new state, loaded
    from the ledger. So no caller keeps a state for longer than one call.
    """

    def __init__(
        self,
        load: Callable[[str, int], NamespaceState],
        follower: Follower,
        failed: Callable[[str, Exception], object],
        number: Callable[[str], int | None],
    ) -> None:
        self._load, self._follower, self._failed, self._number = load, follower, failed, number
        self.states: dict[str, NamespaceState] = {}  # other threads read it; copy its values before you visit them
        self._loading = threading.Lock()

    def get(self, name: str) -> NamespaceState | None:
        """Return the state of a namespace if it is loaded, otherwise None.

        After a purge, a namespace may be gone, or may exist again with another id; its old state is then unloaded.
        """
        found = self.states.get(name)
        if found is None or not found.purged:
            return found
        found.purged = False
        if self._number(name) == found.namespace_id:
            return found
        with self._follower.paused():
            self._follower.leave(found)
            if self.states.get(name) is found:
                del self.states[name]
        return None

    def load(self, name: str, namespace_id: int) -> NamespaceState:
        """Load a namespace's state, unless another thread has just done so; then unload others if there are too many."""
        with self._loading:
            found = self.states.get(name)
            if found is None:
                found = self._load(name, namespace_id)
                self._follower.join(found)
                self.states[name] = found
                self._make_room(found)
        return found

    def _make_room(self, new: NamespaceState) -> None:
        """Unload states until there are few enough again."""
        states = list(self.states.values())
        count, size = len(states), sum(state.bytes for state in states)
        if count <= MOST_STATES and size <= MOST_BYTES:
            return
        now = time.monotonic()
        for state in sorted(states, key=lambda state: state.used):
            if count <= MOST_STATES and size <= MOST_BYTES:
                return
            quickly_back = state.bytes <= _SMALL
            if state is not new and (quickly_back or now - state.used > _IDLE) and self._let_go(state):
                count, size = count - 1, size - state.bytes

    def _let_go(self, state: NamespaceState) -> bool:
        """Save what a state has learned, and unload it; if it has something to do, keep it and return False."""
        if state.busy:
            return False
        try:
            state.close(thorough=False)  # while it still follows the log: a snapshot written later could bring back old data
        except Exception as error:  # noqa: BLE001 - the ledger has everything; a snapshot only saves time
            self._failed("snapshot", error)
        with self._follower.paused():
            if state.busy:  # a change has just reached it
                return False
            self._follower.leave(state)
            del self.states[state.name]
        return True

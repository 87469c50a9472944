"""The loaded states of namespaces. States that were not used lately are unloaded, and loaded again when they are needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cascade_memory.engine.follower import Follower
from cascade_memory.engine.namespace_state import NamespaceState

MOST = 256  # states
MOST_BYTES = 2**30
_SMALL = 8 * 2**20  # bytes: loading a smaller state again takes milliseconds
_IDLE = 600.0  # seconds for which a larger state, which takes longer to load, stays after its last use


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
        if count <= MOST and size <= MOST_BYTES:
            return
        now = time.monotonic()
        for state in sorted(states, key=lambda state: state.used):
            if count <= MOST and size <= MOST_BYTES:
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

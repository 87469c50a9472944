"""Notes what guarded tools did in the latest episodes, since LlamaIndex does not tell a tool what was done before its call."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from cascade_memory.domain.trajectory import Step

_EPISODES = 256  # held at most
_STEPS = 100  # of an episode, the latest ones
_CHARS = 100_000  # of the actions of an episode


class NotedSteps:
    """The latest steps of the latest episodes; ``Guard`` notes them without what the tools returned.

    >>> steps = NotedSteps()
    >>> steps.note("e1", Step("go north", "There is no way.", failed=True))
    >>> [step.action for step in steps.of("e1")], steps.of("e2")
    (['go north'], [])
    """

    def __init__(self) -> None:
        self._steps: OrderedDict[str, deque[Step]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, episode_id: str, step: Step) -> None:
        """Add a step to those of an episode."""
        with self._lock:
            found = self._steps[episode_id] = self._steps.pop(episode_id, deque(maxlen=_STEPS))
            found.append(step)
            while len(found) > 1 and sum(len(one.action) for one in found) > _CHARS:
                found.popleft()
            if len(self._steps) > _EPISODES:
                self._steps.popitem(last=False)

    def of(self, episode_id: str) -> Sequence[Step]:
        """Return the latest steps of an episode, oldest first."""
        with self._lock:
            return list(self._steps.get(episode_id, ()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._steps.clear()

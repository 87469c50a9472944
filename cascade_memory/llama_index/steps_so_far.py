"""What guarded tools did in the latest episodes: LlamaIndex does not tell a tool what was done before it is called."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from cascade_memory.domain.trajectory import Step

_EPISODES, _STEPS = 256, 200  # held at most; of an episode with more steps, the first ones


class StepsSoFar:
    """The steps of the latest episodes.

    >>> steps = StepsSoFar()
    >>> steps.note("e1", Step("go north", "There is no way.", failed=True))
    >>> [step.action for step in steps.of("e1")], steps.of("e2")
    (['go north'], [])
    """

    def __init__(self) -> None:
        self._steps: OrderedDict[str, list[Step]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, episode_id: str, step: Step) -> None:
        """Note what was done."""
        with self._lock:
            found = self._steps[episode_id] = self._steps.pop(episode_id, [])
            if len(found) < _STEPS:
                found.append(step)
            if len(self._steps) > _EPISODES:
                self._steps.popitem(last=False)

    def of(self, episode_id: str) -> Sequence[Step]:
        """Return what was done in an episode so far."""
        with self._lock:
            return list(self._steps.get(episode_id, ()))

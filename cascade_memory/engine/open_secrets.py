"""Remembers the secrets of an episode for its later calls: a solution may repeat a secret of the task.

A secret is *announced* if a text says what it is (``password: x``); a later text may contain only the ``x``.

The secrets are kept only in RAM, by the process that was given them, for a limited number of episodes and a limited time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from cascade_memory.redaction.marking import Marks

_EPISODES, _SECONDS = 1_024, 86_400.0


class OpenSecrets:
    """The placeholders (``Marks``) of the episodes in which a secret was announced lately; most episodes have none."""

    def __init__(self, most: int = _EPISODES) -> None:
        self._most = most
        self.held: OrderedDict[str, tuple[float, Marks]] = OrderedDict()  # with the time; the latest is the last one
        self._changing = threading.Lock()

    def of(self, episode_id: str) -> Marks | None:
        """Return the placeholders of an episode; None if no secret was announced in it lately."""
        found = self.held.get(episode_id)
        return None if found is None or found[0] < time.monotonic() - _SECONDS else found[1]

    def keep(self, episode_id: str, marks: Marks) -> None:
        """Keep the placeholders of an episode; drop the oldest ones if there are too many, or if they are too old."""
        now = time.monotonic()
        with self._changing:
            self.held[episode_id] = (now, marks)
            self.held.move_to_end(episode_id)
            while len(self.held) > self._most or next(iter(self.held.values()))[0] < now - _SECONDS:
                self.held.popitem(last=False)

    def again(self, text: str) -> str:
        """Return a text without the secrets of any remembered episode: an error message may quote any text."""
        if self.held:
            with self._changing:
                known = [marks for _, marks in self.held.values()]
            for marks in known:
                text = marks.again(text)
        return text

    def forget(self) -> None:
        """Forget everything."""
        with self._changing:
            self.held.clear()

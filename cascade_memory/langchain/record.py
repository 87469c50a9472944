"""Records an agent's messages outside its history, because the history may be summarised before the episode ends."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

_MAX_EPISODES = 1024
_MAX_MESSAGES = 2_000


class Record:
    """The messages of the latest ``_MAX_EPISODES`` episodes.

    Those of older episodes are dropped, since some are never taken. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: OrderedDict[str, list[BaseMessage]] = OrderedDict()

    def add(self, episode_id: str, messages: Sequence[BaseMessage]) -> None:
        """Record messages of an episode."""
        with self._lock:
            kept = self._messages.setdefault(episode_id, [])
            self._messages.move_to_end(episode_id)
            kept.extend(messages[: max(0, _MAX_MESSAGES - len(kept))])
            while len(self._messages) > _MAX_EPISODES:
                self._messages.popitem(last=False)

    def take(self, episode_id: str) -> list[BaseMessage]:
        """Return and remove the messages of an episode."""
        with self._lock:
            return self._messages.pop(episode_id, [])

    def __len__(self) -> int:
        """Return the number of episodes that are being recorded."""
        return len(self._messages)

"""Writing recalls down, in time or not at all; and knowing which ones were not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cascade_memory.domain.patience import patience
from cascade_memory.domain.records import RecallRecord
from cascade_memory.errors import EncoderMismatch, EpisodeClosed, MemoryForked, StoreReplaced, UnknownEpisode
from cascade_memory.ports.ledger import Ledger

_IMPATIENT = 0.05  # seconds


class Recording:
    """Writes recalls down. What keeps one from that is counted, and no reason to withhold its cases."""

    def __init__(self, ledger: Ledger, report: Callable[[str, Exception], None]) -> None:
        self._ledger, self._report = ledger, report
        self._impatient = False  # the last one waited in vain: the next ones hardly wait
        self._unopened: deque[str] = deque(maxlen=1024)

    def write(self, entry: RecallRecord, most: float | None) -> int | Exception:
        """Return the key of a recall, or why it was not written down within so many seconds."""
        with patience(most if most is None or not self._impatient else min(most, _IMPATIENT)):
            try:
                key = self._ledger.record(entry)
            except (EpisodeClosed, UnknownEpisode, MemoryForked, StoreReplaced, EncoderMismatch):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is: the cases are known
                self._impatient = True
                self._report("record", error)
                if entry.episode_id is not None:
                    self.note_unopened(entry.episode_id)
                return error
        self._impatient = False
        return key

    def note_unopened(self, episode_id: str) -> None:
        """Remember that a recall failed before its episode was written down."""
        self._unopened.append(episode_id)

    def failed_to_open(self, episode_id: str) -> bool:
        """Say whether this episode is not known because its recall failed."""
        return episode_id in self._unopened and self._ledger.episode(episode_id) is None

"""Alarms about actors who report more rewards within an hour than the memory learns from, or very many within a minute."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from cascade_memory.domain.display import counted
from cascade_memory.domain.records import Settled
from cascade_memory.domain.trust import HOUR, burst_of
from cascade_memory.engine.request import Judgement
from cascade_memory.redaction.saying import log_of
from cascade_memory.visible import on_one_line

_log = log_of(__name__)
_MOST = 100  # alarms that are kept; a flood of names must not fill the memory


class Alarms:
    """Remembers the alarms of the last hour in this process. It logs each at most once an hour, and quotes no task or case."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._raised: OrderedDict[str, float] = OrderedDict()  # text -> when it was true last
        self._changing = threading.Lock()

    def note(self, judgement: Judgement, settled: Settled) -> None:
        """Raise an alarm if the outcome that was just recorded is beyond its actor's cap, or is part of a burst.

        The cap is the number of rewards within an hour that are learned from; a burst is ``burst_of`` rewards within a minute.
        """
        if judgement.cap is None or judgement.actor is None or not settled.changed:
            return
        who = f"actor {judgement.actor!r} in namespace {judgement.namespace!r}, source {judgement.source!r}"
        if settled.capped:
            self.sound(f"{who}: more than {counted(judgement.cap, 'reward')} within an hour; those beyond teach nothing")
        if settled.within_a_minute >= (many := burst_of(judgement.cap)):
            self.sound(f"{who}: a burst of {counted(many, 'reward')} or more within a minute")

    def sound(self, text: str) -> None:
        """Raise an alarm; log it if it was not raised within the last hour."""
        text = on_one_line(text)
        with self._changing:
            is_new = text not in self._current()
            self._raised[text] = self._clock()
            self._raised.move_to_end(text)
            while len(self._raised) > _MOST:
                self._raised.popitem(last=False)
        if is_new:
            _log.warning("%s", text)

    def current(self) -> tuple[str, ...]:
        """Return the alarms of the last hour, the latest last."""
        with self._changing:
            return self._current()

    def _current(self) -> tuple[str, ...]:
        since = self._clock() - HOUR
        for text in [text for text, at in self._raised.items() if at < since]:
            del self._raised[text]
        return tuple(self._raised)

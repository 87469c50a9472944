"""Retries: a request with a temporary failure is sent again, with growing pauses, until it succeeds or the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from cascade_memory.errors import ModelUnavailable
from cascade_memory.evaluation.model.chat import Note, PromptTooLong, Reply, Try

FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds


class Passing(Exception):
    """A temporary failure; ``pause`` is the number of seconds that the server asked us to wait."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The number of retries, and the seconds that all attempts of one request may take together."""

    retries: int
    seconds: float

    def ask(self, once: Callable[[float], Reply], note: Note) -> Reply:
        """Call ``once(seconds left)`` until it succeeds, and pass each attempt to ``note`` before anything else happens.

        Raises ``ModelUnavailable`` if the retries or the seconds are used up.
        """
        began = time.monotonic()
        for number in range(1, self.retries + 2):
            sent = time.monotonic()
            try:
                reply = once(began + self.seconds - sent)
            except Passing as error:
                note(Try(number=number, seconds=time.monotonic() - sent, error=str(error)))
                self._wait(error, number, began)
            except ModelUnavailable as error:
                too_long = isinstance(error, PromptTooLong)
                note(Try(number=number, seconds=time.monotonic() - sent, error=str(error), too_long=too_long))
                raise
            else:
                note(Try(number=number, seconds=time.monotonic() - sent, reply=reply))
                return reply
        raise AssertionError("the last try returns or raises")

    def _wait(self, error: Passing, number: int, began: float) -> None:
        tries = "1 try" if number == 1 else f"{number} tries"
        if number > self.retries:
            raise ModelUnavailable(f"{error} ({tries})") from error
        pause = pause_before(number) if error.pause is None else error.pause
        left = began + self.seconds - time.monotonic()
        if pause >= left:
            raise ModelUnavailable(f"{error} ({tries}); the next one would exceed the limit of {self.seconds:g} s") from error
        time.sleep(pause)


def pause_before(number: int) -> float:
    """Compute the pause after an attempt: twice as long each time, randomly shortened by up to a half to spread the load.

    >>> 0.25 <= pause_before(1) <= 0.5 and 1.0 <= pause_before(3) <= 2.0 and pause_before(99) <= 60
    True
    """
    return min(_LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(number - 1, 10)) * random.uniform(0.5, 1.0)

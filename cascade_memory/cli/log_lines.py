"""Log lines of the libraries that a server is built on: short, few, and without most of what clients have sent.

An SDK logs a request that makes no sense with all of its values. That is private text, it is as long as the client likes, and a
server stands still when nobody reads its standard error any more.
"""

from __future__ import annotations

import logging
import sys
import time

from cascade_memory.visible import visible

_OWN = "cascade_memory"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LONGEST = 160  # characters of a message
_MOST, _WITHIN = 60, 60.0  # lines, and seconds


class ShortLines(logging.Formatter):
    """Formats a record of another library as one short line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the first line of the message, and the kind of an exception instead of its text."""
        if _is_own(record):
            return super().format(record)
        said = record.getMessage().partition("\n")[0]
        said = visible(said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…")
        failed = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
        short = logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, said + failed, None, None)
        short.created, short.msecs = record.created, record.msecs
        return super().format(short)


class FewLines(logging.Filter):
    """Lets at most so many records of other libraries pass in a minute; the last one says so."""

    def __init__(self, most: int = _MOST) -> None:
        super().__init__()
        self._most, self._since, self._count = most, time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is written."""
        if _is_own(record):
            return True
        now = time.monotonic()
        if now - self._since >= _WITHIN:
            self._since, self._count = now, 0
        self._count += 1
        if self._count == self._most:
            record.msg, record.args = "many lines of other libraries: further ones are left out for up to a minute", None
            record.exc_info = None
        return self._count <= self._most


def log_to_standard_error(level: str) -> None:
    """Log from this level on; "debug" logs everything as it is, for whoever looks for a fault."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    if level != "debug":
        handler.setFormatter(ShortLines(_FORMAT))
        handler.addFilter(FewLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.split(".")[0] == _OWN

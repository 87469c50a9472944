"""Log lines of the libraries that a server is built on: short, few, and without most of what clients have sent.

An SDK logs an invalid request with all of its values. They are private text, and as long as the client likes.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter

from cascade_memory.visible import indented, visible

_OWN = "cascade_memory"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LONGEST = 160  # characters of a message
_MOST, _WITHIN = 60, 60.0  # lines of one logger and level, and seconds


class ShortLines(logging.Formatter):
    """Formats a record of another library as one short line. In all records, control characters are written out."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text; if it is of another library, only its first line and the type of its exception.

        A record of this library may have more lines, such as a traceback. They are indented, so that none looks like a record.
        """
        if _is_own(record):
            return indented(super().format(record))
        said = _cut(visible(_cut(record.getMessage().partition("\n")[0])))  # what is written out is longer
        failed = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
        short = logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, said + failed, None, None)
        short.created, short.msecs = record.created, record.msecs
        return super().format(short)


class FewLines(logging.Filter):
    """Lets each logger of another library write at most ``most`` records of one level in a minute.

    In place of the last of them, it writes that further records are left out. Each logger and level has its own count, so that
    many invalid requests cannot hide a failure.
    """

    def __init__(self, most: int = _MOST) -> None:
        super().__init__()
        self._most, self._since = most, time.monotonic()
        self._counts: Counter[tuple[str, int]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record may be written; replace the text of the last one that may."""
        if _is_own(record):
            return True
        now = time.monotonic()
        if now - self._since >= _WITHIN:
            self._since = now
            self._counts.clear()
        self._counts[record.name, record.levelno] += 1
        count = self._counts[record.name, record.levelno]
        if count == self._most:
            record.msg, record.args = "many such lines: further ones are left out for up to a minute", None
            record.exc_info = None
        return count <= self._most


def log_to_standard_error(level: str) -> None:
    """Log records of this level and above; with "debug", nothing is shortened or left out, which helps to find a fault."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    if level != "debug":
        handler.setFormatter(ShortLines(_FORMAT))
        handler.addFilter(FewLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.split(".")[0] == _OWN

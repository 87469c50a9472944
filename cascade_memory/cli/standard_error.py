"""Standard error of a server, to which writing never blocks.

If nobody reads a pipe, it is full after 64 kB, and whoever writes to it then waits.

Log lines of the libraries that a server is built on are short there, few, and without most of what clients have sent. An SDK
logs an invalid request with all of its values: they are private text, and as long as the client likes.
"""

from __future__ import annotations

import atexit
import io
import logging
import sys
import threading
import time
from collections import Counter, deque
from typing import Any

from cascade_memory.visible import indented, visible

_OWN = "cascade_memory"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LONGEST = 160  # characters of a message
_MOST_LINES, _WITHIN = 60, 60.0  # lines of one logger and level, and seconds
_MOST_BYTES = 256 * 1024  # bytes that wait to be written; a longer text waits only if nothing else does
_EACH = 64  # bytes that each waiting text counts beside its own
_LACKS = b"cascade-memory: lines are left out here, since nobody read standard error\n"
_PATIENCE = 1.0  # seconds for what still waits at the end of the process


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

    def __init__(self, most: int = _MOST_LINES) -> None:
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


class Unhurried(io.RawIOBase):
    """Writes to another raw stream on a thread of its own, and leaves out texts if too much is waiting.

    If nobody reads, only that thread waits. The thread writes to the raw stream itself, since a buffered stream has a lock that
    Python needs at its end. ``flush`` does nothing, since handlers of logs call it after each line; ``finish`` waits.
    """

    def __init__(self, target: Any, most: int = _MOST_BYTES) -> None:
        super().__init__()
        self._target, self._most = target, most
        self._texts: deque[bytes] = deque()
        self._waiting = 0  # bytes that are not written yet
        self._lacks = self._within = False  # whether something was left out; and whether its line goes on
        self._changed = threading.Condition()  # its lock lets a thread in twice: a signal may come while it is held
        threading.Thread(target=self._write_all, name="cascade-memory-standard-error", daemon=True).start()

    @property
    def name(self) -> str:
        """The name of the stream, which some libraries read."""
        return "<stderr>"

    def writable(self) -> bool:
        """Return True: the stream can be written to."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor, for other processes."""
        return int(self._target.fileno())

    def isatty(self) -> bool:
        """Say whether the stream is a terminal."""
        return bool(self._target.isatty())

    def write(self, data: Any, /) -> int:
        """Queue a text to be written; drop it if too much waits already."""
        text = bytes(data)
        with self._changed:
            if self._within or (self._waiting and self._waiting + len(text) > self._most):
                self._lacks = self._lacks or bool(text)
                self._within = not text.endswith(b"\n")
            elif text:
                self._tell_of_loss()
                self._queue(text)
        return len(text)

    def _queue(self, text: bytes) -> None:
        self._texts.append(text)
        self._waiting += len(text) + _EACH
        self._changed.notify_all()

    def _tell_of_loss(self) -> None:
        if self._lacks:
            self._lacks = False
            self._queue(_LACKS)

    def finish(self, seconds: float = _PATIENCE) -> bool:
        """Wait up to ``seconds`` until everything is written; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._texts)
                text = self._texts.popleft()
            self._write_one(text)
            with self._changed:
                self._waiting -= len(text) + _EACH
                if not self._texts:
                    self._tell_of_loss()
                self._changed.notify_all()

    def _write_one(self, text: bytes) -> None:
        try:
            while text and (done := self._target.write(text)):  # None: the other side wants no waiting, and there is no room
                text = text[done:]
        except (OSError, ValueError):
            return  # nobody is there who could be told


def never_wait() -> None:
    """Let this process write to standard error without waiting until somebody reads it, from now on.

    That holds for log lines, warnings, tracebacks and prints. A stream without a file behind it, as in a notebook, is not
    changed.
    """
    plain = sys.stderr
    raw = _raw(plain)
    if raw is None:
        return
    plain.flush()
    stream = Unhurried(raw)
    atexit.register(stream.finish)
    sys.stderr = io.TextIOWrapper(stream, encoding=plain.encoding, errors=plain.errors, write_through=True)  # pyright: ignore[reportArgumentType]


def finish(seconds: float = _PATIENCE) -> None:
    """Wait up to ``seconds`` until standard error is written; call this before the process ends without its exit handlers."""
    stream = getattr(sys.stderr, "buffer", None)
    if isinstance(stream, Unhurried):
        stream.finish(seconds)


def _raw(stream: Any) -> Any:
    """Return the raw stream behind a text stream; None if there is none, or if it is an ``Unhurried`` already."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # with python -u, there is no buffer between them
    return raw if isinstance(raw, io.RawIOBase) and not isinstance(raw, Unhurried) else None

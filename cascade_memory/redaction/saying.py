"""The log and the warnings of this library: no line of either holds a secret, whatever an exception quotes."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import threading
import traceback
import warnings
from pathlib import Path

from cascade_memory.redaction.marking import redact_secrets

# A line of these says nothing to the reader of a warning: this package, and what calls its functions on its behalf.
_LIBRARY = Path(os.__file__).parent  # Python's own
_PACKAGES = (Path(__file__).parent.parent, _LIBRARY / "asyncio", _LIBRARY / "concurrent" / "futures")
_BETWEEN = (*(f"{folder}{os.sep}" for folder in _PACKAGES), contextlib.__file__, threading.__file__)


class _WithoutSecrets(logging.Filter):
    """Takes secrets out of messages and of the tracebacks that come with them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take secrets out of a log record before any handler gets it; return True, so that it is logged."""
        try:
            said = record.getMessage()
        except (TypeError, ValueError):  # logging says itself that the arguments do not fit
            return True
        clean = redact_secrets(said)
        if clean != said:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            clean = redact_secrets(text)
            if clean != text:  # handlers print the text; the exception itself has the secret, so it goes no further
                record.exc_text, record.exc_info = clean, None
        return True


_WITHOUT = _WithoutSecrets()


def log_of(name: str) -> logging.Logger:
    """Return the logger of a module; all modules get theirs here."""
    log = logging.getLogger(name)
    log.addFilter(_WITHOUT)
    return log


def take_from_all_lines() -> None:
    """Take secrets out of all log lines of this process, also those of other libraries; only our own server calls this.

    The libraries of a server log what they are sent.
    """
    for handler in logging.getLogger().handlers:
        handler.addFilter(_WITHOUT)


def warn(message: str, category: type[Warning]) -> None:
    """Give a warning that names the line of the caller's code; all warnings of this library are given here.

    On a thread that this library has started there is no such line.
    """
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(redact_secrets(message), category, stacklevel=level)

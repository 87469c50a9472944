"""The parser of command lines, options that are numbers within limits, and checks of files that a command writes at its end.

An error message is cut to fit on a screen. That a file can be written is checked before a long command starts.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cascade_memory.domain.validation import GREATEST, check_path
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import indented, shortened, visible

_LONGEST = 2_000  # characters of a refusal


class Parser(argparse.ArgumentParser):
    """Parses arguments: refuses values that argparse misreads, shortens error messages, and lists commands if none is given."""

    needs_command = False

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - of an overload
        """Refuse ``--`` as a value, since argparse would remove it and pass a list; list the commands if none is given."""
        given = list(args or ())
        if self.needs_command and not given:
            self.print_help(sys.stderr)
            self.exit(2, f"\n{self.prog}: error: a command is missing\n")
        if given.count("--") > 1 or any(text.startswith("--") and text.endswith("=--") for text in given):
            self.error("-- cannot be a value; the path of a file with this name is ./--")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print what was wrong, and exit with status 2."""
        super().error(refusal(message))


def refusal(message: str) -> str:
    """Return an error message as it is printed: shortened, and with all lines but the first indented.

    The message may quote any text.

    >>> refusal("there is no namespace 'a'")
    "there is no namespace 'a'"
    """
    return indented(shortened(visible(message), _LONGEST))


def share(text: str) -> float:
    """Read a number from 0 to 1.

    >>> share("0.25")
    0.25
    """
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, such as 0.6, not {text}") from None
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, such as 0.6, not {text}")
    return number


def positive(text: str) -> int:
    """Read a whole number of 1 or more.

    >>> positive("3")
    3
    """
    number = int(text)
    if not 1 <= number <= GREATEST:
        raise argparse.ArgumentTypeError(f"must be 1 or more, and at most {GREATEST:,}")
    return number


def check_writable(file: str | Path, option: str, *, folder: bool = False) -> None:
    """Refuse a file that cannot be written. An existing file is not changed, and no new file is left behind.

    With ``folder``, the file's folder may be missing, since it will be made as well.
    """
    path = check_path(file, option)
    there = path.exists()
    missing = [one for one in path.parents if not one.exists()] if folder else []
    try:
        if missing:
            path.parent.mkdir(parents=True)
        path.open("ab").close()
        if not there:
            path.unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{option} {str(file)!r} cannot be written ({why}): name another file") from error
    finally:
        with contextlib.suppress(OSError):  # somebody may have put a file there meanwhile
            for one in missing:
                one.rmdir()


def check_picture(file: str | Path, option: str) -> None:
    """Refuse a picture that cannot be written, or whose format is unknown."""
    check_writable(file, option)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:  # without matplotlib there will be no picture; the command says so later
        return
    kinds = FigureCanvasBase.get_supported_filetypes()
    suffix = Path(file).suffix.lstrip(".").lower()
    if suffix and suffix not in kinds:
        raise InvalidInput(f"{option} {str(file)!r}: the format must be one of {', '.join(sorted(kinds))}, not {suffix!r}")

"""The parser of command lines, and options that are numbers within limits. An error message is cut to fit on a screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from cascade_memory.domain.validation import GREATEST
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

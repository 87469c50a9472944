"""Commands and their groups, and the options that most of them have: the memory, the namespace, ``--json``, and who acts.

Each group has a module whose ``add`` declares it: its name, and each command with its options and the function that runs it.
That function imports what needs numpy or a memory, so that help texts and error messages need not wait for these imports.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from cascade_memory.cli.arguments import Parser
from cascade_memory.cli.opening import add_namespace, add_place
from cascade_memory.domain.actions import login_name

_WHO = "who does it, for the audit log (default: the login name)"

Run = Callable[[argparse.Namespace], int]


class Commands:
    """The commands of a parser: of the program, or of one of its groups."""

    def __init__(self, parser: Parser, what: str = "command") -> None:
        self._parsers = parser.add_subparsers(dest=what, required=True, metavar=what.upper(), parser_class=Parser)
        parser.needs_command = True

    def group(self, name: str, about: str) -> Commands:
        """Add a group, and return its commands."""
        return Commands(self._parsers.add_parser(name, help=about, description=_sentence(about)))

    def command(self, name: str, run: Run, about: str, *, json: bool = True) -> argparse.ArgumentParser:
        """Add a command; it takes ``--json`` unless it is a server."""
        command = self._parsers.add_parser(name, help=about, description=_sentence(about))
        if json:
            command.add_argument("--json", action="store_true", help="print JSON instead of a table")
        command.set_defaults(run=run, called=command.prog)
        return command

    def on_memory(self, name: str, run: Run, about: str, *, namespace: bool = True) -> argparse.ArgumentParser:
        """Add a command that opens a memory; it takes ``--namespace`` unless it is about all namespaces."""
        command = self.command(name, run, about)
        add_place(command)
        if namespace:
            add_namespace(command)
        return command


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def add_actor(command: argparse.ArgumentParser) -> None:
    """Add the option ``--actor``, which says who acts."""
    command.add_argument("--actor", metavar="NAME", help=_WHO)


def add_by(command: argparse.ArgumentParser) -> None:
    """Add the option ``--by``, which says who acts, to a command whose ``--actor`` means somebody else."""
    command.add_argument("--by", metavar="NAME", help=_WHO)


def actor(options: argparse.Namespace) -> str | None:
    """Return who acts: whom ``--by`` names, or ``--actor`` in commands without ``--by``; by default the login name."""
    name: str | None = options.by if hasattr(options, "by") else options.actor
    return login_name() if name is None else name

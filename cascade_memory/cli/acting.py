"""Who does something on the command line: the login name, or who an option names. The audit log tells it."""

from __future__ import annotations

import argparse

from cascade_memory.domain.actions import login_name

_WHO = "who does it, for the audit log (default: the login name)"


def add_actor(command: argparse.ArgumentParser) -> None:
    """Add the option that says who acts."""
    command.add_argument("--actor", metavar="NAME", help=_WHO)


def add_by(command: argparse.ArgumentParser) -> None:
    """Add the option that says who acts, to a command whose ``--actor`` is somebody else."""
    command.add_argument("--by", metavar="NAME", help=_WHO)


def actor(options: argparse.Namespace) -> str | None:
    """Return who acts, for a command with the one option or the other."""
    name: str | None = options.by if hasattr(options, "by") else options.actor
    return login_name() if name is None else name

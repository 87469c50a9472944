"""Tells who acts on the command line: the login name, or whom an option names. The audit log records it."""

from __future__ import annotations

import argparse

from cascade_memory.domain.actions import login_name

_WHO = "who does it, for the audit log (default: the login name)"


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

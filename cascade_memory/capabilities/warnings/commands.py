"""``cascade-memory warnings``: which warnings of known failures there are, what came of them, and what people decide."""

from __future__ import annotations

import argparse
import dataclasses

from cascade_memory.cli.groups import READABLE, Commands, Run, actor, add_by, add_length, first
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_done, print_json, print_record
from cascade_memory.domain.display import counted, shorten


def add(groups: Commands) -> None:
    """Add the group."""
    warnings = groups.group("warnings", "list warnings of known failures, and decide about them")
    about = "list the steps at which runs failed, and what came of warning of them"
    listed = warnings.on_memory("list", list_, about)
    add_length(listed, either_end=False)
    listed.add_argument("--state", choices=("active", "retired", "held"), help="only those with this state")
    _add_decision(warnings, "retire", retire, "never give a warning again")
    _add_decision(warnings, "restore", restore, "give a retired warning again, whatever its record says")
    advised = _add_decision(warnings, "advise", advise, "say what to do instead: agents see it with the warning")
    advised.add_argument("--advice", required=True, metavar="TEXT", help="what to do instead")


def _add_decision(warnings: Commands, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    command = warnings.on_memory(name, run, about)
    command.add_argument("--warning", required=True, metavar="ID", help="its id, as warnings list prints it")
    command.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    add_by(command)
    return command


def list_(options: argparse.Namespace) -> int:
    """List warnings, the latest first."""
    with existing(options, options.namespace) as memory:
        every = memory.warnings.all()
    matching = [one for one in every if options.state in (None, one.state)]
    found = first(matching, options)
    if options.json:
        print_json([dataclasses.asdict(one) for one in found])
        return 0
    for one in found:
        print_record(one.id, {name: shorten(value, READABLE) for name, value in one.rows()})
    left = len(matching) - len(found)
    print(counted(len(found), "warning") + (f"; --limit N and --all show the other {left:,}" if left else ""))
    return 0


def retire(options: argparse.Namespace) -> int:
    """Never give a warning again."""
    with existing(options, options.namespace, actor(options)) as memory:
        changed = memory.warnings.retire(options.warning, note=options.note)
    return _print_changed(options, changed)


def restore(options: argparse.Namespace) -> int:
    """Give a retired warning again."""
    with existing(options, options.namespace, actor(options)) as memory:
        changed = memory.warnings.restore(options.warning, note=options.note)
    return _print_changed(options, changed)


def advise(options: argparse.Namespace) -> int:
    """Store what agents should do instead of the known mistake."""
    with existing(options, options.namespace, actor(options)) as memory:
        changed = memory.warnings.advise(options.warning, options.advice, note=options.note)
    return _print_changed(options, changed)


def _print_changed(options: argparse.Namespace, changed: bool) -> int:
    said = "done" if changed else "nothing to do: it was so before"
    print_done(options, {options.command: options.warning, "changed": changed}, said)
    return 0

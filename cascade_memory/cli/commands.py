"""What each command does."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.assembly.embedders import StoredVectors
from cascade_memory.assembly.folder import LEDGER, check_there
from cascade_memory.assembly.reindex import reindex as reindex_folder
from cascade_memory.assembly.restore import restore as restore_folder
from cascade_memory.cli.tables import LiveDemo, print_table
from cascade_memory.cli.targets import check_picture, check_writable
from cascade_memory.domain.display import no_namespace, shorten
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.demo import MISLED, ZERO_SHOT, plot_demo, run_demo
from cascade_memory.memory.transfer import read_header

Command = Callable[[argparse.Namespace], int]


def demo(options: argparse.Namespace) -> int:
    """Play the demonstration."""
    if options.tasks < 10:
        raise InvalidInput("--tasks must be at least 10")
    check_picture(options.plot, "--plot")
    with LiveDemo(options.tasks, quiet=options.json) as live:
        result = run_demo(options.tasks, options.seed, live.update)
    rates = result.rates()
    plot: str | None = options.plot
    try:
        plot_demo(result, Path(options.plot))
    except MissingExtra as missing:
        plot = None
        if not options.json:
            print(missing)
    if options.json:
        successes = {name: {"all": both[0], "last_fifth": both[1]} for name, both in rates.items()}
        _print_json({"simulated": True, "embedder": result.embedder, "success": successes, "plot": plot})
        return 0
    rows = [[name, f"{100 * both:.1f} %", f"{100 * last:.1f} %"] for name, (both, last) in rates.items()]
    print_table(f"success on {options.tasks} tasks", ["", "all tasks", "last fifth"], rows)
    print(
        f"SIMULATED solver: right alone with {ZERO_SHOT:.0%}, with a fitting case with 97%, "
        f"spoilt by a misleading one with {MISLED:.0%}. Embedder: {result.embedder}."
    )
    if plot is not None:
        print(f"picture: {plot}")
    return 0


def stats(options: argparse.Namespace) -> int:
    """Show counts."""
    with _existing(options.path, options.namespace) as memory:
        found = memory.stats(namespace=options.namespace, everywhere=options.namespace is None)
    if options.json:
        _print_json(found.as_dict())
    else:
        print_table(f"memory in {options.path}", ["", ""], [list(row) for row in found.rows()])
    return 0


def report(options: argparse.Namespace) -> int:
    """Show what the memory is worth."""
    with _existing(options.path, options.namespace) as memory:
        found = memory.report(namespace=options.namespace, everywhere=options.namespace is None)
    if options.json:
        _print_json(found.as_dict())
        return 0
    print_table(f"what the memory in {options.path} is worth", ["", ""], [list(row) for row in found.rows()])
    for note in found.notes:
        print(note)
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Examine the folder."""
    with _existing(options.path) as memory:
        checks = memory.examine(fix=options.fix)
    if options.json:
        _print_json([check.as_dict() for check in checks])
    else:
        rows = [["ok" if check.ok else "WRONG", check.name, check.detail] for check in checks]
        print_table(f"examination of {options.path}", ["", "what", "finding"], rows)
    return 0 if all(check.ok for check in checks) else 1


def rebuild(options: argparse.Namespace) -> int:
    """Make the Chroma folder anew."""
    with _existing(options.path) as memory:
        memory.rebuild()
        cases = memory.stats(everywhere=True).cases
    _done(options, {"rebuilt": cases}, f"Chroma was rebuilt with {cases:,} cases")
    return 0


def reindex(options: argparse.Namespace) -> int:
    """Embed everything anew."""
    cases = reindex_folder(options.path, options.embedder, progress=None if not options.json else False)
    _done(options, {"reindexed": cases, "embedder": options.embedder}, f"{cases:,} cases embedded anew")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write JSON lines."""
    if options.file != "-":
        check_there(options.path)
        check_writable(options.file, "the file")
    with _existing(options.path) as memory:
        if options.file == "-":
            memory.export(sys.stdout, progress=False)
            return 0
        lines = memory.export(options.file)
    _done(options, {"lines": lines, "file": options.file}, f"{lines:,} lines written to {options.file}")
    return 0


def import_(options: argparse.Namespace) -> int:
    """Read JSON lines."""
    source = sys.stdin if options.file == "-" else _readable(options.file)
    with source as lines:
        first = lines.readline()
        header = read_header(first)
        known = (Path(options.path).expanduser() / LEDGER).is_file()
        embedder = "stored" if known else StoredVectors(header["embedder"], header["dimension"])
        with CascadeMemory(options.path, embedder=embedder) as memory:
            taken = memory.import_(itertools.chain([first], lines))
    _done(options, {"imported": taken}, f"{taken:,} records imported")
    return 0


def backup(options: argparse.Namespace) -> int:
    """Copy."""
    with _existing(options.path) as memory:
        held = memory.backup(options.target)
    _done(options, held, f"backed up: {_counted(held)}")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Put a copy back."""
    held = restore_folder(options.backup, options.path, replace=options.replace)
    _done(options, held, f"restored: {_counted(held)}")
    return 0


def _counted(held: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in held.items())


def forget(options: argparse.Namespace) -> int:
    """Delete."""
    where: Any = None
    if options.where is not None:
        try:
            where = json.loads(options.where)
        except ValueError as error:
            raise InvalidInput(f"--where must be JSON: {error}") from error
    with _existing(options.path, options.namespace) as memory:
        receipt = memory.forget(
            options.case,
            where=where,
            episode_id=options.episode,
            namespace=options.namespace,
            everything=options.everything,
            purge=options.purge,
        )
    lines = [f"forgotten: {receipt.summary()}"]
    if options.purge:
        lines.append("purged: no file of the memory holds a byte of it" if receipt.purged else "not everything could be purged")
    _done(options, receipt.as_dict(), "\n".join([*lines, *(f"still to do: {one}" for one in receipt.stale)]))
    return 0 if receipt.purged or not options.purge else 1


_READABLE = 600  # characters of what is to be vouched for


def pending(options: argparse.Namespace) -> int:
    """List what has only an agent's word; put a human's in its place."""
    both = sorted(set(options.confirm) & set(options.reject))
    if both:
        raise InvalidInput(f"{both[0]} is to be confirmed and rejected at once")
    with _existing(options.path, options.namespace) as memory:
        waiting = {one.id: one for one in memory.reported(namespace=options.namespace)}
        for episode_id in [*options.confirm, *options.reject]:
            if episode_id not in waiting:
                raise InvalidInput(
                    f"no report waits under {episode_id!r} in namespace {options.namespace!r}; nothing was changed"
                )
        for episode_id in options.confirm:
            memory.reward(episode_id, waiting[episode_id].reward or 0.0, source="human", namespace=options.namespace)
        for episode_id in options.reject:
            memory.reward(episode_id, 0.0, source="human", namespace=options.namespace, overwrite=True)
        left = [one for one in waiting.values() if one.id not in {*options.confirm, *options.reject}]
    if options.json:
        data = [{"episode_id": one.id, "task": one.query, "reward": one.reward, "solution": one.answer} for one in left]
        _print_json({"confirmed": options.confirm, "rejected": options.reject, "waiting": data})
        return 0
    if options.confirm or options.reject:
        print(f"{len(options.confirm)} confirmed, {len(options.reject)} rejected")
    rows = [[one.id, f"{one.reward:g}", shorten(one.query, _READABLE), shorten(one.answer, _READABLE)] for one in left]
    print_table(f"reported by agents, and by nobody else: {len(left)}", ["episode", "reward", "task", "solution"], rows)
    if any(len(text) > _READABLE for one in left for text in (one.query, one.answer)):
        print("longer texts are cut; --json prints them whole")
    return 0


def _readable(file: str) -> IO[str]:
    try:
        return Path(file).open(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error


def _existing(path: str, namespace: str | None = None) -> CascadeMemory:
    """Open a memory that is there; refuse a namespace that is not, unless the memory is empty altogether."""
    check_there(path)
    memory = CascadeMemory(path, embedder="stored")
    names = memory.namespaces()
    if namespace is not None and namespace not in names and (names or namespace != "default"):
        memory.close()
        raise InvalidInput(no_namespace(namespace, names))
    return memory


def _done(options: argparse.Namespace, data: dict[str, Any], text: str) -> None:
    if options.json:
        _print_json(data)
    else:
        print(text)


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))

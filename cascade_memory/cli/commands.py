"""The functions of the commands."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.assembly.embedders import StoredVectors
from cascade_memory.assembly.reindex import reindex as reindex_folder
from cascade_memory.assembly.restore import restore as restore_folder
from cascade_memory.cli.deciding import actor
from cascade_memory.cli.opening import existing, place
from cascade_memory.cli.secrets import doctor_secrets
from cascade_memory.cli.tables import LiveDemo, print_record, print_table, print_whole
from cascade_memory.cli.targets import check_picture, check_writable
from cascade_memory.domain.display import counted, shorten
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.domain.validation import check_path
from cascade_memory.errors import ContentChanged, InvalidInput, MissingExtra
from cascade_memory.evaluation.demo import MISLED, ZERO_SHOT, plot_demo, run_demo
from cascade_memory.memory.transfer import lines_of, read_header
from cascade_memory.visible import on_one_line

Command = Callable[[argparse.Namespace], int]


def demo(options: argparse.Namespace) -> int:
    """Play the demo."""
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
    print_table(f"success on {counted(options.tasks, 'task')}", ["", "all tasks", "last fifth"], rows)
    print(
        f"SIMULATED solver: it solves {ZERO_SHOT:.0%} of the tasks alone and 97% with a fitting case; "
        f"a misleading case spoils {MISLED:.0%} of its successes. Embedder: {result.embedder}."
    )
    if plot is not None:
        print(f"picture: {plot}")
    return 0


def stats(options: argparse.Namespace) -> int:
    """Show counts."""
    with existing(options, options.namespace) as memory:
        found = memory.stats(namespace=options.namespace, everywhere=options.namespace is None)
    if options.json:
        _print_json(found.as_dict())
    else:
        print_table(f"memory in {place(options)}", ["", ""], [list(row) for row in found.rows()])
    return 0


def report(options: argparse.Namespace) -> int:
    """Show how much the memory helps."""
    namespace = None if options.everywhere else options.namespace
    with existing(options, namespace) as memory:
        found = memory.report(namespace=namespace, everywhere=options.everywhere)
    if options.json:
        _print_json(found.as_dict())
        return 0
    print_table(f"how much the memory in {place(options)} helps", ["", ""], [list(row) for row in found.rows()])
    for note in found.notes:
        print(on_one_line(note))
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Examine the folder, or look for secrets in it."""
    if options.secrets:
        return doctor_secrets(options)
    with existing(options) as memory:
        checks = memory.examine(fix=options.fix)
    if options.json:
        _print_json([check.as_dict() for check in checks])
    else:
        rows = [["ok" if check.ok else "WRONG", check.name, check.detail] for check in checks]
        print_table(f"examination of {place(options)}", ["", "what", "finding"], rows)
    return 0 if all(check.ok for check in checks) else 1


def rebuild(options: argparse.Namespace) -> int:
    """Build Chroma again from the ledger."""
    with existing(options) as memory:
        memory.rebuild()
        cases = memory.stats(everywhere=True).cases
    _done(options, {"rebuilt": cases}, f"Chroma was rebuilt with {counted(cases, 'case')}")
    return 0


def reindex(options: argparse.Namespace) -> int:
    """Embed all cases again, with another embedder."""
    cases = reindex_folder(options.path, options.embedder, progress=None if not options.json else False)
    _done(options, {"reindexed": cases, "embedder": options.embedder}, f"{counted(cases, 'case')} embedded again")
    return 0


def _check_both(options: argparse.Namespace, verb: str) -> None:
    """Say which of the two names is missing: with only one, argparse takes it for the file."""
    if not options.path:
        stream = "output" if verb == "export" else "input"
        raise InvalidInput(
            f"only {options.file!r} was named: name the memory and the file, cascade-memory {verb} MEMORY FILE, where FILE "
            f"may be - for the standard {stream}"
        )


def export(options: argparse.Namespace) -> int:
    """Export the memory as JSON lines."""
    _check_both(options, "export")
    if options.file != "-":
        place(options).check_there()
        if check_path(options.file, "the file").is_file() and not options.force:
            raise InvalidInput(f"there is already a file {options.file}: name another one, or pass --force to replace it")
        check_writable(options.file, "the file")
    with existing(options) as memory:
        if options.file == "-":
            memory.export(sys.stdout, progress=False)
            return 0
        lines = memory.export(options.file)
    _done(options, {"lines": lines, "file": options.file}, f"{lines:,} lines written to {options.file}")
    return 0


def import_(options: argparse.Namespace) -> int:
    """Import JSON lines."""
    _check_both(options, "import")
    source = sys.stdin if options.file == "-" else _readable(options.file)
    with source as file:
        lines = lines_of(file)
        header = read_header(first := next(lines, ""))
        embedder = "stored" if _is_there(options) else StoredVectors(header["embedder"], header["dimension"])
        with CascadeMemory(options.path, embedder=embedder, chroma=options.chroma) as memory:
            count = memory.import_(itertools.chain([first], lines), actor=actor(options))
    _done(options, {"imported": count}, f"{counted(count, 'record')} imported")
    return 0


def _is_there(options: argparse.Namespace) -> bool:
    try:
        place(options).check_there()
    except InvalidInput:
        return False
    return True


def backup(options: argparse.Namespace) -> int:
    """Copy."""
    with existing(options) as memory:
        held = memory.backup(options.target)
    _done(options, held, f"backed up: {_counted(held)}")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Restore a backup."""
    held = restore_folder(options.backup, options.path, replace=options.replace)
    _done(options, held, f"restored: {_counted(held)}")
    return 0


def _counted(held: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in held.items())


def expired(options: argparse.Namespace) -> int:
    """List expired cases, and bring them back if asked to."""
    with existing(options, options.namespace) as memory:
        back: list[str] = []
        if options.bring_back is not None:
            back = memory.bring_back(options.bring_back or None, namespace=options.namespace, actor=actor(options))
        left = memory.expired(why="evicted" if options.evicted else "expired", namespace=options.namespace)
    if options.json:
        _print_json({"brought_back": back, "expired": [asdict(one) for one in left]})
        return 0
    if back:
        print(f"{len(back)} brought back")
    for one in left:
        since = time.strftime("%Y-%m-%d", time.localtime(one.expired_at))
        state = f"since {since}; {_days(one.seconds_left)} days left to bring it back"
        print_record(one.id, {one.why: state, "task": shorten(one.query, _READABLE)})
    print(f"{'evicted' if options.evicted else 'expired'}, and not deleted yet: {len(left)}")
    return 0


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f}"


_READABLE = 600  # the number of characters that pending prints of each text in a report


def pending(options: argparse.Namespace) -> int:
    """List what agents reported about themselves; confirm or reject it on behalf of a human."""
    confirmed = dict(_named(one) for one in options.confirm)
    both = sorted(set(confirmed) & set(options.reject))
    if both:
        raise InvalidInput(f"{both[0]} cannot be confirmed and rejected at the same time")
    with existing(options, options.namespace) as memory:
        waiting = {one.id: one for one in memory.reported(namespace=options.namespace)}
        _check_waiting(options, waiting, confirmed)
        case_ids: list[str | None] = []
        about: dict[str, Any] = {"actor": actor(options), "channel": "cli", "namespace": options.namespace}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the warning that a reward stored no case; it is printed below
            for episode_id, seen in confirmed.items():
                case_ids.append(memory.confirm(episode_id, seen=seen, **about))
        for episode_id in options.reject:
            seen = waiting[episode_id].fingerprint
            memory.reject(episode_id, seen=seen, **about)
        left = [one for one in waiting.values() if one.id not in {*confirmed, *options.reject}]
    if options.json:
        _print_json({"confirmed": list(confirmed), "rejected": options.reject, "waiting": [_waiting(one) for one in left]})
        return 0
    if confirmed or options.reject:
        print(f"{len(confirmed)} confirmed, {len(options.reject)} rejected")
    if None in case_ids:
        print(f"{case_ids.count(None)} of the confirmed reports stored no case: the reward is too low, or there is no solution")
    print(f"reported by agents and not confirmed: {len(left)}")
    for one in left:
        print_whole(_name_of(one))  # in the form that --confirm expects
        row = [f"{one.reward:g}", shorten(one.query, _READABLE), shorten(_solved(one), _READABLE)]
        print_table("", ["reward", "task", "solution"], [row])
    if left:
        print(f"accept one: cascade-memory pending {memory.place} --confirm EPISODE@FINGERPRINT; refuse one: --reject EPISODE")
    if any(shorten(text, _READABLE) != shorten(text, sys.maxsize) for one in left for text in (one.query, _solved(one))):
        print("longer texts are cut; --json prints them whole")
    return 0


def _check_waiting(options: argparse.Namespace, waiting: dict[str, Episode], confirmed: dict[str, str]) -> None:
    """Refuse all reports if one of them does not exist, or has changed since it was seen."""
    for episode_id in [*confirmed, *options.reject]:
        if episode_id not in waiting:
            where = f"for the episode {episode_id!r} in namespace {options.namespace!r}"
            raise InvalidInput(f"no report waits {where}; nothing was changed")
    for episode_id, seen in confirmed.items():
        if waiting[episode_id].fingerprint != seen:
            raise ContentChanged.of(episode_id, seen)


def _named(given: str) -> tuple[str, str]:
    """Split EPISODE@FINGERPRINT; the id of the episode may itself contain an @."""
    episode_id, at, seen = given.rpartition("@")
    if not (at and episode_id and seen):
        raise InvalidInput(
            f"--confirm needs EPISODE@FINGERPRINT, as pending prints it, not {given!r}: "
            "the fingerprint ensures that you confirm what you saw"
        )
    return episode_id, seen


def _name_of(one: Episode) -> str:
    return f"{one.id}@{one.fingerprint}"


def _solved(one: Episode) -> str:
    """Return the complete solution that would be stored, including steps."""
    return "" if one.solution is None else solution_text(one.solution)


def _waiting(one: Episode) -> dict[str, Any]:
    return {
        "episode_id": one.id,
        "fingerprint": one.fingerprint,
        "task": one.query,
        "reward": one.reward,
        "solution": _solved(one),
        "reported_solution": None if one.reported is None else solution_text(one.reported),
    }


def _readable(file: str) -> IO[str]:
    try:
        return check_path(file, "the file").open(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error


def _done(options: argparse.Namespace, data: dict[str, Any], text: str) -> None:
    if options.json:
        _print_json(data)
    else:
        print(on_one_line(text))


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))

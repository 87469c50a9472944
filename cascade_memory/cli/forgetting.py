"""``cascade-memory data forget``, which asks before it deletes more than what an id names."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import Any

from cascade_memory.cli.groups import Commands, actor, add_by, parsed_where
from cascade_memory.cli.opening import existing, place
from cascade_memory.cli.tables import print_json
from cascade_memory.domain.display import all_counted, counted
from cascade_memory.domain.trust import CHANNELS
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.stats import Receipt
from cascade_memory.visible import on_one_line

_SOURCE = {"actor": "by_actor", "channel": "by_channel", "since": "since", "until": "until"}
_LISTED = 20  # ids


def add(data: Commands) -> None:
    """Add the command."""
    command = data.on_memory("forget", forget, "delete cases, an episode, what a source wrote, or a whole namespace")
    command.add_argument("--purge", action="store_true", help="leave no byte of the deleted data in any file of the memory")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--case", action="append", metavar="ID", help="may be given several times")
    what.add_argument("--where", metavar="JSON", help='a metadata filter, such as {"user": "u1"}; asks first')
    what.add_argument("--episode", metavar="ID")
    what.add_argument("--everything", action="store_true", help="all cases and episodes of the namespace; asks first")
    about = (
        'what this actor asked, reported and added, and the cases that nobody else confirms; asks first; "" for nobody named'
    )
    command.add_argument("--actor", metavar="NAME", help=about)
    command.add_argument("--channel", choices=CHANNELS, help="what came through this door; asks first")
    about = "what came from this moment on: a date, such as 2026-11-24, or how long ago, such as 7d or 2h; asks first"
    command.add_argument("--since", metavar="WHEN", help=about)
    command.add_argument("--until", metavar="WHEN", help="what came before this moment; asks first")
    add_by(command)
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--dry-run", action="store_true", help="only count what would be forgotten")


def forget(options: argparse.Namespace) -> int:
    """Delete what the options name."""
    where = parsed_where(options.where)
    source: dict[str, Any] = {
        name: getattr(options, option) for option, name in _SOURCE.items() if getattr(options, option) is not None
    }
    one = options.case is not None or options.episode is not None
    if sum([one, where is not None, options.everything, bool(source)]) != 1:
        raise InvalidInput(
            "forget needs one of --case, --where, --episode, --everything and a source, which is any of --actor, --channel, "
            "--since and --until"
        )
    if options.yes and one:
        raise InvalidInput("--yes is only for --where, --everything and a source: what is named by its id is not asked about")
    with existing(options, options.namespace, actor(options)) as memory:
        forget_ = functools.partial(
            memory.forget,
            options.case,
            where=where,
            episode_id=options.episode,
            everything=options.everything,
            **source,
        )
        if options.dry_run or not (one or options.yes):
            would = forget_(dry_run=True)
            if options.dry_run:
                return _preview(options, would)
            _ask(options, would, _what(options))
        receipt = forget_(purge=options.purge)
    if options.json:
        print_json(receipt.as_dict())
        return 0 if receipt.purged or not options.purge else 1
    print(f"forgotten: {receipt.summary()}")
    _print_copies(receipt)
    if options.purge:
        purged = "purged: no file of the memory holds a byte of the deleted data"
        print(purged if receipt.purged else "not everything could be purged")
    for one in receipt.stale:
        print(f"still to do: {on_one_line(one)}")
    for one in receipt.names:
        print(f"a name stays: {one}")
    return 0 if receipt.purged or not options.purge else 1


def _preview(options: argparse.Namespace, would: Receipt) -> int:
    held = would.counts
    if options.json:
        ids = {"would_bring_back": would.brought_back, "made_after": would.made_after}
        of_source = any(getattr(options, name) is not None for name in _SOURCE)
        print_json({"would_forget": held, **(ids if of_source else {})})
        return 0
    print(f"would be forgotten: {all_counted(held)}")
    if would.brought_back:
        print(f"would come back: {counted(len(would.brought_back), 'case')} that had made room")
    _print_copies(would)
    return 0


def _print_copies(receipt: Receipt) -> None:
    if not receipt.made_after:
        return
    print(f"made by others after they had seen such cases, and kept: {len(receipt.made_after):,}")
    for case_id in receipt.made_after[:_LISTED]:
        print(f"  {on_one_line(case_id)}")
    if len(receipt.made_after) > _LISTED:
        print("  --json lists all")


def _what(options: argparse.Namespace) -> str:
    if options.everything:
        return "everything"
    return "all with this metadata" if options.where is not None else "all that came from this source"


def _ask(options: argparse.Namespace, would: Receipt, what: str) -> None:
    if options.json or not sys.stdin.isatty():
        raise InvalidInput("this asks for confirmation, and there is nobody to ask: pass --yes; --dry-run only counts")
    where = on_one_line(f"namespace {options.namespace!r} of {place(options)}")
    try:
        answer = input(f"forget {what} in {where} ({all_counted(would.counts)})? It cannot be undone. Type yes: ")
    except EOFError:
        answer = ""
    if answer.strip().lower() != "yes":
        raise InvalidInput("nothing was forgotten")

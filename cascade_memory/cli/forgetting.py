"""The command ``forget``, which asks before it empties a namespace."""

from __future__ import annotations

import argparse
import functools
import json
import sys

from cascade_memory.cli.browsing import parsed_where
from cascade_memory.cli.deciding import actor
from cascade_memory.cli.opening import existing, place
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.stats import Receipt
from cascade_memory.visible import visible


def forget(options: argparse.Namespace) -> int:
    """Delete."""
    where = parsed_where(options.where)
    if options.yes and not options.everything:
        raise InvalidInput("--yes can only be used with --everything")
    with existing(options, options.namespace) as memory:
        forget_ = functools.partial(
            memory.forget,
            options.case,
            where=where,
            episode_id=options.episode,
            namespace=options.namespace,
            everything=options.everything,
            actor=actor(options),
        )
        if options.dry_run or (options.everything and not options.yes):
            held = _counts(forget_(dry_run=True))
            if options.dry_run:
                would = ", ".join(f"{count:,} {what}" for what, count in held.items())
                print(json.dumps({"would_forget": held}, indent=2) if options.json else f"would be forgotten: {would}")
                return 0
            _ask(options, held)
        receipt = forget_(purge=options.purge)
    if options.json:
        print(json.dumps(receipt.as_dict(), indent=2))
        return 0 if receipt.purged or not options.purge else 1
    print(f"forgotten: {receipt.summary()}")
    if options.purge:
        purged = "purged: no file of the memory holds a byte of the deleted data"
        print(purged if receipt.purged else "not everything could be purged")
    for one in receipt.stale:
        print(f"still to do: {one}")
    return 0 if receipt.purged or not options.purge else 1


def _counts(receipt: Receipt) -> dict[str, int]:
    return {"cases": receipt.cases, "episodes": receipt.episodes, "recalls": receipt.recalls}


def _ask(options: argparse.Namespace, held: dict[str, int]) -> None:
    if options.json or not sys.stdin.isatty():
        raise InvalidInput(
            "forget --everything asks for confirmation, and there is nobody to ask: pass --yes; --dry-run only counts"
        )
    counts = ", ".join(f"{count:,} {what}" for what, count in held.items())
    where = visible(f"namespace {options.namespace!r} of {place(options)}")
    try:
        answer = input(f"forget everything in {where} ({counts})? It cannot be undone. Type yes: ")
    except EOFError:
        answer = ""
    if answer.strip().lower() != "yes":
        raise InvalidInput("nothing was forgotten")

"""Lists what waits for a person's decision: what agents reported about themselves, and cases that expired or were evicted."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import asdict
from typing import Any

from cascade_memory.cli.groups import Commands, actor, add_actor
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_json, print_record, print_table, print_whole
from cascade_memory.domain.display import shorten
from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.errors import ContentChanged, InvalidInput

_READABLE = 600  # the number of characters that are printed of each text


def add_pending(review: Commands) -> None:
    """Add the command ``review pending``, which lists what agents reported about themselves."""
    command = review.on_memory("pending", pending, "list what agents reported about themselves; confirm or reject it")
    about = "the report is true: learn from it"
    command.add_argument("--confirm", action="append", default=[], metavar="EPISODE@FINGERPRINT", help=about)
    about = "the report is false: the task was not solved"
    command.add_argument("--reject", action="append", default=[], metavar="EPISODE", help=about)
    add_actor(command)


def add_expired(review: Commands) -> None:
    """Add the command ``review expired``, which lists expired or evicted cases."""
    command = review.on_memory("expired", expired, "list cases that were not verified for too long; bring them back")
    command.add_argument("--evicted", action="store_true", help="list those that had to make room instead")
    command.add_argument("--bring-back", nargs="*", metavar="ID", help="bring these cases back, or all that expired")
    add_actor(command)


def pending(options: argparse.Namespace) -> int:
    """List what agents reported about themselves; confirm or reject it on behalf of a human."""
    confirmed = dict(as_seen(one, "--confirm") for one in options.confirm)
    both = sorted(set(confirmed) & set(options.reject))
    if both:
        raise InvalidInput(f"{both[0]} cannot be confirmed and rejected at the same time")
    with existing(options, options.namespace, actor(options)) as memory:
        waiting = {one.id: one for one in memory.review.reported()}
        _check_waiting(options, waiting, confirmed)
        case_ids: list[str | None] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the warning that a reward stored no case; it is printed below
            for episode_id, seen in confirmed.items():
                case_ids.append(memory.review.confirm(episode_id, seen=seen))
        for episode_id in options.reject:
            seen = waiting[episode_id].fingerprint
            memory.review.reject(episode_id, seen=seen)
        left = [one for one in waiting.values() if one.id not in {*confirmed, *options.reject}]
    if options.json:
        print_json({"confirmed": list(confirmed), "rejected": options.reject, "waiting": [_waiting(one) for one in left]})
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
        accept = f"cascade-memory review pending {memory.data.place} --confirm EPISODE@FINGERPRINT"
        print(f"accept one: {accept}; refuse one: --reject EPISODE")
    if any(shorten(text, _READABLE) != shorten(text, sys.maxsize) for one in left for text in (one.query, _solved(one))):
        print("longer texts are cut; --json prints them whole")
    return 0


def _check_waiting(options: argparse.Namespace, waiting: dict[str, Episode], confirmed: dict[str, str]) -> None:
    """Raise an error if one of the reports does not exist or has changed since it was seen; then none is judged."""
    for episode_id in [*confirmed, *options.reject]:
        if episode_id not in waiting:
            where = f"for the episode {episode_id!r} in namespace {options.namespace!r}"
            raise InvalidInput(f"no report waits {where}; nothing was changed")
    for episode_id, seen in confirmed.items():
        if waiting[episode_id].fingerprint != seen:
            raise ContentChanged.of(episode_id, seen)


def as_seen(given: str, option: str) -> tuple[str, str]:
    """Split the EPISODE@FINGERPRINT of an option; the id of the episode may itself contain an @."""
    episode_id, at, seen = given.rpartition("@")
    if not (at and episode_id and seen):
        raise InvalidInput(
            f"{option} needs EPISODE@FINGERPRINT, as review pending prints it, not {given!r}: "
            "the fingerprint ensures that you judge what you saw"
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


def expired(options: argparse.Namespace) -> int:
    """List expired cases, and bring them back if asked to."""
    with existing(options, options.namespace, actor(options)) as memory:
        back: list[str] = []
        if options.bring_back is not None:
            back = memory.cases.bring_back(options.bring_back or None)
        left = memory.cases.expired(why="evicted" if options.evicted else "expired")
    if options.json:
        print_json({"brought_back": back, "expired": [asdict(one) for one in left]})
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

"""``cascade-memory review``: what people decide about episodes and cases, and the audit log of what they decided."""

from __future__ import annotations

import argparse
import time

from cascade_memory.cli import waiting
from cascade_memory.cli.groups import Commands, Run, actor, add_actor, add_length, first
from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_done, print_json, print_record
from cascade_memory.domain.actions import AuditEntry

_FLAGS = {
    "pin": "keep a case: it is never evicted and never expires",
    "unpin": "let a pinned case be evicted and expire",
    "hide": "never show a case; it is kept",
    "unhide": "show a hidden case again",
}
_SEEN = "as review pending prints it: exactly what you have seen is judged"


def add(groups: Commands) -> None:
    """Add the group."""
    review = groups.group("review", "decide about episodes and cases, and list what people decided")
    waiting.add_pending(review)
    confirmed = _decision(review, "confirm", confirm, "say that the answer of an episode is right")
    rejected = _decision(review, "reject", reject, "say that the answer of an episode is wrong")
    for command in (confirmed, rejected):
        command.add_argument("--episode", required=True, metavar="EPISODE@FINGERPRINT", help=_SEEN)
    corrected = _decision(review, "correct", correct, "store the right solution of an episode or of a case")
    corrected.add_argument("--id", required=True, metavar="ID", help="of the episode or the case")
    corrected.add_argument("--solution", required=True, metavar="TEXT", help="the right solution")
    corrected.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    for name, about in _FLAGS.items():
        flagged = _decision(review, name, flag, about)
        flagged.add_argument("--case", required=True, metavar="ID", help="of the case, as show cases prints it")
    waiting.add_expired(review)
    listed = review.on_memory("audit", audit, "list what people did, newest first, and what can be undone")
    add_length(listed)
    undone = _decision(review, "undo", undo, "take an action back that review audit lists")
    undone.add_argument("--entry", required=True, metavar="ID", help="of the entry, as review audit prints it")


def _decision(review: Commands, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    command = review.on_memory(name, run, about)
    add_actor(command)
    return command


def correct(options: argparse.Namespace) -> int:
    """Store the right solution of an episode, or replace the solution of a case."""
    with existing(options, options.namespace, actor(options)) as memory:
        made = memory.review.correct(options.id, options.solution, note=options.note)
    print_done(options, {"corrected": options.id, "case": made}, f"corrected: case {made} is shown from now on")
    return 0


def confirm(options: argparse.Namespace) -> int:
    """Say that the answer of an episode is right, if the episode is still as the user saw it."""
    episode_id, seen = waiting.as_seen(options.episode, "--episode")
    with existing(options, options.namespace, actor(options)) as memory:
        case_id = memory.review.confirm(episode_id, seen=seen)
    stored = "no case was stored" if case_id is None else f"it is case {case_id}"
    print_done(options, {"confirmed": episode_id, "case": case_id}, f"confirmed: {stored}")
    return 0


def reject(options: argparse.Namespace) -> int:
    """Say that the answer of an episode is wrong, if the episode is still as the user saw it."""
    episode_id, seen = waiting.as_seen(options.episode, "--episode")
    with existing(options, options.namespace, actor(options)) as memory:
        memory.review.reject(episode_id, seen=seen)
    print_done(options, {"rejected": episode_id}, "rejected")
    return 0


def flag(options: argparse.Namespace) -> int:
    """Pin or unpin a case, hide it, or show it again."""
    with existing(options, options.namespace, actor(options)) as memory:
        done = getattr(memory.cases, options.command)(options.case)
        stays = options.command == "unhide" and memory.cases.get(options.case).hidden
    said = "done" if done else "nothing to do: it was so before"
    said += "; it is not shown: its actor is in quarantine (sources release, or pin it)" if stays else ""
    print_done(options, {options.command: options.case, "changed": done}, said)
    return 0


def audit(options: argparse.Namespace) -> int:
    """List what people did, newest first."""
    with existing(options, options.namespace) as memory:
        found = first(memory.review.audit(newest_first=not options.oldest_first), options)
    if options.json:
        print_json([entry.as_dict() for entry in found])
        return 0
    for entry in found:
        print_record(entry.id, _fields(entry))
    print("1 entry" if len(found) == 1 else f"{len(found):,} entries")
    return 0


def undo(options: argparse.Namespace) -> int:
    """Undo an action that the audit log lists."""
    with existing(options, options.namespace, actor(options)) as memory:
        memory.review.undo(options.entry)
    print_done(options, {"undone": options.entry}, "taken back")
    return 0


def _fields(entry: AuditEntry) -> dict[str, str]:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
    return {
        "when": when,
        "who": entry.actor or "not said",
        "what": entry.changed,
        **({} if entry.subject is None else {"subject": entry.subject}),
        **({} if entry.note is None else {"note": entry.note}),
        **({} if entry.undoes is None else {"undoes": entry.undoes}),
        "undo": entry.why_not or "possible",
    }

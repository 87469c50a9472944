"""The commands with which people decide about episodes and cases, and the audit log of what they decided."""

from __future__ import annotations

import argparse
import itertools
import json
import time

from cascade_memory.cli.opening import existing
from cascade_memory.cli.tables import print_record
from cascade_memory.domain.actions import AuditEntry, login_name
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import on_one_line


def actor(options: argparse.Namespace) -> str | None:
    """Return who acts: as named by the option, or the login name."""
    return named_or_login(options.actor)


def named_or_login(name: object) -> str | None:
    """Return a name that an option gave, or the login name."""
    return login_name() if name is None else str(name)


def correct(options: argparse.Namespace) -> int:
    """Store the right solution of an episode or in place of a case."""
    with existing(options, options.namespace) as memory:
        who, namespace = actor(options), options.namespace
        made = memory.correct(options.id, options.solution, actor=who, note=options.note, channel="cli", namespace=namespace)
    _done(options, {"corrected": options.id, "case": made}, f"corrected: case {made} is shown from now on")
    return 0


def confirm(options: argparse.Namespace) -> int:
    """Say that what was seen is right."""
    episode_id, seen = _named(options.episode)
    with existing(options, options.namespace) as memory:
        who, namespace = actor(options), options.namespace
        case_id = memory.confirm(episode_id, seen=seen, actor=who, channel="cli", namespace=namespace)
    stored = "no case was stored" if case_id is None else f"it is case {case_id}"
    _done(options, {"confirmed": episode_id, "case": case_id}, f"confirmed: {stored}")
    return 0


def reject(options: argparse.Namespace) -> int:
    """Say that what was seen is wrong."""
    episode_id, seen = _named(options.episode)
    with existing(options, options.namespace) as memory:
        memory.reject(episode_id, seen=seen, actor=actor(options), channel="cli", namespace=options.namespace)
    _done(options, {"rejected": episode_id}, "rejected")
    return 0


def flag(options: argparse.Namespace) -> int:
    """Pin, unpin, hide or show again."""
    with existing(options, options.namespace) as memory:
        done = getattr(memory, options.command)(options.case, actor=actor(options), namespace=options.namespace)
        stays = options.command == "unhide" and memory.get(options.case, namespace=options.namespace).hidden
    said = "done" if done else "nothing to do: it was so before"
    said += "; it is not shown: its actor is in quarantine (release, or pin it)" if stays else ""
    _done(options, {options.command: options.case, "changed": done}, said)
    return 0


def audit(options: argparse.Namespace) -> int:
    """List what people did, newest first."""
    with existing(options, options.namespace) as memory:
        entries = memory.audit(namespace=options.namespace, newest_first=not options.oldest_first)
        found = list(entries if options.all else itertools.islice(entries, options.limit))
    if options.json:
        print(json.dumps([entry.as_dict() for entry in found], indent=2))
        return 0
    for entry in found:
        print_record(entry.id, _fields(entry))
    print(f"{len(found)} entries")
    return 0


def undo(options: argparse.Namespace) -> int:
    """Take an action back."""
    with existing(options, options.namespace) as memory:
        memory.undo(options.entry, actor=actor(options), namespace=options.namespace)
    _done(options, {"undone": options.entry}, "taken back")
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


def _named(given: str) -> tuple[str, str]:
    episode_id, at, seen = given.rpartition("@")
    if not (at and episode_id and seen):
        raise InvalidInput(f"name EPISODE@FINGERPRINT, as pending prints it, not {given!r}: that is what you have seen")
    return episode_id, seen


def _done(options: argparse.Namespace, data: dict[str, object], text: str) -> None:
    print(json.dumps(data, indent=2) if options.json else on_one_line(text))

"""What people do to a memory: the kinds of actions, and the entries of the audit log."""

from __future__ import annotations

import getpass
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cascade_memory.domain.display import all_counted
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.trajectory import Solution, solution_text
from cascade_memory.domain.validation import check_text
from cascade_memory.errors import InvalidInput
from cascade_memory.redaction.finding import find
from cascade_memory.visible import shown_visibly, visible

VERDICTS = ("confirm", "reject", "correct")
_PAIRS = (("pin", "unpin"), ("hide", "unhide"))
OPPOSITE: Mapping[str, str] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
UNDOABLE = (*VERDICTS, "pin", "unpin", "hide", "unhide")
# Others are written down, and nothing takes them back. Capabilities add kinds of their own, each with its ``ActionKind``.
KINDS = (*UNDOABLE, "undo", "add", "forget", "purge", "bring_back", "import", "reward")
LACKED = "levels below the trust in the source"
# The names of what an entry counts.
COUNTED = (
    *("cases", "episodes", "recalls", "outcomes", "records", "verifications", "decisions"),
    *("cases brought back", "cases shown again", "cases deleted", "pinned ones", "hidden ones", LACKED),
)
_DONE: Mapping[str, str] = {
    **{"confirm": "confirmed", "reject": "rejected", "correct": "corrected", "pin": "pinned", "unpin": "unpinned"},
    **{"hide": "hidden", "unhide": "shown again", "undo": "taken back", "add": "added by hand", "forget": "forgotten"},
    **{"purge": "purged", "bring_back": "brought back", "import": "imported", "reward": "rewarded anew by a human"},
}
_WHY_NOT: Mapping[str, str] = {
    "undo": "an undo is not taken back: do again what it took back",
    "add": "forget the case instead",
    "forget": "the rows are deleted",
    "purge": "the bytes are gone",
    "bring_back": "forget the case, or let it expire again",
    "import": "forget what came with it",
    "reward": "the older outcome was not kept: reward it again",
}
_ACTOR_CHARS, NOTE_CHARS = 200, 2_000

Counts: TypeAlias = "Mapping[str, int]"


def check_actor(actor: object) -> str | None:
    """Check who did something: a short text that the caller sets, or None.

    A name that looks like another one but is not would be a new actor, without a record, and with its own cap on rewards. So
    white space at its ends, line breaks and invisible characters are refused; the name itself is never changed.

    >>> check_actor("ann@example.org")
    'ann@example.org'
    """
    name = check_known_actor(actor)
    if name is None:
        return None
    if name != name.strip():
        raise InvalidInput(f"the actor {name!r} begins or ends with white space: strip it before you pass the name on")
    if name != " ".join(name.split()) or visible(name) != name:
        raise InvalidInput(
            f"the actor {visible(name)!r} has line breaks, tabs, other white space than single spaces, or characters that "
            "nobody sees, so it would look like somebody else: refuse such names where they are chosen, or pass an id"
        )
    if unicodedata.normalize("NFC", name) != name:
        raise InvalidInput(
            f"the actor {name!r} is not normalized (NFC), so it would look like somebody else: normalize it first"
        )
    return name


def check_known_actor(actor: object) -> str | None:
    r"""Check the name of an actor who may be stored already: a short text, or None. Older versions accepted more names.

    >>> check_known_actor("ann\u200b") == "ann\u200b"
    True
    """
    if actor is None:
        return None
    name = check_text(actor, "actor", _ACTOR_CHARS)
    if find(name):
        raise InvalidInput("the actor looks as if it holds a secret, and is stored as it is: pass a name, not a token")
    return name


def login_name() -> str | None:
    """Return the system's name of the user who runs this process; None if the user has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def check_note(note: object) -> str | None:
    """Check a note on an action: a short text, or None."""
    return None if note is None else check_text(note, "note", NOTE_CHARS)


def only(ids: Sequence[str]) -> str | None:
    """Return the subject of an action: its id if there is exactly one, otherwise None.

    >>> only(["a"]), only(["a", "b"])
    ('a', None)
    """
    return ids[0] if len(ids) == 1 else None


def group_of(kind: str) -> tuple[str, ...]:
    """Return the group of kinds of actions to which this kind belongs.

    Of the actions of one group on a subject, only the latest can be taken back.

    >>> group_of("unpin")
    ('pin', 'unpin')
    """
    return next((group for group in _PAIRS if kind in group), (*VERDICTS, "reward"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAction:
    """An action that is about to be done; its entry in the audit log is written in the same transaction as the change."""

    kind: str
    actor: str | None = None
    note: str | None = None
    subject: str | None = None  # the id of what it is about, if nothing else says it
    replaces: str | None = None  # the id of the case that is not to be shown any more
    seen: str | None = None  # the fingerprint which that case must have
    takes_back: Taken | None = None  # the action that an undo takes back

    @property
    def corrects(self) -> bool:
        """Whether the action is a correction, which may replace what others have judged."""
        return self.kind == "correct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An action that is about to be taken back, as the audit log has it."""

    key: int
    id: str
    kind: str
    subject: str
    outcome: int | None = None
    replaced: int | None = None
    made: str | None = None
    hid: str | None = None
    stored: bool = True  # whether it stored what it ``made``, which was not there before
    showed_again: bool = False  # what it ``made`` was a hidden case
    deleted: bool = False  # what it ``hid`` is the case that went with the older outcome
    pinned: bool = False  # that case was pinned
    hidden: bool = False  # it was hidden
    lacked: int = 0  # by how many levels it was trusted less than its source
    before: Before | None = None  # the outcome that comes back; None if the episode was open, or there was no episode

    @property
    def is_verdict(self) -> bool:
        """Whether the action judged an episode."""
        return self.outcome is not None

    @property
    def is_logged(self) -> bool:
        """Whether the audit log has this action; the log does not have every outcome that replaced another one."""
        return bool(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """An outcome that a verdict replaced."""

    value: float
    source: str
    at: float
    solution: Solution | None
    agents_words: bool
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    actor: str | None = None
    channel: str | None = None
    retained: bool = False  # whether it had stored a case
    unkept: str | None = None


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One entry of the audit log: who did what to which case or episode, and whether it can be taken back.

    ``subject`` is the id of the case, of the episode or of what a capability keeps, or the actor; None if there are several.
    ``made`` and ``hid`` are the ids of the cases that the action stored (or showed again) and took from view.
    ``counts`` says what was changed.
    """

    id: str
    at: float
    namespace: str | None  # None: it concerned all namespaces
    actor: str | None
    action: str
    subject: str | None
    counts: Counts = field(default_factory=dict[str, int])
    note: str | None = None
    made: str | None = None
    hid: str | None = None
    can_undo: bool = False
    undone: bool = False
    undoes: str | None = None  # the id of the entry that this one took back
    done: str = field(default="", repr=False, compare=False)  # what was done, in words, if a capability has done it

    @property
    def changed(self) -> str:
        """What was changed, in one line without any text of a case.

        >>> AuditEntry(id="a", at=0.0, namespace="n", actor="ann", action="forget", subject=None, counts={"cases": 2}).changed
        'forgotten: 2 cases'
        """
        counted = [all_counted({name: count}) for name, count in self.counts.items() if count]
        cases = [f"case {self.made} is shown"] if self.made else []
        cases += [f"case {self.hid} is no longer shown"] if self.hid and self.hid != self.subject else []
        return ": ".join(filter(None, [self.done or _DONE.get(self.action, self.action), ", ".join([*counted, *cases])]))

    @property
    def why_not(self) -> str | None:
        """Why the action cannot be taken back; None if it can."""
        if self.can_undo:
            return None
        if self.undone:
            return "it was taken back before"
        return _WHY_NOT.get(
            self.action, "something later was built on it, or it is gone: take back what came later, if it can be"
        )

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        names = ("id", "at", "namespace", "actor", "action", "subject", "note", "made", "hid", "can_undo", "undone", "undoes")
        return {**{name: getattr(self, name) for name in names}, "counts": dict(self.counts), "changed": self.changed}


def check_different(solution: Solution, known: Solution | None, what: str) -> None:
    """Refuse a correction that changes nothing; a trajectory equals its text here, since a form shows it as text."""
    if solution == known or (known is not None and solution == solution_text(known)):
        raise InvalidInput(f"{what} has this very solution already: if it is right, confirm it instead of correcting it")

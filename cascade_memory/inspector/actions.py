"""What people do here. Each action is a form of a page, is recorded with the name of the visitor, and leads to another page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cascade_memory.domain.episode import Episode
from cascade_memory.errors import AlreadyRewarded, ContentChanged, InvalidInput
from cascade_memory.inspector.view import Elsewhere, Rendered, View

Action: TypeAlias = Callable[[View, str], str]  # it gets its name, and returns the address of the page that follows

# What a page says after an action: the address holds only the name, never a text.
DONE: Mapping[str, str] = {
    "confirm": "You confirmed the answer: agents can be shown it from now on.",
    "reject": "You rejected the answer: the memory learns that this was not solved.",
    "correct": "You corrected the answer. The old one is kept, and is no longer shown.",
    "pin": "This case is pinned: it is neither evicted, nor does it expire.",
    "unpin": "This case is no longer pinned.",
    "hide": "This case is never shown from now on.",
    "unhide": "This case may be shown again.",
    "undo": "The action was taken back.",
    "forget": "It is forgotten. This cannot be taken back.",
}
_DOOR = "inspector"  # the channel of what people do here
_BACK = 20  # entries of the audit log among which the last action is looked for


class Actions:
    """The actions, one at a time: two people may decide on one verdict, and exactly one of them does."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._known: dict[str, Action] = {
            **dict.fromkeys(("confirm", "reject"), _verdict),
            "correct": _correct,
            **dict.fromkeys(("pin", "unpin", "hide", "unhide"), _flag),
            "undo": _undo,
            "forget": _forget,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the actions."""
        return tuple(self._known)

    def do(self, name: str, view: View) -> Rendered:
        """Do what a form says; raise ``Elsewhere`` with the page to go on to."""
        with self._one_at_a_time:
            address = self._known[name](view, name)
        view.remembered.forget()
        raise Elsewhere(address)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def _verdict(view: View, action: str) -> str:
    """Confirm or reject what an agent reported."""
    verbs = {"confirm": view.memory.confirm, "reject": view.memory.reject}
    episode_id = _field(view, "id")
    about = {"actor": view.visitor, "channel": _DOOR, "namespace": view.namespace}
    verbs[action](episode_id, seen=_field(view, "seen"), **about)
    return _done(view, action, "episode", episode_id)


def _correct(view: View, action: str) -> str:
    """Correct the answer of an episode, or the solution of a case."""
    page, one = _subject(view)
    if page == "episode":
        _check_seen(view, view.episode(one))
    note = view.fields.get("note", "").strip()
    case_id = view.memory.correct(
        one,
        _field(view, "solution").strip("\n"),
        actor=view.visitor,
        note=note or None,
        channel=_DOOR,
        namespace=view.namespace,
    )
    return _done(view, action, page, one if page == "episode" else case_id)


def _check_seen(view: View, episode: Episode) -> None:
    """Refuse a correction of something else than what its form showed: somebody was faster."""
    if episode.fingerprint != _field(view, "seen"):
        if episode.source == "human":
            raise AlreadyRewarded("Somebody else has judged this episode since you opened it. Nothing was changed.")
        raise ContentChanged("This episode has changed since you opened it. Nothing was changed: look at it again.")


# -- cases -------------------------------------------------------------------------------------------------------------


def _flag(view: View, action: str) -> str:
    """Pin or hide a case, or take that back."""
    memory = view.memory
    verbs = {"pin": memory.pin, "unpin": memory.unpin, "hide": memory.hide, "unhide": memory.unhide}
    case_id = _field(view, "id")
    verbs[action](case_id, actor=view.visitor, namespace=view.namespace)
    return _done(view, action, "case", case_id)


def _forget(view: View, action: str) -> str:
    page, one = _subject(view)
    named: dict[str, Any] = {"episode_id": one} if page == "episode" else {"case_ids": one}
    purge = view.fields.get("purge") == "yes"
    receipt = view.memory.forget(**named, purge=purge, actor=view.visitor, namespace=view.namespace)
    return view.link(f"{page}s", done=action, cases=receipt.cases, episodes=receipt.episodes, outcomes=receipt.outcomes)


def preview(view: View) -> Rendered:
    """Show the receipt of forgetting something, before it is forgotten."""
    page = view.choice("what", ("case", "episode")) or "case"
    one = view.query.get("id", "")
    named: dict[str, Any] = {"episode_id": one} if page == "episode" else {"case_ids": one}
    receipt = view.memory.forget(**named, dry_run=True, namespace=view.namespace)
    text = view.episode(one).query if page == "episode" else view.memory.get(one, namespace=view.namespace).query
    return Rendered("forget.html", {"what": page, "id": one, "text": text, "receipt": receipt})


# -- the audit log -----------------------------------------------------------------------------------------------------


def audit(view: View) -> Rendered:
    """Show who did what."""
    after = view.asked("after")
    page = view.memory.page_of_audit(after=after, namespace=view.namespace)
    return Rendered("audit.html", {"page": page, "later": after is not None, **told(view)})


def _undo(view: View, action: str) -> str:
    view.memory.undo(_field(view, "entry"), actor=view.visitor, namespace=view.namespace)
    return view.link("audit", done=action)


# -- what was done -----------------------------------------------------------------------------------------------------


def told(view: View) -> dict[str, object]:
    """Return what a page says about an action that was just done, and the entry that takes it back."""
    done = view.query.get("done", "")
    entry = view.asked("entry") if view.edit and done in DONE else None
    return {"done": DONE.get(done), "undo_entry": entry}


def _done(view: View, action: str, page: str, one: str) -> str:
    """Return the address of a page that says what was done."""
    newest = view.memory.page_of_audit(limit=_BACK, namespace=view.namespace)
    mine = next((entry for entry in newest.items if entry.action == action and entry.actor == view.visitor), None)
    entry = mine.id if mine is not None and mine.can_undo and one in (mine.subject, mine.made) else None
    return view.link(page, id=one, done=action, entry=entry)


def _subject(view: View) -> tuple[str, str]:
    what = view.fields.get("what")
    if what not in ("case", "episode"):
        raise InvalidInput("this form does not say whether it is about a case or an episode")
    return what, _field(view, "id")


def _field(view: View, name: str) -> str:
    found = view.fields.get(name, "")
    if not found.strip():
        raise InvalidInput(f"the form lacks its field {name}: go back, and fill it in")
    return found

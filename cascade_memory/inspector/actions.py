"""What people do here. Each action is a form of a page, is recorded with the name of the visitor, and leads to another page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cascade_memory.domain import AuditEntry
from cascade_memory.errors import ContentChanged, InvalidInput
from cascade_memory.inspector.filtering import CaseFilter
from cascade_memory.inspector.view import Elsewhere, Missing, Rendered, View

Action: TypeAlias = "Callable[[View, str], str | Rendered]"  # gets its name; returns the next page, or its address

# What a page says after an action: the address holds only the name, never a text.
DONE: Mapping[str, str] = {
    "confirm": "You confirmed it. The answer is a case now, which agents can be shown.",
    "confirm-unstored": "You confirmed it. No case was stored.",
    "reject": "You rejected it: the memory learns that this was not solved.",
    "correct": "You corrected the answer: yours is shown from now on. An older one is kept in the history only.",
    "pin": "This case is pinned: it is neither evicted, nor does it expire.",
    "unpin": "This case is no longer pinned.",
    "hide": "This case is never shown from now on.",
    "unhide": "This case may be shown again.",
    "unhide-quarantined": "Nobody hides this case now, but its actor is in quarantine: release the actor, or pin the case.",
    "retire": "This warning is retired: agents do not get it any more.",
    "restore": "Agents get this warning again, whatever its record says.",
    "advise": "Agents see your advice with this warning from now on.",
    "unchanged": "Nothing was changed: it was so before.",
    "undo": "The action was taken back.",
}
_BACK = 20  # entries of the audit log among which the last action is looked for


def do(name: str, view: View) -> Rendered:
    """Do what a form says; raise ``Elsewhere`` if another page follows. Of two people at once, the ledger lets one decide."""
    followed = ACTIONS[name](view, name)
    view.remembered.forget()
    if isinstance(followed, str):
        raise Elsewhere(followed)
    return followed


# -- verdicts ----------------------------------------------------------------------------------------------------------


def _confirm(view: View, action: str) -> str:
    """Confirm what an agent reported, or say that its answer is right though it reported a failure."""
    value = 1.0 if view.fields.get("right") == "yes" else None
    episode_id = _field(view, "id")
    case_id = view.memory.review.confirm(episode_id, seen=_field(view, "seen"), value=value)
    return view.link("episode", id=episode_id, done=action if case_id is not None else "confirm-unstored")


def _reject(view: View, action: str) -> str:
    episode_id = _field(view, "id")
    view.memory.review.reject(episode_id, seen=_field(view, "seen"))
    return view.link("episode", id=episode_id, done=action)


def _correct(view: View, action: str) -> str:
    """Correct the answer of an episode, or the solution of a case."""
    page, one = _subject(view)
    case_id = view.memory.review.correct(
        one,
        _field(view, "solution").strip("\n"),
        seen=_field(view, "seen"),
        note=view.fields.get("note", "").strip() or None,
    )
    return view.link(page, id=one if page == "episode" else case_id, done=action)


# -- cases -------------------------------------------------------------------------------------------------------------


def _flag(view: View, action: str) -> str:
    """Pin or hide a case, or take that back."""
    memory = view.memory
    verbs = {"pin": memory.cases.pin, "unpin": memory.cases.unpin, "hide": memory.cases.hide, "unhide": memory.cases.unhide}
    case_id = _field(view, "id")
    verbs[action](case_id)
    stays = action == "unhide" and memory.cases.get(case_id).hidden
    return view.link("case", id=case_id, done="unhide-quarantined" if stays else action)


def _forget(view: View, _: str) -> Rendered:
    """Forget, and show the receipt: it says what could not be purged."""
    purge = view.fields.get("purge") == "yes"
    if view.fields.get("what") == "cases":
        what, found = "cases", CaseFilter.of(view.fields).to_forget(view)
        if _field(view, "seen") != found.seen:
            raise ContentChanged("other cases match now than those that you saw: look at the list again")
        named = found.named
    else:
        page, one = _subject(view)
        what, named = f"{page}s", _named(page, one)
    receipt = view.memory.forget(**named, purge=purge)
    return Rendered("forgotten.html", {"what": what, "receipt": receipt, "purge": purge})


def preview(view: View) -> Rendered:
    """Show the receipt of forgetting something, before it is forgotten. Who may only look could not go on from it."""
    if not view.edit:
        raise Missing("This inspector only shows.")
    page = view.choice("what", ("case", "episode", "cases")) or "case"
    if page == "cases":
        return _preview_all(view)
    one = view.query.get("id", "")
    receipt = view.memory.forget(**_named(page, one), dry_run=True)
    text = view.episode(one).query if page == "episode" else view.memory.cases.get(one).query
    return Rendered("forget.html", {"what": page, "id": one, "text": text, "receipt": receipt})


def _preview_all(view: View) -> Rendered:
    filter_ = CaseFilter.of(view.query)
    found = filter_.to_forget(view)
    receipt = view.memory.forget(**found.named, dry_run=True)
    return Rendered("forget_all.html", {"filter": filter_, "seen": found.seen, "receipt": receipt})


def _named(page: str, one: str) -> dict[str, Any]:
    return {"episode_id": one} if page == "episode" else {"case_ids": one}


# -- warnings ----------------------------------------------------------------------------------------------------------


def _decide(view: View, action: str) -> str:
    """Retire a warning, give it again, or say what to do instead."""
    memory, warning, note = view.memory, _field(view, "id"), view.fields.get("note", "").strip() or None
    if action == "advise":
        done = memory.warnings.advise(warning, _field(view, "advice").strip("\n"), note=note)
    else:
        done = {"retire": memory.warnings.retire, "restore": memory.warnings.restore}[action](warning, note=note)
    return view.link("warning", id=warning, done=action if done else "unchanged")


# -- the audit log -----------------------------------------------------------------------------------------------------


def audit(view: View) -> Rendered:
    """Show who did what."""
    after = view.asked("after")
    page = view.memory.review.page(after=after)
    return Rendered("audit.html", {"page": page, "later": after is not None, **told(view)})


def _undo(view: View, action: str) -> str:
    view.memory.review.undo(_field(view, "entry"))
    return view.link("audit", done=action)


# -- what was done -----------------------------------------------------------------------------------------------------


def told(view: View, about: str | None = None) -> dict[str, object]:
    """Return what a page says about an action that was just done to what it shows, and the entry that takes it back."""
    done = view.query.get("done", "")
    entry = _entry_of(view, done.partition("-")[0], about) if view.edit and about and done in DONE else None
    return {"done": DONE.get(done), "undo_entry": None if entry is None else entry.id}


def _entry_of(view: View, action: str, about: str) -> AuditEntry | None:
    """Find what this visitor did a moment ago; the address of a page does not decide what its button takes back."""
    newest = view.memory.review.page(limit=_BACK).items
    mine = next((one for one in newest if (one.action, one.actor) == (action, view.visitor)), None)
    return mine if mine is not None and mine.can_undo and about in (mine.subject, mine.made) else None


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


ACTIONS: Mapping[str, Action] = {
    "confirm": _confirm,
    "reject": _reject,
    "correct": _correct,
    **dict.fromkeys(("pin", "unpin", "hide", "unhide"), _flag),
    **dict.fromkeys(("retire", "restore", "advise"), _decide),
    "undo": _undo,
    "forget": _forget,
}

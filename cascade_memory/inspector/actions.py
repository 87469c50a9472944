"""What people do to cases and episodes with the forms of pages, and the message that follows. Capabilities add other forms."""

from __future__ import annotations

from typing import Any

from cascade_memory.domain import AuditEntry
from cascade_memory.errors import ContentChanged
from cascade_memory.inspector.filtering import CaseFilter
from cascade_memory.inspector.view import Act, Elsewhere, Missing, Rendered, View

_BACK = 20  # entries of the audit log among which the last action is looked for


def do(name: str, view: View) -> Rendered:
    """Do what a form asks for, and return the page that follows; raise ``Elsewhere`` if that page has its own address.

    If two people act on the same content at once, the ledger refuses the second action.
    """
    followed = view.acts[name].do(view, name)
    view.remembered.forget()
    if isinstance(followed, str):
        raise Elsewhere(followed)
    return followed


# -- cases -------------------------------------------------------------------------------------------------------------


def _flag(view: View, action: str) -> str:
    """Pin, unpin, hide or unhide a case, as ``action`` says; return the address of the next page."""
    memory = view.memory
    verbs = {"pin": memory.cases.pin, "unpin": memory.cases.unpin, "hide": memory.cases.hide, "unhide": memory.cases.unhide}
    case_id = view.filled("id")
    verbs[action](case_id)
    stays = action == "unhide" and memory.cases.get(case_id).hidden
    return view.link("case", id=case_id, done="unhide-held" if stays else action)


def _forget(view: View, _: str) -> Rendered:
    """Forget what the form names, and show the receipt, which says what could not be purged."""
    purge = view.fields.get("purge") == "yes"
    if view.fields.get("what") == "cases":
        what, found = "cases", CaseFilter.of(view.fields).to_forget(view)
        if view.filled("seen") != found.seen:
            raise ContentChanged("other cases match now than those that you saw: look at the list again")
        named = found.named
    else:
        page, one = view.subject()
        what, named = f"{page}s", _named(page, one)
    receipt = view.memory.forget(**named, purge=purge)
    return Rendered("forgotten.html", {"what": what, "receipt": receipt, "purge": purge})


def preview(view: View) -> Rendered:
    """Show what forgetting would delete, before anything is deleted. Raise ``Missing`` if the visitor may not edit."""
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


# -- what was done -----------------------------------------------------------------------------------------------------


def told(view: View, about: str | None = None) -> dict[str, object]:
    """Return two values for a template: the message about the action just done, and the id of its audit log entry for undo.

    ``about`` is the id of the case, episode or warning that the page shows. A value is None if there is nothing to show.
    """
    name, _, variant = view.query.get("done", "").partition("-")
    if name == "unchanged":
        return {"done": "Nothing was changed: it was so before.", "undo_entry": None}
    act = view.acts.get(name)
    said = None if act is None else act.variants.get(variant) if variant else act.said or None
    entry = _entry_of(view, name, about) if view.edit and about and said else None
    return {"done": said, "undo_entry": None if entry is None else entry.id}


def _entry_of(view: View, action: str, about: str) -> AuditEntry | None:
    """Return the audit log entry of this visitor's last ``action``, if it is about ``about`` and can be undone.

    The entry is looked up in the log, so that the address of a page does not decide what the page's undo button undoes.
    """
    newest = view.memory.review.page(limit=_BACK).items
    mine = next((one for one in newest if (one.action, one.actor) == (action, view.visitor)), None)
    return mine if mine is not None and mine.can_undo and about in (mine.subject, mine.made) else None


ACTS = {
    **Act.each(
        _flag,
        "case",
        {
            "pin": "This case is pinned: it is neither evicted, nor does it expire.",
            "unpin": "This case is no longer pinned.",
            "hide": "This case is never shown from now on.",
            "unhide": "This case may be shown again.",
        },
        held="Nobody hides this case now, but its actor is in quarantine: release the actor, or pin the case.",
    ),
    "forget": Act(do=_forget, about="about"),
}

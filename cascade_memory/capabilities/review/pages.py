"""The pages of review: what waits for a verdict, and the audit log, with forms to judge and to undo."""

from __future__ import annotations

import itertools

from cascade_memory import Episode
from cascade_memory.inspector import Act, Elsewhere, Rendered, View, told

PER_PAGE = 50
_RATES = (1.0, 0.5, 0.2, 0.1, 0.05)  # the shares of episodes about which people may be asked
MOST_LISTED = 2_000  # episodes that wait and are listed


def judge(view: View) -> Rendered:
    """List what waits for a verdict, the most informative first."""
    offered = dict.fromkeys([view.rate, *_RATES])
    rate = next((one for one in offered if f"{one:g}" == view.query.get("rate")), view.rate)
    text = view.query.get("start", "")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0

    def waiting() -> list[Episode]:
        return list(itertools.islice(view.memory.review.to_judge(rate=rate), MOST_LISTED))

    seen = view.remembered.get(("judge", rate, view.namespace), waiting)
    found = [] if seen is None else seen.value
    values = {
        "rate": f"{rate:g}",
        "rates": [(f"{one:g}", "all of them" if one == 1.0 else f"{one:.0%} of all episodes") for one in sorted(offered)[::-1]],
        "waits": seen is None,
        "items": found[start : start + PER_PAGE],
        "total": len(found),
        "more": len(found) == MOST_LISTED,
        "start": start,
        "following": start + PER_PAGE if len(found) > start + PER_PAGE else None,
    }
    return Rendered("judge.html", values, reload=1 if seen is None else None)


def audit(view: View) -> Rendered:
    """Show who did what."""
    after = view.asked("after")
    pages = {"add": "case", "reward": "about", **{name: act.about for name, act in view.acts.items()}}
    page = view.memory.review.page(after=after)
    return Rendered("audit.html", {"page": page, "pages": pages, "later": after is not None, **told(view)})


def about(view: View) -> Rendered:
    """Send the browser to the page of the episode or case that an entry of the audit log is about."""
    one = view.query.get("id", "")
    page = "episode" if one and view.memory.episodes.get(one) is not None else "case"
    raise Elsewhere(view.link(page, id=one))


def confirm(view: View, name: str) -> str:
    """Confirm what an agent reported, or say that its answer is right though it reported a failure."""
    value = 1.0 if view.fields.get("right") == "yes" else None
    episode_id = view.filled("id")
    case_id = view.memory.review.confirm(episode_id, seen=view.filled("seen"), value=value)
    return view.link("episode", id=episode_id, done=name if case_id is not None else f"{name}-unstored")


def reject(view: View, name: str) -> str:
    """Say that what an agent did was wrong."""
    episode_id = view.filled("id")
    view.memory.review.reject(episode_id, seen=view.filled("seen"))
    return view.link("episode", id=episode_id, done=name)


def correct(view: View, name: str) -> str:
    """Correct the answer of an episode, or the solution of a case."""
    page, one = view.subject()
    case_id = view.memory.review.correct(
        one,
        view.filled("solution").strip("\n"),
        seen=view.filled("seen"),
        note=view.fields.get("note", "").strip() or None,
    )
    return view.link(page, id=one if page == "episode" else case_id, done=name)


def undo(view: View, name: str) -> str:
    """Undo the action of an entry of the audit log."""
    view.memory.review.undo(view.filled("entry"))
    return view.link("audit", done=name)


PAGES = {"judge": judge, "audit": audit, "about": about}
TABS = (("judge", "To judge"), ("audit", "Audit log"))
ACTS = {
    "confirm": Act(
        do=confirm,
        about="about",
        said="You confirmed it. The answer is a case now, which agents can be shown.",
        variants={"unstored": "You confirmed it. No case was stored."},
    ),
    "reject": Act(do=reject, about="about", said="You rejected it: the memory learns that this was not solved."),
    "correct": Act(
        do=correct,
        about="about",
        said="You corrected the answer: yours is shown from now on. An older one is kept in the history only.",
    ),
    "undo": Act(do=undo, about="about", said="The action was taken back."),
}

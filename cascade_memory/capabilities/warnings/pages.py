"""The pages of warnings: a list, and one warning with what came of it and what people decide about it."""

from __future__ import annotations

from cascade_memory import FailureWarning
from cascade_memory.domain.failure_warning import Tally
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector import Act, Missing, Rendered, View, cut, is_cut, told

PER_PAGE = 50
STATES = ("active", "retired", "held")
WHY = {
    "failed": "A tool call failed there",
    "refused": "A person refused the call",
}
MEANS = {
    "active": "Agents that are about to do it may be warned; chance decides, with a probability that is learned.",
    "retired": "It is hardly given any more: its record says that it did not help.",
    "held": "It rests on the word of actors who are not trusted yet, or are in quarantine. Agents are not shown it.",
}
BY_HAND = {
    "active": "A person has restored it: agents that are about to do it are nearly always warned, whatever its record says.",
    "retired": "A person has retired it: agents do not get it any more, whatever its record says.",
}


def warnings(view: View) -> Rendered:
    """List warnings, the latest first."""
    state, start = view.choice("state", STATES), _place(view.query.get("start", ""))
    every = _all(view)
    found = [one for one in every or () if state is None or one.state == state]
    values = {
        "state": state,
        "states": STATES,
        "waits": every is None,
        "items": found[start : start + PER_PAGE],
        "total": len(found),
        "start": start,
        "following": start + PER_PAGE if len(found) > start + PER_PAGE else None,
    }
    return Rendered("warnings.html", values, reload=1 if every is None else None)


def warning(view: View) -> Rendered:
    """Show one warning."""
    one, whole = view.query.get("id", ""), view.asked("whole") is not None
    try:
        found = view.memory.warnings.get(one)
    except InvalidInput:  # no warning has such an id
        found = None
    if found is None:
        raise Missing(
            f"There is no warning {one!r} in the namespace {view.namespace!r}. A warning goes with the last of its failures."
        )
    texts = {"query": found.query, "action": found.action, "happened": found.happened, "instead": found.instead}
    return Rendered(
        "warning.html",
        {
            "warning": found,
            "why": WHY.get(found.why, found.why),
            "means": {**MEANS, **(BY_HAND if found.by_hand else {})}.get(found.state, found.state),
            "texts": {name: cut(text, whole) for name, text in texts.items()},
            "whole": whole,
            "can_be_whole": any(is_cut(text) for text in texts.values()),
            "arms": arms(found.tally),
            **told(view, found.id),
        },
    )


def arms(tally: Tally) -> tuple[tuple[str, int, int, float], ...]:
    """Return (arm, episodes, repeated mistakes, mean reward) for warned episodes and for those that chance left unwarned.

    >>> arms(Tally(warned=4, warned_repeated=1, warned_reward=3.0))
    (('warned', 4, 1, 0.75),)
    """
    both = (
        ("warned", tally.warned, tally.warned_repeated, tally.warned_reward),
        ("silent", tally.silent, tally.silent_repeated, tally.silent_reward),
    )
    return tuple((name, count, repeated, reward / count) for name, count, repeated, reward in both if count)


def _all(view: View) -> list[FailureWarning] | None:
    seen = view.remembered.get(("warnings", view.namespace), lambda: view.memory.warnings.all())
    return None if seen is None else seen.value


def _place(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def decide(view: View, name: str) -> str:
    """Retire a warning, give it again, or say what to do instead."""
    verbs, warning, note = view.memory.warnings, view.filled("id"), view.fields.get("note", "").strip() or None
    if name == "advise":
        done = verbs.advise(warning, view.filled("advice").strip("\n"), note=note)
    else:
        done = {"retire": verbs.retire, "restore": verbs.restore}[name](warning, note=note)
    return view.link("warning", id=warning, done=name if done else "unchanged")


PAGES = {"warnings": warnings, "warning": warning}
TABS = (("warnings", "Warnings"),)
ACTS = Act.each(
    decide,
    "warning",
    {
        "retire": "This warning is retired: agents do not get it any more.",
        "restore": "Agents get this warning again, whatever its record says.",
        "advise": "Agents see your advice with this warning from now on.",
    },
)

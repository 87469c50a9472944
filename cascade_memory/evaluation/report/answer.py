"""The answer that the report begins with: a sentence, and one number with its interval."""

from __future__ import annotations

from html import escape

from cascade_memory.evaluation.report import words
from cascade_memory.evaluation.report.differences import ENOUGH, Difference, Verdict, comparable, on_average
from cascade_memory.evaluation.report.section import Section

_SAYS: dict[Verdict, str] = {"more": "Yes: it helps.", "fewer": "No: it harms.", "open": "No difference can be told."}
_AGAINST_OTHERS: dict[Verdict, str] = {"more": "It is ahead.", "fewer": "It is behind.", "open": "No difference can be told."}


def answer(section: Section) -> str:
    """Render the answer of a section: what its method gains on the mean over tasks, against no memory if that was played."""
    ours = words.subject(section)
    base = next(iter(words.compared_with(section)), None)
    found = None if base is None else on_average(section, comparable(section, ours, base), ours, base)
    if base is None or found is None:
        return _box("open", f"Nothing was played that {ours} could be compared with: add {words.NO_MEMORY}.", "", "")
    tasks = len(comparable(section, ours, base))
    where = "on 1 stream" if tasks == 1 else f"on the mean over {tasks} streams"
    what = "no memory" if base == words.NO_MEMORY else base
    says = (_SAYS if base == words.NO_MEMORY else _AGAINST_OTHERS)[found.verdict]
    if found.seeds < ENOUGH:
        says = "Too few seeds to tell."
    return _box(found.verdict, says, str(found), f"points solved more by {ours} than by {what}, {where}. {_how_sure(found)}")


def _how_sure(found: Difference) -> str:
    seeds = "1 seed" if found.seeds == 1 else f"{found.seeds} seeds"
    if found.seeds < ENOUGH:
        return f"It is of {seeds}: with fewer than {ENOUGH}, nothing is certain."
    return f"±: half of the 95 % interval over {seeds}."


def _box(verdict: Verdict, says: str, number: str, about: str) -> str:
    figure = f'<span class="number">{escape(number)}</span> <span>{escape(about)}</span>' if number else ""
    return f'<p class="answer {verdict}"><strong>{escape(says)}</strong> {figure}</p>'

"""Turns texts into what a page shows: escaped, with every character visible, and not longer than a reader can take in."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cascade_memory import Trajectory
from cascade_memory.capabilities import parts
from cascade_memory.domain import Solution, number, solution_text
from cascade_memory.visible import shortened, visible

HERE = Path(__file__).parent
LINE = 180  # characters of a text in a list
WHOLE = 12_000  # characters of a text on a page of its own, unless all of it is asked for
STEPS = 60  # of a trajectory, likewise
# What HTML cannot hold: control characters but tab and line feed, and halves of characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_WRITTEN = re.compile(r"&lt;(U\+[0-9A-F]{4,6})&gt;")


def plain(text: str) -> str:
    r"""Write out invisible characters as code points, for a place where there can be no markup.

    >>> plain("a\x00b\u202ec")
    'a<U+0000>b<U+202E>c'
    """
    return visible(text.replace("\r\n", "\n"))


def marked(text: object) -> Markup:
    r"""Escape a text for a page, and mark the code points of its invisible characters.

    Every value in a template passes through this function.

    >>> marked("<b>\u202e")
    Markup('&lt;b&gt;<mark>U+202E</mark>')
    """
    if isinstance(text, Markup):
        return text
    # The marker has no quotes, so that it could not end an attribute either.
    return Markup(_WRITTEN.sub(r"<mark>\1</mark>", str(escape(plain(str(text))))))


def raw(text: object) -> Markup:
    """Escape a text that a form sends back.

    Invisible characters are kept as they are, but those that HTML cannot hold are replaced by U+FFFD.
    """
    return Markup(str(escape(_CONTROL.sub("\ufffd", str(text).replace("\r\n", "\n")))))


def line(text: object, width: int = LINE) -> str:
    r"""Shorten a text to one line.

    >>> line("heat   the\ncup", 8)
    'heat th…'
    """
    found = " ".join(str(text)[: 8 * width].split())
    return found if len(found) <= width else found[: width - 1] + "…"


def cut(text: str, whole: bool) -> str:
    """Cut a long text in its middle, unless ``whole`` is true."""
    return text if whole else shortened(text, WHOLE)


def is_cut(text: str) -> bool:
    """Say whether ``cut`` leaves something out."""
    return len(text) > WHOLE


def solved(solution: Solution | None) -> str:
    """Return a solution as text; empty if there is none."""
    return "" if solution is None else solution_text(solution)


def steps_of(solution: Solution | None) -> Trajectory | None:
    """Return a trajectory; None for a solution that is a text."""
    return solution if isinstance(solution, Trajectory) else None


def moment(seconds: float | None) -> Markup:
    """Show a point in time, by the clock of the machine.

    >>> moment(None)
    Markup('–')
    """
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds < 2e10:
        return Markup("–")
    local, utc = time.localtime(seconds), time.gmtime(seconds)
    return Markup(
        f'<time datetime="{time.strftime("%Y-%m-%dT%H:%M:%SZ", utc)}">{time.strftime("%Y-%m-%d %H:%M", local)}</time>'
    )


def ago(seconds: float | None) -> str:
    """Say how long ago something was.

    >>> ago(time.time() - 7200)
    '2 hours ago'
    """
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds < 2e10:
        return "–"
    passed = max(0.0, time.time() - seconds)
    for name, size in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if passed >= size:
            count = int(passed // size)
            return f"{count:,} {name}{'' if count == 1 else 's'} ago"
    return "just now"


def share(value: float | None) -> str:
    """Show a probability or a rate.

    >>> share(0.517), share(float("nan"))
    ('52 %', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{100 * value:.0f} %"


def signed(value: float) -> str:
    """Show a number with its sign.

    >>> signed(-0.5), signed(0.001)
    ('−0.50', '0.00')
    """
    text = f"{abs(value):.2f}"
    return "–" if math.isnan(value) else text if text == "0.00" else f"{'−' if value < 0 else '+'}{text}"


def as_json(value: object) -> str:
    """Return metadata, or the arguments of a tool, as JSON text."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _attribute(text: object) -> Markup:
    return raw(plain(str(text)))


def _count(value: float) -> str:
    return f"{int(value):,}"


def environment() -> Environment:
    """Make the environment of the templates: it escapes all values, and raises for a name that has no value."""
    of_capabilities = (Path(str(part.__file__)).parent / "templates" for part in parts("pages"))
    made = Environment(
        loader=FileSystemLoader([HERE / "templates", *of_capabilities]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=marked,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: Mapping[str, Callable[..., Any]] = {
        "raw": raw,
        "plain": _attribute,
        "line": line,
        "moment": moment,
        "ago": ago,
        "share": share,
        "signed": signed,
        "number": number,
        "solved": solved,
        "json": as_json,
        "count": _count,
    }
    made.filters.update(filters)
    names: dict[str, Any] = {"cut": cut, "most_steps": STEPS}
    cast("dict[str, Any]", made.globals).update(names)
    return made

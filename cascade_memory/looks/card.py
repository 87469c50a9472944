"""The look of objects in a notebook: one card, whose style affects nothing else on the page, and whose texts are escaped.

Texts of cases cannot be trusted: each text goes through ``_escaped`` or ``_prose``.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cascade_memory.looks.curves import Panel
from cascade_memory.looks.palette import SHADES, variables
from cascade_memory.looks.svg import svg
from cascade_memory.visible import shortened, visible

_LONG, _LINES = 280, 5  # longer texts are folded
_MOST = 20_000  # characters of a text that the page gets
_FIRST = 110  # characters of a folded text that stay in sight

# The theme of JupyterLab, VS Code, Colab and Material for MkDocs decides about light and dark; elsewhere the reader's system.
_THEMES = {
    "light": ("[data-jp-theme-light=true]", ".vscode-light", "[data-theme=light]", "[data-md-color-scheme=default]"),
    "dark": (
        "[data-jp-theme-light=false]",
        ".vscode-dark",
        "[theme=dark]",
        "[data-theme=dark]",
        "[data-md-color-scheme=slate]",
    ),
}
_STYLE = {
    "": "color-scheme:light dark;position:relative;color:var(--c-ink);background:var(--c-page);border:1px solid var(--line);"
    "border-radius:6px;"
    "padding:.6em .9em;max-width:60em;font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);overflow-wrap:anywhere;"
    "box-sizing:border-box;--c-ink:var(--jp-content-font-color0,var(--vscode-editor-foreground,var(--ink)));"
    "--c-page:var(--jp-layout-color0,var(--vscode-editor-background,var(--page)));",
    "b": "font-weight:650",
    ".cm-head": "display:flex;flex-wrap:wrap;gap:0 .7em;align-items:baseline;margin:0 0 .3em",
    ".cm-head b": "font-size:14px",
    ".cm-dim": "color:var(--faint)",
    ".cm-good": "color:var(--good)",
    ".cm-bad": "color:var(--bad)",
    ".cm-wide": "overflow-x:auto",
    "table:nth-child(n)": "border-collapse:collapse;margin:0;font-size:13px;table-layout:auto;border:0",
    "tr:nth-child(n)": "background:none;border:0",
    "th:nth-child(n),td:nth-child(n)": "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;border:0;"
    "white-space:normal;max-width:46em;background:none;font-weight:400;color:inherit",
    "tbody th:nth-child(n),thead th:nth-child(n)": "color:var(--faint);white-space:nowrap",
    ".cm-grid td:nth-child(n)": "border-top:1px solid var(--line)",
    ".cm-grid td:first-child:nth-child(n)": "white-space:nowrap",
    ".cm-grid td:last-child:nth-child(n)": "min-width:11em",
    ".cm-grid .cm-n:nth-child(n)": "text-align:right;min-width:0;white-space:nowrap;font-variant-numeric:tabular-nums",
    ".cm-entry": "border-left:3px solid var(--cascade);background:var(--box);padding:.35em .7em;margin:.45em 0;"
    "border-radius:0 4px 4px 0",
    ".cm-text": "white-space:pre-wrap",
    "details": "margin:0",
    "summary": "cursor:pointer;color:inherit;display:list-item",
    "p": "margin:.25em 0;font-size:12px;color:var(--faint)",
    "figure": "margin:.5em 0;display:flex;flex-wrap:wrap;gap:.5em 1.5em",
    "figure>div": "flex:1 1 20em;max-width:30em;min-width:0",
    "svg": "display:block;width:100%;height:auto;font-family:inherit",
    ".cm-said": "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    rows: Sequence[tuple[str, str]]

    def html(self) -> str:
        """Render the facts as a table of two columns."""
        lines = "".join(f'<tr><th scope="row">{_escaped(name)}</th><td>{_prose(value)}</td></tr>' for name, value in self.rows)
        return f'<div class="cm-wide"><table><tbody>{lines}</tbody></table></div>' if self.rows else ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; ``numbers`` are the columns whose cells are aligned to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()

    def html(self) -> str:
        """Render the table in a box that scrolls if the table is too wide."""
        kinds = [' class="cm-n"' if place in self.numbers else "" for place in range(len(self.head))]
        head = "".join(f'<th scope="col"{kind}>{_escaped(text)}</th>' for text, kind in zip(self.head, kinds, strict=True))
        body = "".join(
            "<tr>" + "".join(f"<td{kind}>{_prose(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
            for row in self.rows
        )
        table = f'<table class="cm-grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return f'<div class="cm-wide">{table}</div>' if self.rows else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A task with its solution, and a line about them."""

    task: str
    solution: str
    about: str = ""

    def html(self) -> str:
        """Render the entry as a box; long texts are folded."""
        about = f'<div class="cm-dim">{_escaped(self.about)}</div>' if self.about else ""
        solution = f"<div>{_prose(self.solution)}</div>" if self.solution else ""
        return f'<div class="cm-entry"><div><b>{_prose(self.task)}</b></div>{solution}{about}</div>'


@dataclass(frozen=True, slots=True)
class Notes:
    """Remarks in small letters."""

    lines: Sequence[str]

    def html(self) -> str:
        """Render each remark as a paragraph."""
        return "".join(f"<p>{_escaped(line)}</p>" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Picture:
    """Panels of curves, side by side or, on a narrow page, one below the other; each with a text that says what it shows."""

    panels: Sequence[Panel]
    height: float = 210.0

    def html(self) -> str:
        """Render the panels; their texts are for readers who cannot see the curves, and for pages that drop the picture."""
        drawn = "".join(
            f"<div><b>{_escaped(panel.title)}</b>{svg(panel, self.height)}"
            f'<span class="cm-said">{_escaped(panel.words)}</span></div>'
            for panel in self.panels
        )
        return f"<figure>{drawn}</figure>" if self.panels else ""


@dataclass(frozen=True, slots=True)
class Card:
    """What an object shows in a notebook: what it is, a sentence, and parts."""

    kind: str
    said: str = ""
    parts: Sequence[Facts | Grid | Entry | Notes | Picture] = field(default=())
    state: Literal["", "good", "bad"] = ""

    def html(self) -> str:
        """Render the card, with its style.

        >>> text = Card("case", "<b>", [Facts([("id", "<i>")])]).html()
        >>> text[text.index("<tbody>") :]
        '<tbody><tr><th scope="row">id</th><td>&lt;i&gt;</td></tr></tbody></table></div></div>'
        """
        kind = f" cm-{self.state}" if self.state else " cm-dim"
        head = (
            f'<div class="cm-head"><b>{_escaped(self.kind)}</b><span class="{kind.strip()}">{_escaped(self.said)}</span></div>'
        )
        body = head + "".join(part.html() for part in self.parts)
        return f'<div class="cascade-memory"><style>{_style(body)}</style>{body}</div>'


def _style(body: str) -> str:
    """Return the CSS rules and variables that a body needs; each rule overrides the notebook's own rules for tables."""
    own = ".cascade-memory.cascade-memory"
    needed = {selector: rule for selector, rule in _STYLE.items() if _needs(body, selector)}
    rules = "".join(f"{_within(own, selector)}{{{rule}}}" for selector, rule in needed.items())
    themes = "".join(f"{','.join(f'{one} {own}' for one in which)}{{color-scheme:{name}}}" for name, which in _THEMES.items())
    named = [name for name in SHADES if f"var(--{name})" in body or f"var(--{name})" in rules]
    return f"{own}{{{variables(named)}}}{rules}{themes}"


def _within(own: str, selector: str) -> str:
    return ",".join(f"{own} {one}".rstrip() for one in selector.split(","))


def _needs(body: str, selector: str) -> bool:
    """Say whether a body contains an element that the beginning of a selector names."""
    first = selector.split(",")[0].split(" ")[0].split(">")[0].split(":")[0]
    return not first or (f"{first[1:]}" in body if first.startswith(".") else f"<{first}" in body)


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def _prose(text: str) -> str:
    """Escape a text; a long one is folded, and a very long one is cut in the middle."""
    if len(text) <= _LONG and text.count("\n") < _LINES:
        return f'<span class="cm-text">{_escaped(text)}</span>' if "\n" in text else _escaped(text)
    whole = shortened(text, _MOST)
    first = " ".join(whole[: 2 * _FIRST].split())[:_FIRST]
    size = f"{len(text):,} characters"
    return (
        f'<details><summary>{_escaped(first)}… <span class="cm-dim">({size})</span></summary>'
        f'<div class="cm-text">{_escaped(whole)}</div></details>'
    )

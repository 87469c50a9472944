"""Builds HTML in which every text is escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

from cascade_memory.evaluation.report.drawing import Chart, svg
from cascade_memory.looks import Look, as_variable

_SIGNS = {"more": "▲", "fewer": "▼", "open": "●"}  # colours alone are not enough for colour-blind readers


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: a text with a verdict."""

    text: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first cell of each line is its name; ``words`` are the columns with words instead of figures."""

    caption: str
    head: Sequence[str]
    lines: Sequence[Sequence[str | Cell]]
    words: Collection[int] = ()

    def html(self) -> str:
        """Render the table in a box that scrolls if the table is too wide.

        >>> print(Table("a & b", ["x", "y"], [["<z>", "1"]]).html())
        <div class="scroll" tabindex="0" role="region" aria-label="a &amp; b"><table><caption>a &amp; b</caption>
        <thead><tr><th scope="col">x</th><th scope="col">y</th></tr></thead>
        <tbody><tr><th scope="row">&lt;z&gt;</th><td>1</td></tr></tbody></table></div>
        """
        caption = escape(self.caption)
        kinds = [' class="words"' if place in self.words else "" for place in range(len(self.head))]
        head = "".join(f'<th scope="col"{kind}>{escape(text)}</th>' for text, kind in zip(self.head, kinds, strict=True))
        body = "\n".join(
            f'<tr><th scope="row">{_text(first)}</th>{"".join(map(_cell, others, kinds[1:]))}</tr>'
            for first, *others in self.lines
        )
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        )


def _text(cell: str | Cell) -> str:
    return escape(cell if isinstance(cell, str) else cell.text)


def _cell(cell: str | Cell, kind: str) -> str:
    if isinstance(cell, str):
        return f"<td{kind}>{escape(cell)}</td>"
    return f'<td class="{escape(cell.verdict)}">{sign(cell.verdict)}{escape(cell.text)}</td>'


def sign(verdict: str) -> str:
    """Render the sign of a verdict: ▲ for more, ▼ for fewer, ● for open."""
    return f'<span class="sign" aria-hidden="true">{_SIGNS[verdict]}</span> '


def heading(level: int, text: str) -> str:
    """Render a heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """Render a paragraph."""
    return f"<p>{escape(text)}</p>"


def sentences(lines: Sequence[tuple[str, str]]) -> str:
    """Render a list of sentences, each with the mark of its verdict."""
    items = "".join(f'<li class="{verdict}">{sign(verdict)}{escape(text)}</li>' for verdict, text in lines)
    return f'<ul class="verdicts">{items}</ul>'


def folded(title: str, parts: Sequence[str]) -> str:
    """Render parts that a reader opens on demand.

    >>> folded("More & more", ["<p>text</p>"])
    '<details><summary>More &amp; more</summary><p>text</p></details>'
    """
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>" if parts else ""


def chart(one: Chart, name: str) -> str:
    """Render a chart: a heading, a legend, the pictures with descriptions, and a caption."""
    panels = "\n".join(
        f'<figure><figcaption>{escape(panel.title)}</figcaption><div role="img" aria-label="{escape(panel.about)}">'
        f"{svg(panel, f'{name}-{i}')}</div></figure>"
        for i, panel in enumerate(one.panels)
    )
    head = heading(3, one.heading) + _legend(one.legend)
    return f'{head}<div class="panels">{panels}</div>{paragraph(one.caption)}'


_DASHES = {"-": "", "--": "6 3", ":": "2 3", "-.": "7 3 2 3"}
_MARKS = {  # about (14, 6)
    "o": "M10.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
    "^": "M10 9.5L14 2.5L18 9.5Z",
    "v": "M10 2.5L14 9.5L18 2.5Z",
    "s": "M10.8 2.8h6.4v6.4h-6.4Z",
    "D": "M14 2L18 6L14 10L10 6Z",
    "X": "M10 4l2-2l2 2l2-2l2 2l-2 2l2 2l-2 2l-2-2l-2 2l-2-2l2-2Z",
    "P": "M12.5 2.5h3v2h2v3h-2v2h-3v-2h-2v-3h2Z",
    "*": "M14 1.5l1.2 3.2h3.4l-2.7 2.1l1 3.4l-2.9-2l-2.9 2l1-3.4l-2.7-2.1h3.4Z",
    "h": "M10.5 4l3.5-2l3.5 2v4l-3.5 2l-3.5-2Z",
    "p": "M14 2l4 3l-1.5 5h-5l-1.5-5Z",
    ".": "M12.5 6a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0 -3 0",
}


def _legend(legend: dict[str, Look]) -> str:
    items = "".join(
        f'<li><svg aria-hidden="true" width="28" height="12" viewBox="0 0 28 12"><path d="M0 6H28" stroke-width="2" '
        f'stroke-dasharray="{_DASHES[look.dash]}" style="stroke: {as_variable(look.colour)}"/>'
        f'<path d="{_MARKS[look.mark]}" style="fill: {as_variable(look.colour)}"/></svg> {escape(method)}</li>'
        for method, look in legend.items()
    )
    return f'<ul class="legend">{items}</ul>' if legend else ""

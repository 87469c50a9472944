"""Builds the page of the report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report import charts, forest, paper, tables, words
from cascade_memory.evaluation.report.differences import ENOUGH
from cascade_memory.evaluation.report.drawing import Chart
from cascade_memory.evaluation.report.markup import chart, heading, paragraph, sentences
from cascade_memory.evaluation.report.palette import ON_DARK
from cascade_memory.evaluation.report.section import Section, solved_last_fifth, solved_of_the_rest

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(found: Sequence[Section], tuned: Sequence[tuple[Section, Chart]]) -> str:
    """Render the whole document."""
    rows = [row for section in found for row in section.rows.values()]
    parts = [_head(found, rows), *(_section(section, i) for i, section in enumerate(found))]
    parts += [_tuning(section, one, i) for i, (section, one) in enumerate(tuned)]
    style = _colours() + resources.files("cascade_memory.evaluation.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(_title(rows))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + f"\n</main>\n<footer>{_footer(rows)}</footer>\n</body>\n</html>\n"
    )


def _colours() -> str:
    """Define a CSS variable for every colour of the pictures, for light and dark pages."""
    light, dark = (
        "".join(f"--c{name[1:]}: {colour}; " for name, colour in pairs)
        for pairs in ([(name, name) for name in ON_DARK], ON_DARK.items())
    )
    return f":root {{ {light}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"


def _title(rows: Sequence[Row]) -> str:
    tasks, methods, seeds = (len({row[name] for row in rows}) for name in ("task", "method", "seed"))
    return f"Does the memory help? {_many(tasks, 'stream')}, {_many(methods, 'method')}, {_many(seeds, 'seed')}"


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _head(found: Sequence[Section], rows: Sequence[Row]) -> str:
    episodes = sum(row["n"] for row in rows)
    links = "".join(f'<li><a href="#solver-{i}">{escape(_name(section))}</a></li>' for i, section in enumerate(found))
    return (
        f"<h1>{escape(_title(rows))}</h1>"
        + paragraph(
            f"{_many(len(rows), 'run')}, {episodes:,} tasks played: a task is tested before its outcome is learned from, and "
            "with the same seed every method has the same order and the same solver. Figures of different solvers are never "
            "mixed: each solver has its own part."
        )
        + f'<nav aria-label="Parts of this page"><ul>{links}</ul></nav>'
    )


def _name(section: Section) -> str:
    return section.title if section.limit is None else f"{section.title}; the first {section.limit} tasks of each stream"


def _section(section: Section, place: int) -> str:
    parts = [
        f'<h2 id="solver-{place}">{escape(_name(section))}</h2>',
        _verdicts(section),
        heading(3, "What was played"),
        paragraph(f"Methods: {'; '.join(section.methods)}. Seeds: {', '.join(map(str, section.seeds))}."),
        tables.streams(section).html(),
        chart(charts.success(section), section.title, f"{place}-success"),
        tables.success(section).html(),
    ]
    if (drawn := charts.steps(section)) is not None:
        parts.append(chart(drawn, section.title, f"{place}-steps"))
    if (table := tables.beside_the_paper(section)) is not None:
        parts += [heading(3, "Beside the paper"), paragraph(paper.CITATION), table.html()]
    parts.append(_differences(section, place))
    if (drawn := charts.missed(section)) is not None and (table := tables.missed(section)) is not None:
        parts += [chart(drawn, section.title, f"{place}-regret"), table.html()]
    if kinds := tables.by_kind(section):
        parts += [heading(3, "By kind of task"), *(table.html() for table in kinds)]
    drawn = forest.costs(section)
    parts.append(heading(3, "What it costs") if drawn is None else chart(drawn, section.title, f"{place}-costs"))
    parts += [table.html() for table in tables.costs(section)]
    return "\n".join(parts)


def _verdicts(section: Section) -> str:
    method = words.subject(section)
    lines = [line for base in words.compared_with(section) for line in words.against(section, method, base)]
    rival = words.against_the_best_rival(section)
    warning = paragraph(f"With fewer than {ENOUGH} seeds, no two methods can be distinguished.")
    few = [warning] if len(section.seeds) < ENOUGH else []
    return "\n".join(
        [
            heading(3, f"How {method} compares"),
            *few,
            sentences([*lines, *([rival] if rival else [])]),
            heading(3, "Where memory does not help"),
            sentences(words.where_memory_does_not_help(section)),
            paragraph(
                "In brackets: percentage points ± half of their 95 % interval. "
                f"▲, ▼: the whole interval lies above or below zero; ●: it does not, or there are fewer than {ENOUGH} seeds."
            ),
        ]
    )


def _differences(section: Section, place: int) -> str:
    drawn = forest.forest(section)
    parts = [] if drawn is None else [chart(drawn, section.title, f"{place}-differences")]
    parts += [table.html() for table in tables.differences(section)]
    parts += [heading(3, "At the end of the streams"), tables.success(section, solved_last_fifth).html()]
    parts += [table.html() for table in tables.differences(section, solved_last_fifth)]
    if tables.rest_is_known(section):
        parts += [heading(3, "Of the tasks that the solver does not solve alone")]
        parts += [tables.success(section, solved_of_the_rest).html()]
        parts += [table.html() for table in tables.differences(section, solved_of_the_rest)]
    return "\n".join(parts)


def _tuning(section: Section, one: Chart, place: int) -> str:
    return f"<h2>Tuning: {escape(_name(section))}</h2>{chart(one, section.title, f'tuning-{place}')}"


def _footer(rows: Sequence[Row]) -> str:
    versions = sorted({", ".join(f"{name} {one}" for name, one in (row.get("versions") or {}).items()) for row in rows} - {""})
    machines, revisions = (sorted({str(row[name]) for row in rows if row.get(name)}) for name in ("machine", "revision"))
    lines = [f"{name}: {'; '.join(values)}" for name, values in (("Versions", versions), ("Machine", machines)) if values]
    if revisions:
        lines.append(f"Revision (+: changed since): {'; '.join(revisions)}")
    return "".join(map(paragraph, lines))

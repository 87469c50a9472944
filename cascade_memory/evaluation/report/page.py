"""Builds the page of the report, and writes it with its pictures into a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.rows import Row, read_rows
from cascade_memory.evaluation.report import charts, forest, tables, words
from cascade_memory.evaluation.report.differences import ENOUGH, Difference, Verdict, comparable, on_average
from cascade_memory.evaluation.report.drawing import Chart, png
from cascade_memory.evaluation.report.heatmap import tried
from cascade_memory.evaluation.report.markup import chart, folded, heading, paragraph, sentences
from cascade_memory.evaluation.report.models import ALL_MODELS, is_of_a_model, of_a_model, together
from cascade_memory.evaluation.report.published import CITATION
from cascade_memory.evaluation.report.section import Section, sections, solved_last_fifth, solved_of_the_rest
from cascade_memory.evaluation.report.words import solver_in_words
from cascade_memory.looks import need_matplotlib, page_variables

PAGE = "index.html"
_MEAN = {
    "zero-shot": "no memory at all",
    "ICRL": "shows the latest episodes, whatever the task is and however they ended",
    "ICRLPlus": "shows the latest successes, whatever the task is",
    "random": "shows one of the 32 nearest cases, drawn at random",
    "similarity": "shows the most similar case, by the cosine of two embeddings",
    "Self-StreamICL": "shows the 16 most similar cases (StreamBench)",
    "NP-CBR": "shows the case that a pretrained reranker puts first (the paper's baseline)",
    "LinLogUCB": "a logistic bandit on fixed features; always shows a case",
    "NeuralLogUCB": "a logistic bandit whose network learns all features; always shows a case",
    "Neural-LinUCB": "a linear bandit on learned features; always shows a case",
    "Thompson": "draws its weights at random from what it believes about them; always shows a case",
    "Neural-LinLogUCB": "the paper's bandit: a logistic one on learned features; always shows a case",
    "CASCADE": "this package's default: it learns which case helps, and shows none if none is expected to",
    "CASCADE, always a case": "the same, but it never abstains",
    "CASCADE without exploration": "the same, but it never tries a case only to learn about it",
    "CASCADE without hindsight": "the same, but it learns nothing from right solutions that it did not show",
    "CASCADE untrained": "the order that CASCADE begins with; it learns nothing",
    "CASCADE, k = 2": "the same as CASCADE, with up to two cases",
    "CASCADE, k = 4": "the same as CASCADE, with up to four cases",
    "REINFORCE + LoRA": "no memory; it trains adapters of the language model itself with the rewards",
}


def write_report(rows: Path, folder: Path, tuning: Path | None = None, against: Sequence[str] = ()) -> Path:
    """Write the page and the PNGs of a file of rows into a folder; return the page's path.

    Every method is compared with no memory, and with the methods that show the most similar case, the case that a pretrained
    reranker puts first, or a random case. ``against`` names further methods to compare with.
    """
    need_matplotlib("the report")
    found = sections(read_rows(rows), against)
    if not found:
        raise InvalidInput(f"{rows} has no rows yet: cascade-memory bench run --out {rows} writes them")
    tuned = tried(read_rows(tuning)) if tuning is not None else []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [(section, one) for section in found for one in _charts(section) if one is not None]
    named = [(section.solver, section.title, one) for section, one in [*drawn, *tuned]]
    named += [("models", ALL_MODELS, one) for one in together(found)]
    for i, (solver, title, one) in enumerate(named):
        solver = re.sub(r"[^a-z0-9]+", "-", solver.lower()).strip("-")
        png(one, title, folder / f"{i:02}-{solver}-{one.name}.png")
    target = folder / PAGE
    target.write_text(page(found, tuned), encoding="utf-8")
    return target


def _charts(section: Section) -> list[Chart | None]:
    return [
        charts.success(section),
        *of_a_model(section),
        charts.steps(section),
        forest.forest(section),
        charts.missed(section),
        forest.costs(section),
    ]


def names(methods: Sequence[str]) -> str:
    """Render the methods with their meanings; an unknown one is called "a method of these rows".

    >>> names(["random"])
    '<dl class="names"><dt>random</dt><dd>shows one of the 32 nearest cases, drawn at random</dd></dl>'
    """
    lines = "".join(f"<dt>{escape(method)}</dt><dd>{escape(_meaning(method))}</dd>" for method in methods)
    return f'<dl class="names">{lines}</dl>'


def _meaning(method: str) -> str:
    whole, _, options = method.partition(" {")
    name, _, changed = whole.partition(" + ")
    changes = [f"with {changed}"] if changed and whole not in _MEAN else []
    found = [one for one in (_MEAN.get(whole) or _MEAN.get(name), *changes) if one]
    return ", ".join([*found, *([f"with the parameters {{{options}"] if options else [])]) or "a method of these rows"


_SAYS: dict[Verdict, str] = {"more": "Yes: it helps.", "fewer": "No: it harms.", "open": "No difference can be told."}
_AGAINST_OTHERS: dict[Verdict, str] = {"more": "It is ahead.", "fewer": "It is behind.", "open": "No difference can be told."}


def answer(section: Section) -> str:
    """Render the answer of a section: how far its subject is ahead on average.

    The subject is the method that the section is about (see ``words.subject``). It is compared with no memory, if that was
    played.
    """
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


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(found: Sequence[Section], tuned: Sequence[tuple[Section, Chart]]) -> str:
    """Render the whole document."""
    rows = [row for section in found for row in section.rows.values()]
    parts = [_head(found, rows), *(_section(section, i) for i, section in enumerate(found))]
    if joined := together(found):
        parts.append(f"<h2>{escape(ALL_MODELS)}</h2>")
        parts += [chart(one, f"models-{i}") for i, one in enumerate(joined)]
    parts += [_tuning(section, one, i) for i, (section, one) in enumerate(tuned)]
    style = page_variables() + resources.files("cascade_memory.evaluation.report").joinpath("page.css").read_text(
        encoding="utf-8"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(_title(rows))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + f"\n</main>\n<footer>{_footer(rows)}</footer>\n</body>\n</html>\n"
    )


def _title(rows: Sequence[Row]) -> str:
    tasks, methods, seeds = (len({row[name] for row in rows}) for name in ("task", "method", "seed"))
    return f"Does the memory help? {_many(tasks, 'stream')}, {_many(methods, 'method')}, {_many(seeds, 'seed')}"


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _head(found: Sequence[Section], rows: Sequence[Row]) -> str:
    episodes = sum(row["n"] for row in rows)
    links = "".join(f'<li><a href="#solver-{i}">{escape(_name(section))}</a></li>' for i, section in enumerate(found))
    first = f"<p>{escape(_name(found[0]))}:</p>{answer(found[0])}" if found else ""
    return (
        f"<h1>{escape(_title(rows))}</h1>"
        + first
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
        paragraph(told) if (told := solver_in_words(section)) else "",
        *([answer(section)] if place else []),  # the page begins with the answer of the first one
        *_verdicts(section),
        heading(3, "The methods"),
        names(section.methods),
        heading(3, "The streams"),
        tables.streams(section).html(),
        paragraph(f"Seeds: {', '.join(map(str, section.seeds))}."),
        chart(charts.success(section), f"{place}-success"),
        tables.success(section).html(),
    ]
    if is_of_a_model(section):
        parts.append(folded("The same as parts of the best method's success", [tables.normalised(section).html()]))
    parts += [chart(drawn, f"{place}-{drawn.name}") for drawn in of_a_model(section)]
    if (drawn := charts.steps(section)) is not None:
        parts.append(chart(drawn, f"{place}-steps"))
    if (table := tables.beside_the_paper(section)) is not None:
        parts += [heading(3, "Beside the paper"), paragraph(CITATION), table.html()]
    parts.append(_differences(section, place))
    if (drawn := charts.missed(section)) is not None and (table := tables.missed(section)) is not None:
        parts += [chart(drawn, f"{place}-regret"), table.html()]
    if kinds := tables.by_kind(section):
        parts += [heading(3, "By kind of task"), *(table.html() for table in kinds)]
    drawn = forest.costs(section)
    parts.append(heading(3, "What it costs") if drawn is None else chart(drawn, f"{place}-costs"))
    parts += [table.html() for table in tables.costs(section)]
    return "\n".join(parts)


def _verdicts(section: Section) -> list[str]:
    """Say where the section's subject (see ``words.subject``) is ahead, and where not; no comparison is in both lists."""
    method = words.subject(section)
    doubts = words.where_memory_does_not_help(section)
    lines = [line for base in words.compared_with(section) for line in words.against(section, method, base)]
    ahead = [line for line in lines if line not in doubts and not (line[0] != "more" and words.is_of_no_memory(line))]
    rival = words.against_the_best_rival(section)
    warning = paragraph(f"With fewer than {ENOUGH} seeds, no two methods can be distinguished.")
    return [
        heading(3, f"How {method} compares"),
        *([warning] if len(section.seeds) < ENOUGH else []),
        sentences([*ahead, *([rival] if rival else [])]),
        heading(3, "Where memory does not help"),
        sentences(doubts),
        paragraph(
            "In brackets: percentage points ± half of their 95 % interval. "
            f"▲, ▼: the whole interval lies above or below zero; ●: it does not, or there are fewer than {ENOUGH} seeds."
        ),
    ]


def _differences(section: Section, place: int) -> str:
    """Show the paired differences as a picture, and fold their figures and the differences on parts of the streams.

    A reader opens a folded part on demand (see ``markup.folded``).
    """
    drawn = forest.forest(section)
    parts = [heading(3, "Paired differences") if drawn is None else chart(drawn, f"{place}-differences")]
    parts.append(folded("The figures of all methods", [table.html() for table in tables.differences(section)]))
    parts += [heading(3, "At the end of the streams"), tables.success(section, solved_last_fifth).html()]
    last = [table.html() for table in tables.differences(section, solved_last_fifth)]
    parts.append(folded("The differences at the end of the streams", last))
    if tables.rest_is_known(section):
        parts += [heading(3, "Of the tasks that the solver does not solve alone")]
        parts += [tables.success(section, solved_of_the_rest).html()]
        rest = [table.html() for table in tables.differences(section, solved_of_the_rest)]
        parts.append(folded("The differences on these tasks", rest))
    return "\n".join(parts)


def _tuning(section: Section, one: Chart, place: int) -> str:
    return f"<h2>Tuning: {escape(_name(section))}</h2>{chart(one, f'tuning-{place}')}"


def _footer(rows: Sequence[Row]) -> str:
    versions = sorted({", ".join(f"{name} {one}" for name, one in (row.get("versions") or {}).items()) for row in rows} - {""})
    machines, revisions = (sorted({str(row[name]) for row in rows if row.get(name)}) for name in ("machine", "revision"))
    lines = [f"{name}: {'; '.join(values)}" for name, values in (("Versions", versions), ("Machine", machines)) if values]
    if revisions:
        lines.append(f"Revision (+: changed since): {'; '.join(revisions)}")
    return "".join(map(paragraph, lines))

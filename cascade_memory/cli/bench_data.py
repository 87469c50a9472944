"""``cascade-memory bench data`` and ``bench convert``: which data of the tasks is there, and where the rest comes from."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.cli.arguments import positive
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table
from cascade_memory.errors import InvalidInput

if TYPE_CHECKING:
    from cascade_memory.evaluation.tasks.catalogue import Entry


def add(bench: Commands) -> None:
    """Add the commands."""
    command = bench.command("data", data, "list which data of the tasks is present, and where to get it")
    command.add_argument("task", nargs="?", help="one task only")
    add_data(command)
    command = bench.command("convert", convert, "make the file of a task from the files that its makers publish")
    command.add_argument("task", help="a task for which bench data names a converter")
    command.add_argument("source", type=Path, help="the folder with the published files")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of data (for CASCADE_DATA)")
    about = "how many to draw (default: as many as the paper plays)"
    command.add_argument("--rows", type=positive, metavar="N", help=about)


def add_data(command: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of the data."""
    about = "the folder with the streams (default: CASCADE_DATA; without it, what comes with the package)"
    command.add_argument("--data", type=Path, metavar="DIR", help=about)


def folder_of_data(given: Path | None) -> Path:
    """Return the folder given on the command line, or else by ``CASCADE_DATA``; raise ``InvalidInput`` if there is neither."""
    folder = given or (Path(found) if (found := os.environ.get("CASCADE_DATA")) else None)
    if folder is None:
        raise InvalidInput("name the folder with the data: --data DIR, or the environment variable CASCADE_DATA")
    return folder


def folder_or_bundled(given: Path | None) -> Path:
    """Return the folder of data that the command line or ``CASCADE_DATA`` names; by default the package's own."""
    from cascade_memory.evaluation.bundled import bundled_data

    return folder_of_data(given) if given or os.environ.get("CASCADE_DATA") else bundled_data()


def is_bundled(folder: Path) -> bool:
    """Return True if this is the folder of data that comes with the package."""
    from cascade_memory.evaluation.bundled import bundled_data

    return folder == bundled_data()


def convert(options: argparse.Namespace) -> int:
    """Make the file of a task from what the makers of its data publish."""
    from cascade_memory.evaluation.conversion.converters import convert as converted

    made = converted(options.task, options.source, options.out, options.rows)
    if options.json:
        print(json.dumps({"task": options.task, "files": {str(path): rows for path, rows in made.items()}}))
        return 0
    for path, rows in made.items():
        print(f"{path}: {rows:,} rows" if rows else str(path))
    return 0


def data(options: argparse.Namespace) -> int:
    """Print for each task, or for the named one, whether its data is present, where it comes from and what to run."""
    from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

    folder = folder_or_bundled(options.data)
    if options.task and options.task not in CATALOGUE:
        raise InvalidInput(f"there is no task {options.task!r}; there are {', '.join(CATALOGUE)}")
    chosen = [CATALOGUE[options.task]] if options.task else list(CATALOGUE.values())
    if options.json:
        print(json.dumps([_described(one, folder) for one in chosen], ensure_ascii=False))
        return 0
    if options.task:
        _print_details(chosen[0], folder)
        return 0
    for heading, of_paper in (("tasks of the CASCADE paper", True), ("other tasks", False)):
        listed = [one for one in chosen if bool(one.paper_name) is of_paper]
        rows = [[one.name, one.title, "yes" if one.is_there(folder) else "no", one.licence] for one in listed]
        if rows:
            print_table(f"{heading}, in {folder}", ["task", "about", "there", "licence"], rows)
        for one in listed:
            print()
            _print_details(one, folder)
    return 0


def _print_details(entry: Entry, folder: Path) -> None:
    for name, value in _described(entry, folder).items():
        if isinstance(value, dict):
            value = "; ".join(f"{field}: {meaning}" for field, meaning in value.items())
        shown = (
            {True: f"yes, in {folder}", False: f"no, not in {folder}"}.get(value, value) if isinstance(value, bool) else value
        )
        print(f"{name:10} {shown or 'no'}")


def _conversion(entry: Entry) -> dict[str, str]:
    from cascade_memory.evaluation.conversion.converters import CONVERTERS, WITHOUT

    one = CONVERTERS.get(entry.name)
    if one is None:
        return {"converter": WITHOUT.get(entry.name, "")}
    command = f"cascade-memory bench convert {entry.name} SOURCE --out DIR"
    return {"get": one.get, "SOURCE has": ", ".join(one.reads), "converter": command, "tried with": one.tried}


def _described(entry: Entry, folder: Path) -> dict[str, Any]:
    from cascade_memory.evaluation.bundled import DIFFERS

    published = entry.published
    lines: dict[str, Any] = {"task": entry.name, "about": entry.title, "in paper": entry.paper_name}
    if published is not None:
        lines |= {
            "DTLBench": published.place,
            "files": ", ".join(published.files),
            "format": published.layout,
            "fields": dict(published.fields),
            "tasks": published.samples,
            "order": published.order,
            "besides": published.resources,
        }
    lines |= {
        "original": entry.source,
        "licence": entry.licence,
        "or files": ", ".join(entry.files) or "none needed",
        "differs": f"with those files, {entry.stand_in}" if entry.stand_in else "",
        **_conversion(entry),
        "steps": entry.max_steps,
        "run": "" if published is None else published.run.format(name=entry.name),
        "there": entry.is_there(folder),
    }
    if is_bundled(folder) and entry.is_there(folder):
        lines["differs"] = DIFFERS.get(entry.name, "")
    kept = ("task", "about", "in paper", "there")
    return {name: value for name, value in lines.items() if value not in ("", None) or name in kept}

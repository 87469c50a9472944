"""The converters by the names of their tasks, and how one is run."""

from __future__ import annotations

from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.banking77 import BANKING77
from cascade_memory.evaluation.conversion.converter import Converter, lines_of
from cascade_memory.evaluation.conversion.ddxplus import DDXPLUS
from cascade_memory.evaluation.conversion.lfd import LFD
from cascade_memory.evaluation.conversion.rca import RCA
from cascade_memory.evaluation.conversion.sentifin import SENTIFIN
from cascade_memory.evaluation.conversion.text_to_sql import BIRD, SPIDER
from cascade_memory.evaluation.conversion.two_wiki import TWO_WIKI

CONVERTERS: dict[str, Converter] = {
    "banking77": BANKING77,
    "bird": BIRD,
    "ddxplus": DDXPLUS,
    "lfd": LFD,
    "rca": RCA,
    "sentifin": SENTIFIN,
    "spider": SPIDER,
    "2wiki": TWO_WIKI,
}

# Tasks that no converter makes, and where their data comes from instead.
WITHOUT = {
    **dict.fromkeys(
        ("mimic-iv-mr", "mimic-iv-msr", "mimic-iv-tlp"),
        "none: how the paper chose its patients is not published; DTLBench's file is read as it is",
    ),
    **dict.fromkeys(
        ("mud", "cmdl"),
        "none: the layout of the original could not be looked at; DTLBench's file is read as it is",
    ),
    "alfworld": "none needed: the games are read as alfworld-download gets them; bench games makes others",
    "scienceworld": "none needed: the tasks are in the package scienceworld",
    "bfcl": "none needed: the tasks are read from the installed package bfcl-eval",
    "llb-db": "none needed: the file is read as it is, under the name llb_db.json",
    "mimic-iii": "none: DTLBench's file and EHRAgent's tables are read as they are; the task hospital needs no data",
}


def convert(name: str, source: Path, out: Path, rows: int | None = None) -> dict[Path, int]:
    """Make the files of a task from its source; return what was written, with the number of rows (0: not a file of rows).

    Args:
        name: A task of the catalogue.
        source: The folder with the files that its converter reads.
        out: The folder of data, made if need be. It is an error if one of the files exists already.
        rows: How many rows to draw; by default as many as the paper plays, or all that there are.
    """
    converter = CONVERTERS.get(name)
    if converter is None:
        why = f" ({WITHOUT[name]})" if name in WITHOUT else ""
        raise InvalidInput(f"there is no converter for {name!r}{why}; there are some for {', '.join(CONVERTERS)}")
    if rows is not None and rows < 1:
        raise InvalidInput("the number of rows must be 1 or more")
    made = converter.convert(source, converter.rows if rows is None else rows)
    targets = {out / file: content for file, content in made.items()}
    if there := next((path for path in targets if path.exists()), None):
        raise InvalidInput(f"{there} is there already: delete it, or name another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in targets.items():
            path.write_bytes(content if isinstance(content, bytes) else lines_of(content))
    except OSError as error:
        raise InvalidInput(f"cannot write to {out}: {error}") from error
    return {path: 0 if isinstance(content, bytes) else len(content) for path, content in targets.items()}

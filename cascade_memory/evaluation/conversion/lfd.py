"""A stand-in for the faults of the paper: 2,000 lines of the log of a supercomputer (BGL), and the category of each alert."""

from __future__ import annotations

from pathlib import Path

from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, table_of, words_of

_FILE = "BGL_2k.log_structured.csv"
_COLUMNS = ("LineId", "Label", "Date", "Node", "Type", "Component", "Level", "Content", "EventId")


def convert(source: Path, count: int) -> Converted:
    """Take the first lines, in the order of the log; "-" marks a line that is no alert."""
    rows: list[Row] = []
    for line in table_of(source, _COLUMNS, f"BGL/{_FILE}", _FILE)[:count]:
        said = words_of(" ".join(line[name] for name in ("Date", "Node", "Type", "Component", "Level", "Content")))
        label = "normal" if line["Label"] == "-" else line["Label"]
        rows.append({"task": said, "label": label, "orig_index": line["LineId"], "event": line["EventId"]})
    return {"bgl_2k.jsonl": rows}


LFD = Converter(
    get="git clone https://github.com/logpai/loghub",
    reads=(f"BGL/{_FILE}",),
    rows=2_000,
    tried="the beginning of the file at commit 374038f, and a fixture in its layout",
    convert=convert,
)

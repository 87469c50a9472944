"""A stand-in for the paper's data on faults in a log: 2,000 lines of a supercomputer's log (BGL), each with its category."""

from __future__ import annotations

from pathlib import Path

from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, table_of, words_of

_FILE = "BGL_2k.log_structured.csv"
_COLUMNS = ("LineId", "Label", "Date", "Node", "Type", "Component", "Level", "Content", "EventId")


def convert(source: Path, count: int) -> Converted:
    """Take the first lines, in the order of the log; a line that is no alert (marked "-") has the label "normal"."""
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

"""Banking77: messages of customers of a bank, each with one of 77 intents."""

from __future__ import annotations

from pathlib import Path

from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, table_of, words_of

_FOLDER = "banking_data"


def convert(source: Path, count: int) -> Converted:
    """Draw messages from both splits; in the names of intents, underscores become spaces, so that a model reads words."""
    rows: list[Row] = []
    for split in ("train", "test"):
        name = f"{split}.csv"
        for index, line in enumerate(table_of(source, ("text", "category"), f"{_FOLDER}/{name}", name)):
            label = words_of(line["category"].replace("_", " "))
            rows.append({"task": words_of(line["text"]), "label": label, "split": split, "orig_index": index})
    return {"banking77.jsonl": drawn(rows, count)}


BANKING77 = Converter(
    get="git clone https://github.com/PolyAI-LDN/task-specific-datasets",
    reads=("banking_data/train.csv", "banking_data/test.csv"),
    rows=5_000,
    tried="the repository at commit 57ec275",
    convert=convert,
)

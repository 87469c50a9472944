"""A stand-in for the paper's data on alarms: messages of network devices, each with the module that sent it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, json_of, words_of

_FOLDER = "datasets/pre-train/network log"
_FILES = {"switch": "hw_switch_desc.json", "routers": "hw_routers_desc.json"}
_MODULES = 40  # the most frequent ones
_MESSAGE = re.compile(r"\s*(?P<module>\w+)/(?P<severity>\d+)/(?P<mnemonic>\w+)\s*:\s*(?P<text>.*)", re.DOTALL)


def convert(source: Path, count: int) -> Converted:
    """Draw messages of the most frequent modules; a text that occurs several times is one message."""
    rows: dict[str, Row] = {}
    index = 0
    for device, file in _FILES.items():
        name = f"{_FOLDER}/{file}" if (source / _FOLDER / file).is_file() else file
        for pair in json_of(source, name, list, "a list of pairs of a message and its description"):
            found = _MESSAGE.fullmatch(_message(pair, source / name))
            if found is not None and (text := words_of(found["text"])):
                about = {"severity": int(found["severity"]), "mnemonic": found["mnemonic"], "device": device}
                rows.setdefault(text, {"task": text, "label": found["module"], **about, "orig_index": index})
            index += 1
    if not rows:
        raise InvalidInput(f"{source} holds no messages of the form MODULE/SEVERITY/MNEMONIC: text")
    frequent = {module for module, _ in Counter(row["label"] for row in rows.values()).most_common(_MODULES)}
    return {"rca_huawei_module.jsonl": drawn([row for row in rows.values() if row["label"] in frequent], count)}


def _message(pair: Any, path: Path) -> str:
    if not isinstance(pair, list) or not pair or not isinstance(pair[0], str):
        raise InvalidInput(f"{path} has another layout: it should be a list of pairs of texts")
    return pair[0]


RCA = Converter(
    get="git clone https://github.com/LeaperOvO/KnowLog",
    reads=tuple(f"{_FOLDER}/{file}" for file in _FILES.values()),
    rows=2_925,
    tried="the repository at commit 02eb769",
    convert=convert,
)

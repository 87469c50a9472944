"""The pages of the project, and the blocks of code in them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    output: str | None  # of the ```text block that stands right behind


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(FENCE.finditer(text))
    result = []
    for one, following in itertools.zip_longest(found, found[1:]):
        behind = following is not None and following[1] == "text" and not text[one.end() : following.start()].strip()
        output = following[2] if behind and following is not None else None
        result.append(Block(one[1], one[2], text[: one.start()].count("\n") + 1, output))
    return [block for block in result if block.language != "text"]

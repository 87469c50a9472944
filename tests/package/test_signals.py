"""How many signals there are is said in several places: each says as many as there are."""

from __future__ import annotations

import re
from pathlib import Path

from cascade_memory.encoders.light import FEATURES

ROOT = Path(__file__).parents[2]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def test_every_page_says_how_many_signals_there_are():
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.stem != "benchmarks"]
    pages += [ROOT / "README.md", ROOT / "cascade_memory" / "assembly" / "cascade.py"]
    pattern = re.compile(rf"\b({'|'.join(WORDS)}) (?:signals|weights)\b", re.IGNORECASE)
    said = {(page.name, found.lower()) for page in pages for found in pattern.findall(page.read_text())}
    assert len(said) >= 4
    assert {number for _, number in said} == {WORDS[len(FEATURES)]}, said

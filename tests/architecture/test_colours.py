"""Colours are named in one place, they mean the same in every picture, and everybody can read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cascade_memory.looks import palette

ROOT = Path(__file__).parents[2]
PALETTE = ROOT / "cascade_memory" / "looks" / "palette.py"
_HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
_NAMED = re.compile(
    r"""(?:color|colour|fc|ec|facecolor|edgecolor|background|fill|stroke)s?["']?\s*[=:]\s*["']?"""
    r"""(?:C\d|0\.\d+["']|(?:tab:)?(?:red|blue|green|orange|purple|brown|pink|gray|grey|black|white|cyan|olive)\b)"""
)


def _literals(text: str) -> list[str]:
    code = re.sub(r"&#\d+;|\(#[\w-]+\)", "", text)
    return [*_HEX.findall(code), *_NAMED.findall(code)]


def _light(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


def test_no_colour_stands_elsewhere():
    files = [*(ROOT / "cascade_memory").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    files += [ROOT / "cascade_memory" / "evaluation" / "report" / "page.css"]
    found = {str(file.relative_to(ROOT)): said for file in files if file != PALETTE and (said := _literals(file.read_text()))}
    assert found == {}, "take the colour from cascade_memory/looks/palette.py"


@pytest.mark.parametrize("text", ['color="C0"', "color: red", '"#1f77b4"', 'edgecolor="black"', 'color="0.6"', "fill: #abc"])
def test_a_colour_elsewhere_would_be_found(text):
    assert _literals(text)


def test_the_drawing_of_the_cycle_has_colours_of_the_palette():
    known = {light for light, _ in palette.SHADES.values()}
    strong = {one for one in re.findall(r"(?:stroke|fill): (#\w+)", (ROOT / "docs" / "images" / "cycle.svg").read_text())}
    backgrounds = {one for one in strong if _light(one) > 0.8}
    assert strong - backgrounds <= known


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_everything_but_the_background_lines_can_be_read(place):
    shades = {name: both[place] for name, both in palette.SHADES.items()}
    for name, colour in shades.items():
        if name in ("page", "box", "line", "other"):
            continue
        for under in ("page", "box"):
            assert _contrast(colour, shades[under]) >= 4.5, (name, under)


def test_a_method_has_one_look_whatever_it_is_called_and_whoever_is_beside_it():
    for name, known in (("no memory", "zero-shot"), ("most similar case", "similarity")):
        assert palette.looks(["CASCADE", name])[name] == palette.looks([known, "mine", "yours"])[known]
    red, green, blue = (int(palette.looks(["no memory"])["no memory"].colour[i : i + 2], 16) for i in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) <= 16, "no memory is grey"

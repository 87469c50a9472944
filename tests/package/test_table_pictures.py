"""The pictures beside the tables of docs/benchmarks.md are drawn from these tables."""

from __future__ import annotations

import doctest
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "benchmarks"))
    import table_picture

    return table_picture


def test_its_own_example_runs(drawing: ModuleType):
    assert doctest.testmod(drawing).failed == 0


def test_every_table_is_read_whole(drawing: ModuleType):
    text = PAGE.read_text(encoding="utf-8")
    for first, columns in (("banking77", 5), ("scienceworld", 4)):
        table = drawing.table_of(text, first, drawing.SOLVED)
        assert len(table) == columns
        for its in table.values():
            assert set(drawing.METHODS) <= set(its)
    regrets = drawing.table_of(text, "logistic: regret", drawing.REGRET)
    assert [len(its) for its in regrets.values()] == [11, 11, 11]


def test_each_picture_is_drawn_and_is_on_the_page(drawing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sys, "argv", ["table_picture.py", str(PAGE), "--images", str(tmp_path)])
    drawing.main()
    drawn = sorted(tmp_path.glob("*.png"))
    assert len(drawn) == 3
    for picture in drawn:
        assert f"(images/{picture.name})" in PAGE.read_text(encoding="utf-8")
        stored = (ROOT / "docs" / "images" / picture.name).read_bytes()
        size = picture.read_bytes()[16:24]
        assert struct.unpack(">II", size)[0] == struct.unpack(">II", stored[16:24])[0] == 1080

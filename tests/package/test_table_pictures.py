"""The pictures beside the tables of docs/benchmarks.md are drawn from these tables."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

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


@pytest.mark.slow
def test_each_picture_is_on_the_page_and_shows_what_its_table_says(
    drawing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    text = PAGE.read_text(encoding="utf-8")
    drawn = draw_all(drawing, monkeypatch, text, tmp_path)
    assert len(drawn) == 3
    for name, (size, figures) in drawn.items():
        assert f"(images/{name})" in text
        stored_size, stored = read(drawing, ROOT / "docs" / "images" / name)
        assert size[0] == stored_size[0] == 1080
        assert stored == figures, f"draw {name} again: python examples/benchmarks/table_picture.py docs/benchmarks.md ..."


@pytest.mark.long
def test_a_picture_tells_if_a_figure_of_its_table_has_changed(
    drawing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    text = PAGE.read_text(encoding="utf-8")
    before = draw_all(drawing, monkeypatch, text, tmp_path)
    place = text.index("| CASCADE | ", text.index("| | banking77 |")) + len("| CASCADE | ")
    assert text[place].isdigit()
    changed = f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"
    after = draw_all(drawing, monkeypatch, changed, tmp_path)
    assert [one for one in sorted(before) if before[one] != after[one]] == ["local_simulated.png"]


def draw_all(
    drawing: ModuleType, monkeypatch: pytest.MonkeyPatch, text: str, folder: Path
) -> dict[str, tuple[tuple[int, int], str]]:
    """The size and the figures of each picture that is drawn for a page."""
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["table_picture.py", str(page), "--images", str(folder)])
    drawing.main()
    return {one.name: read(drawing, one) for one in folder.glob("*.png")}


def read(drawing: ModuleType, picture: Path) -> tuple[tuple[int, int], str]:
    with Image.open(picture) as image:
        image.load()
        return image.size, str(image.info.get(drawing.FIGURES))

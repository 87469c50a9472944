"""plot() and report() show a picture in a notebook, with and without matplotlib, and no text covers another."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.errors import MissingExtra
from cascade_memory.insight.plot import Plot, plot_rewards
from cascade_memory.looks import palette
from cascade_memory.looks.card import Card, Entry, Facts
from cascade_memory.looks.curves import Curve, Panel, spread
from cascade_memory.looks.svg import svg

REWARDS = [(float(i % 3 > 0), i % 4 > 0) for i in range(200)]
EVIL = "</style></svg><script>alert(1)</script><img src=x onerror=y> \u202egnp"


def drawings(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def test_a_plot_shows_itself():
    plot = plot_rewards(REWARDS, window=50)
    success, regret = drawings(plot._repr_html_())
    names = [text.text for text in success.iter("text")]
    assert {"all", "case shown", "none shown", "100 %"} <= set(names)
    assert success.get("aria-label", "").startswith("Success at the end, mean of the last 50: all 66 %")
    assert "67.0 rewards missed in 200 episodes" in regret.get("aria-label", "")
    colours = set(re.findall(r"var\(--([\w-]+)\)", ElementTree.tostring(success, "unicode")))
    assert {"cascade", "always", "no-memory"} <= colours <= set(palette.SHADES)
    assert not re.search("#[0-9a-f]{3}", ElementTree.tostring(success, "unicode"))


@pytest.mark.slow
def test_a_plot_is_a_png_and_a_file_too(tmp_path):
    pytest.importorskip("matplotlib")
    plot = plot_rewards(REWARDS, window=50)
    png = plot._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")
    for name in ("plot.png", "plot.svg", "plot.pdf"):
        plot.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000
    drawn = {line.get_color() for axes in plot.axes for line in axes.lines}
    assert drawn <= {light for light, _ in palette.SHADES.values()}


def test_without_matplotlib_a_notebook_still_has_its_picture(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plot = plot_rewards(REWARDS, window=50)
    assert len(drawings(plot._repr_html_())) == 2
    assert plot._repr_png_() is None
    with pytest.raises(MissingExtra, match=r"cascade-memory\[plot\]"):
        plot.savefig("never.png")


def test_no_spike_at_the_start_and_few_episodes_say_so():
    (panel, _) = plot_rewards([(0.0, True), *REWARDS], window=50).panels
    assert panel.curves[0].points[0][0] == 50
    (few, _) = plot_rewards(REWARDS[:8], window=50).panels
    assert few.title == "Success, mean of the last 4"
    assert few.curves[0].points[0][0] == 4
    assert Plot is type(plot_rewards([(1.0, True)], window=50))


@pytest.mark.parametrize("values", [[0.0] * 5, [1.0] * 5, [0.5, 0.51, 0.52], [0.0, 1.0], [0.9, 0.95, 0.97, 1.0, 1.0, 0.2]])
def test_names_never_cover_each_other(values: list[float]):
    places = sorted(spread(values, 0.1, 0.0, 1.0))
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(places))
    assert places[0] >= 0.0
    assert places[-1] <= 1.0 + 1e-9


def test_no_text_of_a_figure_covers_another():
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    rewards = [(1.0, i % 2 == 0) for i in range(120)]  # three lines that end at the same height
    figure = plot_rewards(rewards, window=20).figure
    renderer = agg.FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        texts = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
        boxes = [one.get_window_extent(renderer) for one in texts if one.get_text()]
        assert len(boxes) > 5
        for one, other in combinations(boxes, 2):
            width = min(one.x1, other.x1) - max(one.x0, other.x0)
            height = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert width <= 0 or height <= 2, "a text covers another"
        names = [one.get_window_extent(renderer) for one in (*axes.texts, *axes.get_yticklabels()) if one.get_text()]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in names)


def test_a_report_has_words_numbers_and_a_small_picture(ram: CascadeMemory):
    for i in range(60):
        ram.reward(ram.recall(f"task {i % 5}").episode_id, float(i % 2), solution="s")
    shown = ram.report()._repr_html_()
    assert len(drawings(shown)) == 1
    assert "mean reward 0.500" in shown
    assert len(shown) < 12_000
    assert "course" not in ram.report().as_dict()


def test_styles_concern_only_the_card_and_follow_the_theme(ram: CascadeMemory):
    for shown in (ram, ram.stats(), ram.health(), ram.report(), ram.recall("q")):
        style = re.findall(r"<style>(.*?)</style>", shown._repr_html_(), re.DOTALL)
        assert len(style) == 1
        for selector in re.findall(r"([^{}]+)\{", style[0]):
            assert all(".cascade-memory.cascade-memory" in one for one in selector.split(",")), selector
        assert "color-scheme:light dark" in style[0]
        assert "light-dark(" in style[0]
        for theme in ("data-jp-theme-light=false", ".vscode-dark", "--jp-layout-color0", "--vscode-editor-background"):
            assert theme in style[0]
        assert len(style[0]) < 3_500


def test_hostile_and_long_texts():
    text = Card("case", EVIL, [Entry(EVIL, EVIL * 2_000, EVIL), Facts([(EVIL, EVIL)])]).html()
    assert "<script" not in text
    assert "<img" not in text
    assert text.count("</style>") == 1
    assert "\u202e" not in text
    assert "<U+202E>".replace("<", "&lt;").replace(">", "&gt;") in text
    assert "<details>" in text
    assert len(text) < 60_000, "a very long text is cut"


def test_importing_the_looks_costs_nothing():
    script = "import cascade_memory.looks.card, sys; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "matplotlib"} & set(loaded)


@pytest.mark.parametrize(("top", "levels"), [(0.4, "0 0.5 1"), (11.0, "0 5 10"), (70.0, "0 20 40 60")])
def test_the_lines_behind_a_curve_are_at_round_numbers(top: float, levels: str):
    curve = Curve("", [(1.0, 0.0), (2.0, top)], palette.looks(["CASCADE"])["CASCADE"])
    (drawn,) = drawings(svg(Panel("Regret", "episode", [curve], ""), 200.0))
    assert levels in " ".join(text.text or "" for text in drawn.iter("text"))

"""The documentation as a site: every link and anchor of it leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest
from made_once import made_once
from pages import PROJECT
from website_pages import build, faults, read

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mkdocstrings") is None, reason='needs the extra "docs"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(target: Path) -> None:
        built = build(target / "site")
        assert built.returncode == 0, built.stderr

    return made_once(tmp_path_factory, "website", make).resolve() / "site"


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_comes_from_elsewhere(site: Path):
    assert faults(site) == []


@pytest.mark.slow
def test_every_page_of_the_documentation_is_in_the_navigation(site: Path):
    """Each page but the front page is linked from the front page, whose navigation has them all."""
    linked = {link.split("#")[0] for link in read((site / "index.html").read_text(encoding="utf-8")).links}
    pages = {str(file.relative_to(site)) for file in site.rglob("*.html")} - {"404.html", "index.html"}
    assert len(pages) > 60
    assert pages - linked == set()


@pytest.mark.parametrize(
    ("page", "module"),
    [
        ("langchain", "cascade_memory.langchain"),
        ("llama-index", "cascade_memory.llama_index"),
        ("mcp", "cascade_memory.mcp_server"),
        ("inspector", "cascade_memory.inspector"),
        ("rewards", "cascade_memory.rewards"),
        ("evaluation", "cascade_memory.evaluation"),
    ],
)
def test_the_reference_has_every_public_name(page: str, module: str):
    text = (PROJECT / "docs" / "api" / f"{page}.md").read_text()
    shown = set(re.findall(rf"^::: {re.escape(module)}\.(\w+)$", text, re.MULTILINE))
    assert set(importlib.import_module(module).__all__) - shown == set()


@pytest.mark.slow
def test_the_reference_has_every_name_of_the_package_itself(site: Path):
    text = "".join((PROJECT / "docs" / "api" / f"{page}.md").read_text() for page in ("memory", "results", "ports"))
    shown = set(re.findall(r"^::: cascade_memory\.(\w+)$", text, re.MULTILINE))
    assert set(importlib.import_module("cascade_memory").__all__) - shown == set()


@pytest.mark.slow
def test_methods_and_examples_of_docstrings_are_on_the_page(site: Path):
    page = (site / "api" / "memory.html").read_text(encoding="utf-8")
    anchors = read(page).anchors
    for method in ("recall", "reward", "add", "forget", "report", "cases"):
        assert f"cascade_memory.CascadeMemory.{method}" in anchors
    assert "&gt;&gt;&gt; " in re.sub(r"<[^>]+>", "", page), "doctests are shown as code"
    assert "<blockquote>" not in page, "a doctest outside of a fence becomes a quotation"


# -- the checker ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<a href="other.html">', None),
        ('<a href="other.html#there">', None),
        ('<a href="#here"><p id="here">', None),
        ('<a href="https://example.org/">', None),
        ('<img src="data:image/png;base64,AA==">', None),
        ('<a href="missing.html">', "nothing is there"),
        ('<a href="other.html#nowhere">', "no such anchor"),
        ('<a href="#nowhere">', "no such anchor"),
        ('<a href="/other.html">', "nothing is there"),
        ('<a href="../outside.html">', "nothing is there"),
        ('<script src="https://cdn.example.org/a.js"></script>', "loads https://cdn"),
        ('<script src="//cdn.example.org/a.js"></script>', "loads //cdn"),
        ('<link rel="stylesheet" href="https://fonts.example.org/css">', "loads https://fonts"),
        ('<link rel="preconnect" href="https://fonts.example.org">', "loads https://fonts"),
        ('<img src="missing.png">', "loads missing.png"),
    ],
)
def test_the_checker_finds_what_leads_nowhere(tmp_path: Path, html: str, fault: str | None):
    (tmp_path / "outside.html").write_text("")
    inside = tmp_path / "site"
    inside.mkdir()
    (inside / "other.html").write_text('<p id="there">')
    (inside / "page.html").write_text(html)
    found = faults(inside)
    assert found == [] if fault is None else len(found) == 1 and fault in found[0]


def test_the_checker_reads_style_sheets(tmp_path: Path):
    (tmp_path / "a.css").write_text('@import "https://fonts.example.org/css"; p { background: url(//cdn.example.org/a.png) }')
    assert len(faults(tmp_path)) == 2

"""Hostile texts in cases, episodes, metadata and names: every page shows them as text, and marks what would not be seen."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from harmless_pages import harmless
from inspecting import door, links_of
from warned import fail

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.shown import marked, raw

HOSTILE = {
    "a script": "<script>alert(1)</script>",
    "a script in capitals": "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "an image that fails": '<img src=x onerror="alert(1)">',
    "a drawing": "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "a frame": "<iframe src='javascript:alert(1)'></iframe>",
    "a form": "<form action=https://evil.example><button>log in</button></form>",
    "a base": "<base href='https://evil.example/'>",
    "a refresh": "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "a stylesheet": "<style>*{display:none}</style><link rel=stylesheet href=//evil.example>",
    "the end of an attribute": "\" autofocus onfocus=alert(1) x='",
    "the end of the page": "</pre></main></body></html><h1>gone</h1>",
    "a comment": "<!-- --!> --><b>x</b>",
    "a template": "{{ 7 * 7 }} {% include '/etc/passwd' %} ${7*7}",
    "Markdown": "[click](javascript:alert(1)) ![x](http://evil.example/x.png) **bold**",
    "a link": "javascript:alert(document.cookie)",
    "a data link": "data:text/html,<script>alert(1)</script>",
    "entities": "&lt;b&gt; &#x3C;script&#x3E; &amp;amp;",
    "from right to left": "pay \u202eevil\u202c \u2066x\u2069 \u200f",
    "invisible letters": "ig\u200bno\u2060re \ufeff\U000e0041\U000e007f\u00ad",
    "Arabic": "مرحبا بالعالم",
    "emoji": "👨‍👩‍👧 🏳️‍🌈",
    "a megabyte": "<b>" * 30_000,
    "a long word": "w" * 90_000,
    "combining marks": "Z" + "\u0301" * 2_000,
    "an SQL injection": "'; DROP TABLE cases; --%_!",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_is_shown_as_text(kind: str):
    text = HOSTILE[kind]
    with CascadeMemory(embedder="hashing", learn="inline") as memory, door(memory) as made:
        memory.add(text, text, metadata={text[:200]: text[:1000]})
        memory.add("walk", Trajectory([Step(action=text, observation=text, thought=text)], answer=text))
        recall = memory.recall(text, thread_id=text[:200], metadata={"note": text[:1000]})
        memory.reward(recall.episode_id, 1.0, solution=text, source="agent")
        own = memory.recall("walk", episode_id=text[:100]).episode_id
        memory.acting(namespace=text[:200]).add(text, text)
        browser = made.browser()
        addresses = ["/cases", "/episodes", "/judge", "/warnings", "/health", "/learning", "/cases?sort=use"]
        for page in [browser.get(one) for one in addresses]:
            assert page.status_code == 200
            harmless(page.text)
            assert len(page.text) < 400_000
            for address in {*links_of(page, "case"), *links_of(page, "episode")}:
                shown = browser.get(address)
                assert shown.status_code == 200, address
                harmless(shown.text)
                assert len(shown.text) < 400_000
                harmless(browser.get(f"{address}&whole=1").text)
        assert browser.get("/episode", params={"id": own}).status_code == 200
        for name in ("q", "where", "after", "sort", "ns", "id"):
            for page in ("cases", "case", "episode", "warning", "warnings", "nowhere"):
                harmless(browser.get(f"/{page}", params={name: text[:900]}).text)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_in_a_warning_is_shown_as_text(kind: str):
    text = HOSTILE[kind][:30_000]
    with CascadeMemory(embedder="hashing", learn="inline") as memory, door(memory, edit=True) as made:
        step = Step(tool=text[:200], arguments={"q": f"nme {text}"}, observation=f"no such column: nme {text}", failed=True)
        name = text[:60].strip()
        with contextlib.suppress(InvalidInput):  # most hostile names are refused
            fail(memory, text, step, actor=name or "somebody")
        fail(memory, text, step, actor="somebody")
        memory.warnings.advise(memory.warnings.all()[0].id, f"do not {text[:900]}", note=text[:900])
        browser = made.browser()
        for address in ("/warnings", *links_of(browser.get("/warnings"), "warning"), "/audit"):
            page = browser.get(address)
            assert page.status_code == 200
            harmless(page.text)
            assert len(page.text) < 400_000
            harmless(browser.get(f"{address}{'&' if '?' in address else '?'}whole=1").text)


def test_control_characters_of_an_edited_ledger_are_marked(tmp_path: Path):
    bad = "a\x00\x01\x07\x1b[31mred\x7f\x9b"
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        case_id = memory.add("plain", "plain")
    with contextlib.closing(sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")) as ledger, ledger:
        ledger.execute("UPDATE cases SET query = ?", (bad,))
        ledger.execute("UPDATE case_text SET solution = ?", (bad,))
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory, door(memory) as made:
        for address in ("/cases", f"/case?id={case_id}"):
            page = made.browser().get(address)
            harmless(page.text)
            assert "a<mark>U+0000</mark><mark>U+0001</mark><mark>U+0007</mark><mark>U+001B</mark>[31mred" in page.text


def test_a_text_that_is_not_seen_is_marked():
    assert str(marked("a\u202eb\x00c\ud800")) == "a<mark>U+202E</mark>b<mark>U+0000</mark>c<mark>U+D800</mark>"


def test_a_text_that_looks_like_a_mark_stays_apart_from_real_ones_in_forms():
    assert str(raw("a\u202eb<U+202E>")) == "a\u202eb&lt;U+202E&gt;"


def test_a_cut_text_says_so_and_can_be_seen_whole():
    with CascadeMemory(embedder="hashing") as memory, door(memory) as made:
        case_id = memory.add("long", "x" * 50_000 + "THE MIDDLE" + "y" * 50_000)
        browser = made.browser()
        page = browser.get("/case", params={"id": case_id})
        assert "characters cut" in page.text
        assert "THE MIDDLE" not in page.text
        (link,) = [one for one in links_of(page, "case") if "whole=1" in one]
        assert "THE MIDDLE" in browser.get(link).text

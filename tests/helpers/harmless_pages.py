"""Whether a page of the inspector is harmless: whatever texts it shows, they are text."""

from __future__ import annotations

import html
import re

OURS = """
  a article bdi body button caption code dd details div dl dt em figcaption figure form h1 h2 h3 head header html
  input label li link main mark meta nav ol option p pre rect section select span strong summary svg table tbody td
  text textarea th thead time title tr ul script line circle path
"""
HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f\U000e0000-\U000e0fff]")
ATTRIBUTE = re.compile(r"""\s([a-zA-Z:-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?""")


def tags_of(page: str) -> list[tuple[str, str]]:
    """Return the tags of a page as a browser finds them: a letter right after < begins one."""
    return re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)((?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>", page)


def harmless(page: str) -> None:
    """Check that a page has only our own tags, no handler of events, and leads nowhere else."""
    for name, rest in tags_of(page):
        assert name in OURS.split(), name
        for attribute, value in ATTRIBUTE.findall(rest):
            assert not attribute.lower().startswith("on"), (name, rest)
            assert attribute != "style", (name, rest)
            if attribute in ("href", "src", "action", "content") and name != "meta":
                assert html.unescape(value.strip("\"'")).startswith(("/", "#")), (name, value)
    assert page.count("<script") <= 1  # our own, whose address was checked above
    written = re.sub(r'(?s)value="[^"]*"|<textarea.*?</textarea>', "", page)  # a form sends back what it was given
    assert not HIDDEN.search(written)

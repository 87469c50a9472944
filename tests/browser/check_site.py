"""Open every page of the built site in headless Chromium, from its folder and without network, as a reader would see it.

    python tests/browser/check_site.py BUILT_SITE --axe AXE.min.js [--pictures FOLDER] [--pages PATTERN]

At two widths, light and dark: the console is silent, only files of the site are read, nothing sticks out sideways, axe-core
finds nothing serious, and the search finds something. Says so and does nothing where there is no Chromium.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from headless_browser import Tab, found, headless

WIDTHS = (1280, 400)
MAIN = ("index.html", "tutorial.html", "how-to/index.html", "concepts.html", "benchmarks.html", "api/memory.html")
SEARCHED = (("hindsight", "index.html", "Glossary"), ("purge", "how-to/plot.html", "Deletion and privacy"))
# What makes a page too wide: all that sticks out and is in no box that scrolls or hides it.
_STICKS_OUT = """[...document.querySelectorAll('.md-container *')].filter(one => {
    if (one.getBoundingClientRect().right <= WIDTH + 1) return false
    for (let box = one.parentElement; box && box !== document.body; box = box.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(box).overflowX)) return false
    return one.getClientRects().length > 0 && getComputedStyle(one).visibility !== 'hidden'
  }).map(one => one.tagName + '.' + one.className + ': ' + one.textContent.trim().slice(0, 40)).slice(0, 5)"""
_AXE = """window.found = null; axe.run(document, {resultTypes: ['violations'], preload: false}).then(result => {
    window.found = result.violations.filter(one => ['serious', 'critical'].includes(one.impact))
      .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | '))
  }, error => { window.found = ['axe-core failed: ' + error] })"""
_SEARCH = """const field = document.querySelector('.md-search__input'); field.focus(); field.value = 'WORD';
  field.dispatchEvent(new Event('input', {bubbles: true})); field.dispatchEvent(new Event('keyup', {bubbles: true}))"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def waited(tab: Tab, script: str, seconds: float = 60.0) -> Any:
    """Return what a script says as soon as it says something."""
    until = time.monotonic() + seconds
    while (answer := tab.value(script)) in (None, False, 0) and time.monotonic() < until:
        time.sleep(0.05)
    return answer


def faults(tab: Tab, page: Path, site: Path, width: int, *, dark: bool, axe: str) -> Iterator[str]:
    tab.complaints.clear()
    tab.requests.clear()
    tab.open(page, width, dark=dark)
    scheme = waited(tab, "document.body && document.body.getAttribute('data-md-color-scheme')", 10)
    if scheme != ("slate" if dark else "default"):
        yield f"its colours are {scheme!r}"
    waited(tab, "!document.querySelector('.md-typeset table:not([class])') || !!document.querySelector('.md-typeset__table')")
    inner, wide = tab.value("[window.innerWidth, document.documentElement.scrollWidth]")
    if not wide <= inner == width:
        yield f"is {wide} wide"
    yield from (f"sticks out: {one}" for one in tab.value(_STICKS_OUT.replace("WIDTH", str(width))))
    tab.send("Runtime.evaluate", expression=axe)
    tab.value(_AXE)
    results = waited(tab, "window.found")
    yield from results if isinstance(results, list) else ["axe-core did not end"]
    yield from tab.complaints
    yield from (f"asks for {url}" for url in tab.requests if not url.startswith((site.as_uri(), "data:", "blob:", "about:")))


def search(tab: Tab, page: Path, word: str) -> list[str]:
    """Return the titles that the search of a page finds."""
    tab.open(page, 1280)
    waited(tab, "!!document.querySelector('.md-search__input')", 10)
    tab.value(_SEARCH.replace("WORD", word))
    waited(tab, "document.querySelectorAll('.md-search-result__item').length", 30)
    return tab.value("[...document.querySelectorAll('.md-search-result__item h1')].map(one => one.textContent)")


def check(site: Path, pages: list[Path], axe: str, program: str, pictures: Path | None) -> list[str]:
    every: list[str] = []
    with headless(program) as tab:
        for page in pages:
            name = page.relative_to(site).as_posix()
            for width, dark in [(width, dark) for width in WIDTHS for dark in (False, True)]:
                where = f"{name} at {width}, {'dark' if dark else 'light'}"
                every += [f"{where}: {fault}" for fault in faults(tab, page, site, width, dark=dark, axe=axe)]
                if pictures is not None and name in MAIN:
                    colours = "dark" if dark else "light"
                    time.sleep(1)  # the tabs fade in
                    tab.picture(pictures / f"{name.replace('/', '-').removesuffix('.html')}-{width}-{colours}.png")
            say(f"{name}: {len(every)} faults so far")
        for word, name, title in SEARCHED:
            titles = search(tab, site / name, word)
            say(f"{word!r} on {name} finds {titles[:5]}")
            if title not in titles:
                every.append(f"the search for {word!r} on {name} does not find {title!r}")
    return every


def main() -> None:
    parser = argparse.ArgumentParser(description="Open every page of the built site in headless Chromium.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--axe", type=Path, required=True, help="axe.min.js of axe-core: npm pack axe-core")
    parser.add_argument("--pictures", type=Path, help="folder for what the main pages look like")
    parser.add_argument("--pages", default="**/*.html")
    options = parser.parse_args()
    program = found()
    if program is None:
        say("no Chromium here: skipped (Debian: apt-get install chromium)")
        return
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    site = options.site.resolve()
    pages = sorted(page for page in site.glob(options.pages) if page.name != "404.html")
    found_faults = check(site, pages, options.axe.read_text(encoding="utf-8"), program, options.pictures)
    if found_faults or not pages:
        sys.exit("\n".join([f"{len(pages)} pages, {len(found_faults)} faults:", *found_faults]))
    say(f"{len(pages)} pages, {len(WIDTHS)} widths, light and dark: no fault")


if __name__ == "__main__":
    main()

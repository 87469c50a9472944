"""The pages of a built site: what they link to, what they load, and where one can land in them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pages import PROJECT

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "object": "data"}
_FETCHED = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
_IN_CSS = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")


@dataclass
class Page:
    """What matters of one page."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._page.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self._page.links.append(given["href"])
        if tag in _LOADED and _LOADED[tag] in given:
            self._page.loads.append(given[_LOADED[tag]])
        if tag == "link" and _FETCHED & set(given.get("rel", "").split()):
            self._page.loads.append(given["href"])


def build(target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site; mkdocs says on its error output what it would complain about."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def read(text: str) -> Page:
    page = Page()
    _Reader(page).feed(text)
    return page


def faults(site: Path) -> list[str]:
    """Return every link and anchor that leads nowhere, and everything that would be loaded from elsewhere."""
    pages = {file: read(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    found = [
        f"{file.relative_to(site)}: {fault}"
        for file, page in pages.items()
        for fault in [*_loaded(file, page, site), *_linked(file, page, site, pages)]
    ]
    for file in site.rglob("*.css"):
        found += [f"{file.relative_to(site)}: loads {url}" for url in _IN_CSS.findall(file.read_text(encoding="utf-8"))]
    return found


def _loaded(file: Path, page: Page, site: Path) -> list[str]:
    return [f"loads {one}" for one in page.loads if not one.startswith("data:") and _place(file, one, site) is None]


def _linked(file: Path, page: Page, site: Path, pages: dict[Path, Page]) -> list[str]:
    found = []
    for link in page.links:
        if urlsplit(link).scheme in ("http", "https", "mailto"):
            continue
        there, anchor = _place(file, link, site), unquote(urlsplit(link).fragment)
        if there is None:
            found.append(f"links to {link}, and nothing is there")
        elif anchor and there in pages and anchor not in pages[there].anchors:
            found.append(f"links to {link}, which has no such anchor")
    return found


def _place(file: Path, link: str, site: Path) -> Path | None:
    """Return the file of the site that a link names, if there is one."""
    parts = urlsplit(link)
    if file.name == "404.html":  # a server shows it at any address, so it names everything from the root
        parts = parts._replace(path=parts.path.removeprefix("/"))
    if parts.scheme or parts.netloc or parts.path.startswith("/"):
        return None
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    there = there / "index.html" if there.is_dir() else there
    return there if there.is_file() and site.resolve() in there.parents else None

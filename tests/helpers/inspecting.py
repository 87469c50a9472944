"""The inspector without a network: a client that behaves like a browser on this machine."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpx

from cascade_memory import CascadeMemory
from cascade_memory.inspector import app
from cascade_memory.inspector.sessions import Sessions
from cascade_memory.inspector.site import Site, guarded, start_path

HOST = "127.0.0.1"
SAME = {"Sec-Fetch-Site": "same-origin"}
# Addresses that no page of the inspector has, each of which must be answered with a sentence.
WEIRD = (
    ("/cases", {"after": "1.2.3:5"}),
    ("/cases", {"after": "1e999:5", "sort": "use"}),
    ("/cases", {"after": "-:1"}),
    ("/cases", {"after": "1:999999999999999999", "sort": "oldest"}),
    ("/cases", {"where": '{"a": "\\ud800"}'}),
    ("/cases", {"where": '{"a": 1e999}'}),
    ("/cases", {"where": '{"a\\u0000": 99999999999999999999}'}),
    ("/cases", {"where": "[" * 2000}),
    ("/cases", {"q": "\0 %_! \U0001f468\u200d\U0001f469"}),
    ("/cases", {"ns": "\0"}),
    ("/case", {"id": "\0"}),
    ("/case", {"id": "x" * 7000}),
    ("/episode", {"id": "\0", "whole": "\0"}),
    ("/episodes", {"after": "9" * 18 + ":" + "9" * 18}),
    ("/audit", {"after": "٣:٣"}),
    ("/about", {"id": "//evil.example"}),
    ("/judge", {"start": "-1", "rate": "nan"}),
    ("/warnings", {"state": "\0", "start": "-1"}),
    ("/warning", {"id": "\0", "whole": "\0"}),
    ("/forget", {"what": "everything", "id": ""}),
)


class Browser:
    """Asks an ASGI application, keeps cookies, and says from which site its forms come."""

    def __init__(self, application: Any, base: str = f"http://{HOST}:8000", **options: Any) -> None:
        self._options = {"transport": httpx.ASGITransport(application, raise_app_exceptions=False), "base_url": base, **options}
        self.cookies = httpx.Cookies()

    def ask(self, method: str, address: str, **options: Any) -> httpx.Response:
        async def answered() -> httpx.Response:
            async with httpx.AsyncClient(cookies=self.cookies, **self._options) as client:
                found = await client.request(method, address, **options)
                self.cookies = client.cookies
                return found

        return anyio.run(answered)

    def get(self, address: str, **options: Any) -> httpx.Response:
        for _ in range(40):  # what is measured on a thread of its own may take a moment
            found = self.ask("GET", address, **options)
            if 'http-equiv="refresh" content="1"' not in found.text:
                break
            anyio.run(anyio.sleep, 0.1)
        return found

    def post(self, address: str, fields: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        headers = {**SAME, **options.pop("headers", {})}
        return self.ask("POST", address, data=fields or {}, headers=headers, **options)


class Door:
    """An inspector with its own login."""

    def __init__(self, memory: CascadeMemory, *, edit: bool = False, token: str | None = None, **options: Any) -> None:
        self.sessions = Sessions(actor="ann", token=token)
        self.site = Site(memory, edit=edit, actor="ann", namespaces=None, sessions=self.sessions, cookie="inspector", **options)
        self.application = guarded(self.site, (HOST, "localhost"))

    def link(self) -> str:
        return start_path(self.sessions.new_link())

    def browser(self, *, come_in: bool = True) -> Browser:
        found = Browser(self.application)
        if come_in:
            assert found.get(self.link()).status_code == 200
        return found


@contextmanager
def door(memory: CascadeMemory, **options: Any) -> Iterator[Door]:
    made = Door(memory, **options)
    try:
        yield made
    finally:
        made.site.close()


def mounted(memory: CascadeMemory, **options: Any) -> Browser:
    """The inspector as a host mounts it, below /tools/memory."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Browser(Starlette(routes=[Mount("/tools/memory", app(memory, **options))]))


def text_of(page: httpx.Response) -> str:
    """What a reader sees of a page: its text without markup."""
    body = re.sub(r"(?s)<(style|script|head).*?</\1>", "", page.text)
    return html.unescape(re.sub(r"<[^>]+>", "", body))


def links_of(page: httpx.Response, page_name: str = "") -> list[str]:
    """The addresses that a page leads to."""
    found = [html.unescape(one) for one in re.findall(r'href="([^"]*)"', page.text)]
    return [one for one in found if f"/{page_name}?" in one] if page_name else found


def form_of(page: httpx.Response, action: str) -> dict[str, str]:
    """The hidden fields of the form that leads to an action."""
    (form,) = re.findall(rf'(?s)<form[^>]*action="[^"]*/{action}"[^>]*>(.*?)</form>', page.text)[:1]
    pairs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in pairs}

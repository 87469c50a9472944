"""What stands before the pages: each measure, and an attack on it."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import anyio
import httpx
import pytest
from inspecting import HOST, Browser, Door, mounted
from raw_requests import RawClient

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector import app
from cascade_memory.inspector.gate import FIELDS, FORM, MAX_BYTES, MAX_QUERY, Gate

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with what came through the gate, and try to weaken its headers."""
    body = json.dumps({"form": scope[FORM], "fields": scope.get(FIELDS)}).encode()
    weak = [(b"Access-Control-Allow-Origin", b"*"), (b"X-Frame-Options", b"ALLOWALL"), (b"content-security-policy", b"")]
    await send({"type": "http.response.start", "status": 200, "headers": weak})
    await send({"type": "http.response.body", "body": body})


def behind_gate(*, edit: bool = True) -> Browser:
    return Browser(Gate(_echo, hosts=(HOST,), sessions=None, edit=edit, cookie="inspector", public=()))


def form(browser: Browser) -> str:
    return str(browser.get("/").json()["form"])


# -- the name under which it is asked for ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "localhost.", "", "127.0.0.1:x", "[::1"]
)
def test_a_name_that_leads_here_by_rebinding_is_refused(own: Door, host: str):
    browser = own.browser()
    found = browser.get("/cases", headers={"Host": host})
    assert found.status_code == (200 if host == "localhost." else 421)
    assert ("mug" in found.text) is (host == "localhost.")


def test_the_name_is_checked_before_the_link_is_used_up(own: Door):
    link, browser = own.link(), own.browser(come_in=False)
    assert browser.get(link, headers={"Host": "evil.example"}).status_code == 421
    assert browser.get("/static/inspector.css", headers={"Host": "evil.example"}).status_code == 421
    assert browser.get(link).status_code == 200


def test_two_names_at_once_or_none_are_refused():
    for names in ([(b"host", b"127.0.0.1"), (b"host", b"evil.example")], []):
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": names}
        gate = Gate(_echo, hosts=(HOST,), sessions=None, edit=True, cookie="inspector", public=())
        asyncio.run(gate(scope, receive, send))
        assert sent[0]["status"] == 421


# -- forms and fetches of other sites ----------------------------------------------------------------------------------


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "SAME-ORIGIN"])
def test_a_form_of_another_site_changes_nothing(site: str):
    browser = behind_gate()
    token = form(browser)
    assert browser.post("/", {"form": token}, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert browser.post("/", {"form": token}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1.evil.example", "http://127.0.0.1", ""),
        *("http://[", "http://[::1", "http://127.0.0.1:8000]", "//[x]/", "\xff"),
    ],
)
def test_an_old_browser_is_judged_by_its_origin(origin: str):
    browser = behind_gate()
    fields = {"form": form(browser)}
    assert browser.ask("POST", "/", data=fields, headers={"Origin": origin.encode("latin-1")}).status_code == 403
    assert browser.ask("POST", "/", data=fields, headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200


def test_a_browser_that_says_nothing_changes_nothing():
    browser = behind_gate()
    assert browser.ask("POST", "/", data={"form": form(browser)}).status_code == 403


def test_a_form_needs_the_token_of_its_own_visit():
    victim, attacker = behind_gate(), behind_gate()
    form(victim)
    for token in ("", form(attacker), "x" * 32):
        assert victim.post("/", {"form": token}).status_code == 403
    assert victim.post("/", {"other": "1"}).status_code == 403


def test_a_form_without_the_cookie_changes_nothing():
    token = form(behind_gate())
    assert behind_gate().post("/", {"form": token}).status_code == 403


def test_only_forms_are_read():
    browser = behind_gate()
    token = form(browser)
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", ""):
        found = browser.ask(
            "POST", "/", content=f"form={token}", headers={"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
        )
        assert found.status_code == 415, kind


@pytest.mark.parametrize("body", [b"form=%FF", b"form=\xff", b"&".join(b"a=1" for _ in range(100))])
def test_a_form_that_cannot_be_read_is_refused(body: bytes):
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    assert behind_gate().ask("POST", "/", content=body, headers=headers).status_code == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(own: Door, method: str):
    found = own.browser().ask(method, "/cases", headers={"Origin": "http://evil.example"})
    assert found.status_code == 405
    assert not any(name.startswith("access-control") for name in found.headers)


def test_an_inspector_that_only_shows_takes_no_form():
    browser = behind_gate(edit=False)
    assert browser.post("/", {"form": form(browser)}).status_code == 403


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_form_that_says_that_it_is_too_large_is_not_read():
    assert behind_gate().ask("POST", "/", content=b"", headers={"Content-Length": str(MAX_BYTES + 1)}).status_code == 413
    assert behind_gate().ask("POST", "/", content=b"", headers={"Content-Length": "-1"}).status_code == 413


def test_a_form_that_does_not_say_how_large_it_is_is_cut_off():
    read = 0

    async def parts() -> Any:
        nonlocal read
        while True:
            read += 1
            yield b"a" * 500_000

    async def ask() -> httpx.Response:
        gate = Gate(_echo, hosts=(HOST,), sessions=None, edit=True, cookie="inspector", public=())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url=f"http://{HOST}") as client:
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
            return await client.post("/", content=parts(), headers=headers)

    assert anyio.run(ask).status_code == 413
    assert read <= 1 + MAX_BYTES // 500_000 + 1


def test_an_address_that_is_too_long_is_refused(browser: Browser):
    assert browser.get("/cases", params={"q": "a" * (MAX_QUERY + 1)}).status_code == 414


@pytest.mark.parametrize("path", ["", "/", "/cases", "/cases/", "/static/inspector.css/", "/nowhere/"])
def test_an_address_whose_letters_are_not_encoded_is_refused(memory: CascadeMemory, path: str):
    with RawClient(app(memory)) as client:
        assert client.ask("GET", path, b"q=\xff").status == client.ask("GET", path, "q=é".encode()).status == 400
        assert client.ask("GET", path, b"q=%ff").status < 500


# -- what browsers are told --------------------------------------------------------------------------------------------


def test_every_answer_tells_browsers_to_be_strict(own: Door):
    browser, stranger = own.browser(), own.browser(come_in=False)
    answers = [browser.get(address) for address in ("/cases", "/case?id=x", "/nowhere", "/static/inspector.js", "/")]
    answers += [stranger.get("/cases"), browser.get("/cases", headers={"Host": "evil.example"}), behind_gate().get("/")]
    answers.append(browser.ask("PUT", "/cases"))
    for found in answers:
        assert found.headers["content-security-policy"] == CSP
        assert found.headers["x-frame-options"] == "DENY"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in found.headers
        assert found.headers.get_list("x-frame-options") == ["DENY"]


def test_no_page_has_script_or_style_of_its_own_or_asks_for_anything_elsewhere(browser: Browser):
    for address in ("/cases", "/episodes", "/judge", "/learning", "/health", "/audit"):
        text = browser.get(address).text
        assert "<style" not in text
        assert "style=" not in text
        assert text.count("<script") == text.count("<script src=") == 1
        assert not re.search(r"<[^>]*\son[a-z]+\s*=", text)
        assert "http://" not in text
        assert "https://" not in text


# -- mounted by a host -------------------------------------------------------------------------------------------------


def test_a_host_mounts_it_below_any_path(memory: CascadeMemory):
    browser = mounted(memory)
    found = browser.get("/tools/memory/cases")
    assert found.status_code == 200
    assert "mug" in found.text
    assert "Path=/tools/memory;" in found.headers["set-cookie"]
    links = [one for one in found.text.split('"') if one.startswith("/")]
    assert links
    assert all(one.startswith("/tools/memory/") for one in links)
    assert browser.get("/tools/memory/").headers["location"] == "/tools/memory/cases"
    assert browser.get("/tools/memory/static/inspector.css").status_code == 200


def test_mounted_it_checks_names_as_well(memory: CascadeMemory):
    assert mounted(memory).get("/tools/memory/cases", headers={"Host": "evil.example"}).status_code == 421
    allowed = mounted(memory, allow_hosts=["memory.example.org"])
    assert allowed.get("/tools/memory/cases", headers={"Host": "memory.example.org:8443"}).status_code == 200
    assert allowed.get("/tools/memory/cases").status_code == 421


def test_mounted_with_edit_it_must_know_who_acts(memory: CascadeMemory):
    with pytest.raises(InvalidInput, match="actor="):
        app(memory, edit=True)
    browser = mounted(memory, edit=True, actor=lambda scope: dict(scope["headers"])[b"x-user"].decode())
    assert "as zoe" in browser.get("/tools/memory/cases", headers={"X-User": "zoe"}).text


def test_a_web_socket_is_closed(own: Door):
    sent: list[Any] = []

    async def ask() -> None:
        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await own.application({"type": "websocket", "path": "/", "headers": []}, receive, send)

    asyncio.run(ask())
    assert [one["type"] for one in sent] == ["websocket.close"]


def test_a_length_of_many_digits_is_refused():
    assert behind_gate().ask("POST", "/", content=b"", headers={"Content-Length": "9" * 5000}).status_code == 413


def test_cookies_of_other_applications_on_this_host_do_not_lock_anybody_out(own: Door):
    browser = own.browser()
    mine = f"inspector={browser.cookies.get('inspector')}"
    for others in ('odd={"a": [1, 2]}', "=; ;;", 'a="b', "inspector=planted", "\xff=\xff"):
        found = own.browser(come_in=False).get("/cases", headers=[(b"cookie", f"{others}; {mine}".encode("latin-1"))])
        assert found.status_code == 200, others
    lines = [(b"cookie", b"a=1"), (b"cookie", mine.encode()), (b"cookie", b"b=2")]
    assert own.browser(come_in=False).get("/cases", headers=lines).status_code == 200

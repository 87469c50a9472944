"""Who may look: the link, its token and the cookie, and what an attacker would try with them."""

from __future__ import annotations

import re

import pytest
from inspecting import Browser, Door, door

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput
from cascade_memory.inspector import Listening
from cascade_memory.inspector.sessions import Sessions
from cascade_memory.inspector.site import Site, guarded

SHARED = "a-token-of-some-length"


def test_without_a_link_nothing_is_shown(own: Door):
    stranger = own.browser(come_in=False)
    for address in ("/", "/cases", "/case?id=x", "/episodes", "/learning", "/health", "/nowhere", "/static/../site.py"):
        found = stranger.get(address)
        assert found.status_code == 401, address
        assert "mug" not in found.text


def test_a_link_is_traded_for_a_strict_cookie(own: Door):
    browser = own.browser(come_in=False)
    found = browser.get(own.link())
    assert found.status_code == 200
    assert "mug" not in found.text
    (cookie,) = found.headers.get_list("set-cookie")
    assert re.fullmatch(r"inspector=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict", cookie)
    assert browser.get("/cases").status_code == 200


def test_the_token_of_a_link_is_good_for_one_browser(own: Door):
    link = own.link()
    assert own.browser(come_in=False).get(link).status_code == 200
    for _ in range(2):
        thief = own.browser(come_in=False)
        assert thief.get(link).status_code == 401
        assert thief.get("/cases").status_code == 401


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "\x00", "%"])
def test_a_made_up_token_opens_nothing(own: Door, token: str):
    own.link()
    stranger = own.browser(come_in=False)
    assert stranger.ask("GET", "/start", params={"token": token}).status_code == 401
    assert "set-cookie" not in stranger.get("/cases").headers


def test_fetching_a_link_ahead_of_time_does_not_use_it_up(own: Door):
    link, browser = own.link(), own.browser(come_in=False)
    assert browser.ask("HEAD", link).status_code == 401
    assert browser.get(link, headers={"Sec-Purpose": "prefetch;prerender"}).status_code == 401
    assert browser.get(link).status_code == 200


def test_the_token_is_no_cookie_and_a_made_up_cookie_is_none(own: Door):
    token = own.sessions.new_link()
    for value in (token, "x" * 43, "", "a" * 5000):
        stranger = own.browser(come_in=False)
        assert stranger.get("/cases", headers={"Cookie": f"inspector={value}"}).status_code == 401


def test_only_the_newest_links_are_kept():
    sessions = Sessions(actor="ann")
    first, *_, last = [sessions.new_link() for _ in range(17)]
    assert sessions.follow(first) is None
    assert sessions.follow(last) is not None


def test_people_enter_a_shared_token_with_their_names(memory: CascadeMemory):
    with door(memory, token=SHARED, edit=True) as made:
        browser = made.browser(come_in=False)
        assert 'name="token"' in browser.get("/cases").text
        assert browser.post("/enter", {"token": SHARED, "name": "Zoë"}).status_code == 200
        assert "as Zoë" in browser.get("/cases").text


def test_a_shared_token_needs_a_name(memory: CascadeMemory):
    with door(memory, token=SHARED) as made:
        for name in ("", "   ", "x" * 101):
            browser = made.browser(come_in=False)
            assert browser.post("/enter", {"token": SHARED, "name": name}).status_code == 401
            assert browser.get("/cases").status_code == 401


def test_wrong_tokens_of_others_keep_nobody_out(memory: CascadeMemory, caplog: pytest.LogCaptureFixture):
    with door(memory, token=SHARED) as made:
        early = made.browser(come_in=False)
        assert early.post("/enter", {"token": SHARED, "name": "ann"}).status_code == 200
        for guess in (*map(str, range(20)), "", SHARED[:-1], f"{SHARED}x", "\x00", "Ω" * 22):
            stranger = made.browser(come_in=False)
            assert stranger.post("/enter", {"token": guess, "name": "eve"}).status_code == 401
            assert stranger.get("/cases").status_code == 401
        assert early.get("/cases").status_code == 200
        late = made.browser(come_in=False)
        assert late.post("/enter", {"token": SHARED, "name": "bob"}).status_code == 200
        assert late.get("/cases").status_code == 200
    assert len([one for one in caplog.records if "somebody guesses" in one.message]) == 2
    assert SHARED not in caplog.text


def test_a_name_that_could_not_be_recorded_does_not_come_in(memory: CascadeMemory):
    with door(memory, token=SHARED) as made:
        for name in ("an\u200bn", "ann\u202e", "e\u0301ve"):
            browser = made.browser(come_in=False)
            found = browser.post("/enter", {"token": SHARED, "name": name})
            assert (found.status_code, "This name cannot be recorded" in found.text) == (401, True)


def test_a_token_in_the_address_is_never_the_shared_one(memory: CascadeMemory):
    with door(memory, token=SHARED) as made:
        assert made.browser(come_in=False).get("/start", params={"token": SHARED}).status_code == 401


def test_another_site_cannot_make_a_browser_enter(memory: CascadeMemory):
    with door(memory, token=SHARED) as made:
        found = made.browser(come_in=False).post(
            "/enter", {"token": SHARED, "name": "eve"}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert found.status_code == 403


def test_the_cookie_travels_encrypted_behind_https(memory: CascadeMemory):
    with door(memory) as made:
        browser = Browser(made.application, "https://127.0.0.1")
        assert "; Secure" in browser.get(made.link()).headers["set-cookie"]


# -- where it listens --------------------------------------------------------------------------------------------------


def test_loopback_needs_neither_token_nor_names():
    assert set(Listening().hosts) == {"127.0.0.1", "localhost", "::1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "memory.example.org"])
def test_beyond_loopback_it_starts_only_with_a_token_and_allowed_names(host: str):
    for lacking in ({}, {"token": SHARED}, {"allow_hosts": ("memory.example.org",)}, {"token": "short", "allow_hosts": ("m",)}):
        with pytest.raises(InvalidInput, match=r"token|--allow-host"):
            Listening(host=host, **lacking)
    assert Listening(host=host, token=SHARED, allow_hosts=("memory.example.org",)).hosts == ("memory.example.org",)


@pytest.mark.parametrize("name", ["*", "*.example.org", "http://example.org", "example.org:80", "", "a b"])
def test_allowed_names_are_names(name: str):
    with pytest.raises(InvalidInput, match="not the name of a host"):
        Listening(allow_hosts=(name,))


def test_the_token_is_not_part_of_its_repr():
    assert SHARED not in repr(Listening(host="::", token=SHARED, allow_hosts=("m",)))


def test_strangers_cannot_send_megabytes(memory: CascadeMemory):
    with door(memory, token=SHARED) as made:
        found = made.browser(come_in=False).post("/enter", {"token": "x" * 100_000, "name": "eve"})
        assert found.status_code == 413


@pytest.mark.parametrize(
    ("host", "secure"),
    [("memory.example.org", True), ("memory.example.org:8443", True), ("127.0.0.1", False), ("memory.localhost", False)],
)
def test_the_cookie_travels_encrypted_if_something_before_it_speaks_https(memory: CascadeMemory, host: str, secure: bool):
    """Such a proxy passes plain HTTP on. Browsers send this header over HTTPS and to their own machine only."""
    site = Site(
        memory, edit=False, actor="ann", namespaces=None, sessions=Sessions(actor="ann", token=SHARED), cookie="inspector"
    )
    try:
        behind = guarded(site, ("memory.example.org", "127.0.0.1", "memory.localhost"))
        found = Browser(behind).post("/enter", {"token": SHARED, "name": "ann"}, headers={"Host": host})
        assert found.status_code == 200
        assert ("; Secure" in found.headers["set-cookie"]) is secure
    finally:
        site.close()

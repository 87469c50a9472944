"""Every field of every page and form with every extreme text: answered with a page or a sentence, and the memory stays whole.

Which of the requests are sent is drawn by chance. With CASCADE_TESTS=matrix all are: about twenty minutes of a processor.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote_from_bytes, urlsplit

import pytest
from extreme_calls import drawn, some
from extreme_texts import TEXTS
from found_forms import Form, Found, Noting, names_read
from harmless_pages import harmless
from inside import verb_of
from inspecting import Door, door
from raw_requests import FORM, Answer, Pairs, RawClient, encoded
from starlette.routing import Route
from warned import fail
from whole_memory import assert_whole

from cascade_memory import CascadeMemory
from cascade_memory.errors import QuotaExceeded
from cascade_memory.inspector import site
from cascade_memory.inspector.view import View

pytestmark = pytest.mark.fuzz

_SECONDS = 5.0  # of the processor, which no answer takes
_PATH, _UNKNOWN = "(the path)", "nobody-reads-this"
_NUMBERS = itertools.count()  # what is added twice is one case
_FAILED = ("Traceback", "Internal Server Error", "Something failed", "object at 0x")


@dataclass
class Read:
    """Which fields were read to answer for a path, and the path that is asked for now."""

    now: str = ""
    by: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


# -- what pages are about ----------------------------------------------------------------------------------------------


def _reported(memory: CascadeMemory, reward: float) -> str:
    recall = memory.recall(f"boil some water {next(_NUMBERS)}")
    try:
        memory.reward(recall.episode_id, reward, solution="use the oven", source="agent")
    except QuotaExceeded:  # a thousand wait for a verdict
        memory.episodes.expire(0.0, reported=True)
        return _reported(memory, reward)
    return f"/episode?id={recall.episode_id}"


def _case(memory: CascadeMemory, verb: str | None = None) -> str:
    case_id = memory.add(f"heat some egg {next(_NUMBERS)}", "microwave it", metadata={"user": "ann"})
    if verb is not None:
        verb_of(memory.acting(actor="ann"), verb)(case_id)
    return f"/case?id={case_id}"


def _warning(memory: CascadeMemory, retired: bool = False) -> str:
    if not memory.warnings.all():
        fail(memory)
    warning_id = memory.warnings.all()[0].id
    ann = memory.acting(actor="ann")
    (ann.warnings.retire if retired else ann.warnings.restore)(warning_id)
    return f"/warning?id={warning_id}"


def _forgetting(what: str, address: str) -> str:
    return f"/forget?what={what}&{urlsplit(address).query}"


def _audited(memory: CascadeMemory) -> str:
    _case(memory, "pin")
    return "/audit"


Maker: TypeAlias = Callable[[CascadeMemory], str]  # makes something, and returns the address of a page about it
MAKERS: tuple[Maker, ...] = (
    _case,
    lambda memory: _case(memory, "pin"),
    lambda memory: _case(memory, "hide"),
    lambda memory: _reported(memory, 1.0),
    lambda memory: _reported(memory, 0.0),
    _warning,
    lambda memory: _warning(memory, retired=True),
    lambda memory: _forgetting("case", _case(memory)),
    lambda memory: _forgetting("episode", _reported(memory, 1.0)),
    lambda memory: _case(memory) and "/cases?q=some",
    lambda memory: _case(memory) and "/forget?what=cases&q=some",
    _audited,
)


class Fuzzed:
    """An inspector with all that its pages are about, and what its routes, pages and handlers say of their fields."""

    def __init__(self, made: Door, memory: CascadeMemory, read: Read, clients: tuple[RawClient, RawClient]) -> None:
        self._memory, self._read = memory, read
        self.client, self._stranger = clients
        routes: Any = made.site.routed()
        self.routes: list[Route] = routes.routes
        self._makers: dict[str, list[Maker]] = defaultdict(list)
        self._forms: dict[str, Form] = {}
        self._linked: dict[str, list[dict[str, str]]] = defaultdict(list)  # the queries of links to a path
        self._look_around()

    def _look_around(self) -> None:
        """Go to every page, and send every form, as a person would."""
        shown = (lambda _, path=one.path: path for one in self.routes if "GET" in (one.methods or ()))
        for make in (*MAKERS, *shown):
            path, _, query = make(self._memory).partition("?")
            self._read.now = path
            page = Found(self.client.ask("GET", path, query.encode()).text)
            for form in page.forms:
                self._read.by[form.path] |= form.fields.keys()
                if form.method == "post" and make in MAKERS:
                    self._makers[form.path].append(make)
            for led, asked in [*page.links, (path, dict(parse_qsl(query)))]:
                self._read.by[led] |= asked.keys()
                self._linked[led].append(asked)
        for path in self._makers:
            assert self.ask("POST", path, _UNKNOWN, b"").status in (200, 303), path

    def calls(self) -> list[tuple[str, str, str, str]]:
        """Return (method, path, name of the field, name of the text) of all requests."""
        return [
            (method, route.path, name, label)
            for route in self.routes
            for method in sorted((route.methods or set()) - {"HEAD"})
            for name in (*sorted(self.names(method, route.path)), *route.param_convertors, _PATH)
            for label in TEXTS
        ]

    def names(self, method: str, path: str) -> set[str]:
        """Return the fields that a page reads or is sent; all that any page reads, if it is not made from a view."""
        known = self._read.by[path] if path.startswith("/do/") or path[1:] in site.PAGES else names_read(method)
        return {_UNKNOWN, *known}

    def ask(self, method: str, path: str, name: str, text: bytes) -> Answer:
        """Send one request in which one field is another text."""
        self._read.now = path
        if name == _PATH or f"{{{name}}}" in path:
            segment = quote_from_bytes(text, safe="" if len(text) % 2 else "/%")
            return self.client.ask(method, path.replace(f"{{{name}}}", segment) if name != _PATH else f"{path}/{segment}")
        if method == "POST":
            return self._submit(path, list({**self.fields_for(path), name: text}.items()))
        asked: Mapping[str, str | bytes] = {**random.choice(self._linked.get(path) or [{}]), name: text}
        return random.choice([self.client, self.client, self._stranger]).ask(method, path, encoded(list(asked.items())))

    def fields_for(self, path: str) -> dict[str, str]:
        """Return the fields of a form that leads to a path, as a page shows it now."""
        if path not in self._makers:
            return {"token": "secret", "name": "zoe"}
        if path not in self._forms:
            address, _, query = random.choice(self._makers[path])(self._memory).partition("?")
            shown = Found(self.client.ask("GET", address, query.encode()).text).forms
            self._forms[path] = random.choice([one for one in shown if one.path == path])
        form = self._forms[path]
        return {**form.fields, **{name: f"another text {next(_NUMBERS)}" for name in form.texts}}

    def _submit(self, path: str, pairs: Pairs) -> Answer:
        """Send a form, look at the page that follows, and take a new form if something was done."""
        found = self.client.post(path, pairs)
        if "set-cookie" in found.headers:  # somebody came in, and the oldest of many visits ends
            self.client.take_cookie(found)
            self._forms.clear()
        if found.status not in (400, 403, 404, 413):
            self._forms.pop(path, None)
        if found.status == 303:
            address = urlsplit(found.headers["location"])
            self._read.now = address.path
            check(self.client.ask("GET", address.path, address.query.encode()))
        return found


def check(found: Answer, method: str = "GET") -> None:
    """Check that an answer is a page or a sentence, that it came soon, and that all it shows is text."""
    assert found.status < 500, found.body[:300]
    assert found.took < _SECONDS
    assert found.headers["x-frame-options"] == "DENY"
    assert "set-cookie" not in found.headers or found.headers["set-cookie"].startswith("inspector=")
    kind = found.headers.get("content-type", "")
    if 300 <= found.status < 400:
        assert found.headers["location"].startswith(("/", "http://127.0.0.1:8000/"))
        assert not found.headers["location"].startswith("//")
    elif method == "HEAD":
        assert kind.startswith("text/")
    elif kind.startswith("text/html"):
        harmless(found.text)
        assert "</html>" in found.text
    else:
        assert kind.startswith(("text/plain", "text/css", "text/javascript", "image/svg"))
        assert len(found.text) > 10
    assert not any(one in found.text for one in _FAILED), found.text[:2_000]


def _wrong(work: Callable[[], Answer], method: str = "GET") -> str | None:
    """Ask for something; return what is wrong with the answer, if anything."""
    try:
        check(work(), method)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return None


@pytest.fixture
def fuzzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fuzzed]:
    """An inspector in which everything may be done; in the end, it goes on answering and its memory is whole."""
    read = Read()

    def noting(**options: Any) -> View:
        both = {name: Noting(options[name], read.by[read.now]) for name in ("query", "fields")}
        return View(**{**options, **both})

    monkeypatch.setattr(site, "View", noting)
    random.seed(7)
    with (
        CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline", deadline=30) as memory,
        door(memory, edit=True, token="secret") as made,
    ):
        cookie = f"inspector={made.browser().cookies['inspector']}"
        with RawClient(made.application, cookie) as client, RawClient(made.application) as stranger:
            yield Fuzzed(made, memory, read, (client, stranger))
            assert "heat some egg" in client.ask("GET", "/cases", b"q=egg").text
        assert_whole(memory, tmp_path)


@pytest.mark.slow
def test_every_field_of_every_route_takes_every_text(fuzzed: Fuzzed):
    calls = fuzzed.calls()
    names = {(method, path): fuzzed.names(method, path) for method, path, _, _ in calls}
    assert len(calls) > 30_000
    found: dict[str, str] = {}
    for method, path, name, label in drawn(calls, "fields"):
        if wrong := _wrong(lambda ask=(method, path, name, TEXTS[label]): fuzzed.ask(*ask)):
            found[f"{method} {path} {name}={label}"] = wrong
    assert found == {}
    # Each field that a page reads was found before, so it got all texts.
    assert {one: fuzzed.names(*one) for one in names} == names


# -- requests of another shape -----------------------------------------------------------------------------------------

_HEADERS = ("host", "origin", "sec-fetch-site", "sec-purpose", "cookie", "content-type", "content-length", "accept", "range")
_HEADERS = (*_HEADERS, "transfer-encoding", "expect", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "upgrade")


_KINDS = (
    b"",
    b"application/json",
    b"multipart/form-data; boundary=x",
    b"text/plain",
    b"\xff",
    FORM.encode() + b"; charset=utf-16",
)
_LENGTHS = (b"", b"0", b"1", b"-1", b"9" * 12, b"9" * 5_000, b"1e3", b"0x10", "٣".encode(), b" 5", b"5, 6")
_MORE: dict[str, dict[str, Any]] = {
    **{f"of the kind {kind!r}": {"headers": {b"content-type": kind}} for kind in _KINDS},
    **{f"of the length {one[:20]!r}": {"headers": {b"content-length": one}} for one in _LENGTHS},
    "two lengths": {"headers": {b"content-length": b"5"}, "more": [(b"content-length", b"3")]},
    "two kinds": {"more": [(b"content-type", b"text/plain")]},
    "many headers": {"more": [(f"x-{i}".encode(), b"y" * 100) for i in range(3_000)]},
    "many queries": {"query": b"ns=1&" * 1_500},
}
_PARTS: dict[str, Callable[[bytes], list[bytes | None]]] = {
    "no body": lambda _: [],
    "bytes": lambda body: [body + b"&\xff\xfe=\xff"],
    "a percent": lambda body: [body + b"&a=%&b=%zz&%"],
    "only separators": lambda _: [b"&" * 3_000],
    "no names": lambda body: [body + b"&=1&=2&==&;"],
    "many fields": lambda body: [body + b"&a=1" * 55],
    "too many": lambda body: [body + b"&a=1" * 100_000],
    "each twice": lambda body: [body + b"&" + body],
    "each six times": lambda body: [b"&".join([body] * 6)],
    "no token": lambda body: [body.replace(b"form=", b"f=")],
    "JSON": lambda body: [json.dumps(dict(parse_qsl(body.decode()))).encode()],
    "too large": lambda body: [body + b"&a=" + b"x" * 4_000_000],
    "nearly too large": lambda body: [body + b"&a=" + b"x" * 3_900_000],
    "in many parts": lambda body: [b"", *(body[i : i + 1] for i in range(len(body))), b"", b""],
    "hung up": lambda body: [body[:9], None],
    "hung up at once": lambda _: [None],
    **{f"the name {name}": lambda body, text=text: [body + b"&" + encoded([(text, "1")])] for name, text in TEXTS.items()},
}


def _sent_otherwise(fuzzed: Fuzzed, path: str, what: str) -> Answer:
    """Send a form of today otherwise than a form is sent."""
    fields = fuzzed.fields_for(path)
    fields.pop(what.removeprefix("without "), None)
    body = encoded(list(fields.items()))
    more = _MORE.get(what, {})
    parts = _PARTS[what](body) if what in _PARTS else [body]
    headers = {b"content-type": FORM.encode(), **more.get("headers", {})}
    return fuzzed.client.ask("POST", path, parts=parts, **{**more, "headers": headers})


@pytest.mark.slow
def test_a_form_that_is_sent_otherwise_is_answered_with_a_sentence(fuzzed: Fuzzed):
    paths = [route.path for route in fuzzed.routes if "POST" in (route.methods or ())]
    calls = [
        (path, what)
        for path in paths
        for what in (*_PARTS, *_MORE, *(f"without {name}" for name in sorted(fuzzed.names("POST", path))))
    ]
    assert len(calls) > 1_500
    found: dict[str, str] = {}
    for path, what in some(calls, 120, "shapes"):
        if wrong := _wrong(lambda path=path, what=what: _sent_otherwise(fuzzed, path, what)):
            found[f"{path}, {what}"] = wrong
    assert found == {}


@pytest.mark.slow
def test_an_odd_method_query_or_header_is_answered_with_a_sentence(fuzzed: Fuzzed):
    methods = ("GET", "HEAD", "POST", "PUT", "get", "", "G\0T", "CONNECT", "x" * 5_000)
    queries = {
        "separators": b"&" * 7_000,
        "equals": b"=" * 7_000,
        "bytes": b"\xff=\xfe&%=%&%ff=%fe",
        "semicolons": b"id=1;ns=2",
    }
    queries |= {"many": b"id=1&" * 1_500, "many names": encoded([(f"n{i}", "") for i in range(700)]), "a mark": b"?????id=1"}
    queries |= {f"named {label}": encoded([(text, "1")]) for label, text in TEXTS.items()}
    odd: dict[str, tuple[str, dict[str, Any]]] = {f"{method!r:.20}": (method, {}) for method in methods}
    odd |= {f"the query {what}": ("GET", {"query": query}) for what, query in queries.items()}
    headers: dict[str, tuple[str, dict[str, Any]]] = {
        f"{method}, {name}: {label}": (method, {"headers": {name.encode(): text}})
        for method in ("GET", "POST")
        for name in _HEADERS
        for label, text in TEXTS.items()
    }
    paths = [route.path.replace("{name}", "inspector.css") for route in fuzzed.routes]
    calls = [(path, what) for path in [*paths, "", "*", "cases", "//cases", "http://127.0.0.1/cases"] for what in odd]
    calls += [(path, what) for path in ("/cases", "/do/pin", "/enter", "/start") for what in headers]
    odd |= headers
    found: dict[str, str] = {}
    for path, what in some(calls, 400, "odd"):
        method, options = odd[what]
        if wrong := _wrong(
            lambda path=path, method=method, options=options: fuzzed.client.ask(method, path, **options), method
        ):
            found[f"{path}, {what}"] = wrong
    assert found == {}

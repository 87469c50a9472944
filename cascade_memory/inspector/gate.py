"""Checks every request before a page sees it: its host, its site of origin, its size, who sends it. See the threat model."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Collection, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from cascade_memory.errors import InvalidInput
from cascade_memory.inspector.sessions import Sessions, Visit, cookie_of, form_token
from cascade_memory.serving import VOUCH, App, Receive, Scope, Send

Headers: TypeAlias = "dict[bytes, bytes]"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_BYTES = 4_000_000  # of a form: a correction may be long, and its letters may take three bytes or more each
MAX_QUERY = 8_000  # of the part of an address after the question mark
_MAX_ENTRY = 4_000  # bytes of the form with which strangers come in
_FIELDS = 64
_PATIENCE = 20.0  # seconds for the body of a request
_FORM = b"application/x-www-form-urlencoded"
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")
VISITOR, FORM, FIELDS = "cascade_memory.visitor", "cascade_memory.form", "cascade_memory.fields"

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        b"base-uri 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_OURS = frozenset(name for name, _ in HEADERS)


class Refusal(Exception):
    """Raised if a request is refused; it has the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Gate:
    """An ASGI application that passes only permitted requests on to another one, and adds security headers to each answer.

    Args:
        app: The pages.
        hosts: The names under which a browser may ask for the pages, without ports: any other name is refused.
        sessions: Who may look; None if the host application has checked that already.
        edit: Whether anything may be changed.
        cookie: The name of the cookie.
        public: Paths that anybody may ask for.
    """

    def __init__(
        self, app: App, *, hosts: Collection[str], sessions: Sessions | None, edit: bool, cookie: str, public: Collection[str]
    ) -> None:
        self._app, self._sessions, self._edit, self._cookie = app, sessions, edit, cookie
        self._hosts = checked_hosts(hosts)
        self._public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the pages."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = {name.lower(): value for name, value in scope["headers"]}
        cookies = [value for name, value in scope["headers"] if name.lower() == b"cookie"]  # HTTP/2 may send several lines
        headers[b"cookie"] = b"; ".join(cookies)
        try:
            self._check_host(scope)
            self._check_request(scope, headers)
            answered = await self._let_in(scope, headers, receive, _hardened(send))
        except Refusal as refusal:
            await refuse(_hardened(send), refusal)
            return
        if answered is not None:
            await self._app(*answered)

    # -- before anything else ----------------------------------------------------------------------------------------

    def _check_host(self, scope: Scope) -> None:
        """Raise ``Refusal`` if the request's host name is not one of the allowed ``hosts``.

        A hostile site may let its own name lead to this address (DNS rebinding).
        """
        given = [value for name, value in scope["headers"] if name.lower() == b"host"]
        found = _HOST.fullmatch(given[0].decode("latin-1")) if len(given) == 1 else None
        if found is None or found[1].strip("[]").lower().rstrip(".") not in self._hosts:
            raise Refusal(
                421,
                "The inspector may not be asked for under this address. Use the link that it printed, or allow the "
                "name: --allow-host NAME, or app(memory, allow_hosts=[NAME]).",
            )

    def _check_request(self, scope: Scope, headers: Headers) -> None:
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refusal(405, "Only GET, HEAD and POST are answered.")
        if len(scope["query_string"]) > MAX_QUERY:
            raise Refusal(414, f"The part of an address after the question mark may have at most {MAX_QUERY:,} bytes.")
        if not scope["query_string"].isascii():
            raise Refusal(400, "An address is written in ASCII: other letters must be encoded with percent signs.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 12 or int(length) > MAX_BYTES:
            raise Refusal(413, f"A form may have at most {MAX_BYTES:,} bytes.")

    # -- who, and from where -----------------------------------------------------------------------------------------

    async def _let_in(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> tuple[Scope, Receive, Send] | None:
        path, posts = route_of(scope), scope["method"] == "POST"
        if posts:
            self._check_origin(headers, entering=path == "/enter")
        cookie = cookie_of(headers, self._cookie)
        visit: Visit | None = None
        if self._sessions is not None:
            visit = self._sessions.visit(cookie)
            if visit is None and path not in self._public:  # the page that says how to come in
                root = str(scope.get("root_path", ""))
                return {**scope, "method": "GET", "path": f"{root}/locked", VISITOR: None, FORM: ""}, receive, send
        elif cookie is None:  # a host's login has let them in; the cookie is only for the forms
            cookie = secrets.token_urlsafe(32)
            send = with_cookie(send, set_cookie(scope, self._cookie, cookie))
        if (visit is not None or self._sessions is None) and not scope.get(VOUCH, _always)():
            raise Refusal(503, "Too many pages are being made. Try again in a moment.")
        token = form_token(cookie) if cookie is not None else ""
        scope = {**scope, VISITOR: visit, FORM: token}
        if not posts:
            return scope, receive, send
        if path != "/enter" and not self._edit:
            raise Refusal(
                403, "This inspector only shows: start it with --edit, or app(memory, edit=True), to change anything."
            )
        fields = await self._fields(headers, receive, _MAX_ENTRY if path == "/enter" else MAX_BYTES)
        if path != "/enter" and not (token and hmac.compare_digest(fields.get("form", "").encode(), token.encode())):
            raise Refusal(
                403, "This form is not from a page of this visit, or is too old: go back, reload the page, try again."
            )
        return {**scope, FIELDS: fields}, receive, send

    def _check_origin(self, headers: Headers, *, entering: bool) -> None:
        """Raise ``Refusal`` if another site sent a form: browsers name that site in headers that scripts cannot change."""
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            if site != b"same-origin":
                raise Refusal(403, "Forms of other sites may not change anything here.")
            return
        origin = headers.get(b"origin")
        if entering and origin in (None, b"null"):  # plain HTTP beyond loopback: nothing is changed, and a token is needed
            return
        if origin is None or _host_in(origin) != headers.get(b"host"):
            raise Refusal(
                403,
                "Your browser does not say from which site this form comes, so it changes nothing. Over plain HTTP, browsers "
                "say it only for this machine: put HTTPS in front of the inspector.",
            )

    async def _fields(self, headers: Headers, receive: Receive, most: int) -> dict[str, str]:
        if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != _FORM:
            raise Refusal(415, "Only forms are read here.")
        try:
            body = await asyncio.wait_for(_body(receive, most), _PATIENCE)
        except asyncio.TimeoutError:
            raise Refusal(408, f"The form did not arrive within {_PATIENCE:.0f} seconds.") from None
        try:
            pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
        except ValueError:
            raise Refusal(400, "This form cannot be read.") from None
        # Browsers send the lines of a text with carriage returns.
        return {name: value.replace("\r\n", "\n") for name, value in pairs}


def _host_in(origin: bytes) -> bytes | None:
    """Return the host name and port in an origin; None if the origin is not an address."""
    try:
        return urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
    except ValueError:  # such as a bracket that is not closed
        return None


def _always() -> bool:
    return True


def checked_hosts(hosts: Collection[str]) -> frozenset[str]:
    """Check the host names under which the inspector may be asked for; return them in their normal form.

    >>> sorted(checked_hosts(["Example.org", "::1"]))
    ['::1', 'example.org']
    """
    if isinstance(hosts, str):
        raise InvalidInput(f"allow_hosts must be a collection of names, such as [{hosts!r}]")
    names = frozenset(one.strip("[]").lower().rstrip(".") for one in hosts)
    for one in names:
        if _HOST.fullmatch(f"[{one}]" if ":" in one else one) is None:
            raise InvalidInput(f"{one!r} is not the name of a host; name it without scheme and port, and without *")
    return names


def route_of(scope: Scope) -> str:
    """Return the path below the place where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def set_cookie(scope: Scope, name: str, value: str) -> bytes:
    """Return the header for a cookie that scripts cannot read, and that no request from another site carries."""
    secure = "; Secure" if scope.get("scheme") == "https" or _is_https_elsewhere(scope) else ""
    return f"{name}={value}; Path={scope.get('root_path') or '/'}; HttpOnly; SameSite=Strict{secure}".encode("latin-1")


def _is_https_elsewhere(scope: Scope) -> bool:
    """Tell whether a proxy in front speaks HTTPS: browsers send ``sec-fetch-site`` only over HTTPS and to loopback."""
    named = {name.lower(): value for name, value in scope["headers"]}
    found = _HOST.fullmatch(named.get(b"host", b"").decode("latin-1"))
    name = "" if found is None else found[1].strip("[]").lower().rstrip(".")
    return b"sec-fetch-site" in named and not (name in LOOPBACK or name.startswith("127.") or name.endswith(".localhost"))


def with_cookie(send: Send, cookie: bytes) -> Send:
    """Return a ``send`` that adds a cookie to the answer."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"set-cookie", cookie)]}
        await send(message)

    return sent


async def refuse(send: Send, refusal: Refusal) -> None:
    """Answer a request with the reason for its refusal, as plain text."""
    body = f"{refusal.reason}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _hardened(send: Send) -> Send:
    """Return a ``send`` that adds the security headers to every answer.

    It also removes headers that would let other sites read the answer.
    """

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", ()) if not _is_ours(name.lower())]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return sent


def _is_ours(name: bytes) -> bool:
    return name in _OURS or name.startswith(b"access-control-")


async def _body(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "The form did not arrive whole.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise Refusal(413, f"This form may have at most {most:,} bytes.")
        if not message.get("more_body", False):
            return b"".join(parts)

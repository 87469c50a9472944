"""Finds secrets by what stands before them: ``password=...``, ``"api_key": "..."``, headers, and addresses with a password.

The words are looked for in a lowercased copy of the text. A word alone says nothing: an assignment must follow, and a value
that looks like a secret, and not like a name, a placeholder or a piece of code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from cascade_memory.redaction import values
from cascade_memory.redaction.hints import FOREIGN, RUN, words_in
from cascade_memory.redaction.kinds import API_KEY, HEADER, PASSWORD, SECRET, TOKEN, URL_PASSWORD
from cascade_memory.redaction.values import Value

WEAK = (PASSWORD, API_KEY, TOKEN, SECRET, HEADER, URL_PASSWORD)  # another form that fits says more than these

_QUOTES = "(?:[\"'`\\\\\u201c\u201d\u300c\u300e]|%22|%27|&quot;|&#34;){0,6}"
_IS = "[ \t]is[ \t]"
_SPACES = r"(?:[ \t+]|%20){0,8}"
_OP = f"{_QUOTES}{_SPACES}(?:=>|:=|={{1,2}}|[:\uff1a]|%3d|%3a){_SPACES}"
_THEN = f"(?P<op>{_OP})(?P<quotes>{_QUOTES})"
_OR_IS = f"(?P<op>{_OP}|{_IS})(?P<quotes>{_QUOTES})"
_BEFORE_KEY = (
    r"(?:api|access|secret|private|account|auth|encryption|signing|master|client|app|application|consumer|shared|storage|"
    r"license|service|admin|session|webhook|deploy|write|read)[_\-. ]?"
)
_OF_A_KEY = re.compile(_BEFORE_KEY + r"\Z")
_LOOK_BACK = 16
_PASSWORD = "(?:pass(?:w(?:or[dt]|d)|phrase|code)|(?<!com)(?<!by)(?<!tres)(?<!sur)(?<!over)(?<!under)pass)[0-9]?"  # no compass

# By the word that each begins with. Only what follows is compared, so each word is searched for at the speed of a plain search.
_WORDS: tuple[tuple[bytes, str, re.Pattern[str]], ...] = (
    (b"pass", PASSWORD, re.compile(f"{_PASSWORD}{_OR_IS}")),
    (b"pwd", PASSWORD, re.compile(f"pwd[0-9]?{_THEN}")),
    (b"kennwort", PASSWORD, re.compile(f"kennwort{_THEN}")),
    (b"contrase", PASSWORD, re.compile(f"contrase(?:ñ|n)a{_THEN}")),
    (b"secret", SECRET, re.compile(f"secret{_THEN}")),
    (b"token", TOKEN, re.compile(f"token{_THEN}")),
    (b"key", API_KEY, re.compile(f"key{_THEN}")),
)
_FOREIGN_FORM = re.compile(f"(?:{'|'.join(FOREIGN)}){_THEN}")

_NAME_OF_SECRET = re.compile(
    rf"(?:(?P<password>{_PASSWORD}|pwd[0-9]?|kennwort|{'|'.join(FOREIGN)})|(?P<token>token)"
    rf"|(?P<secret>secret)|(?:{_BEFORE_KEY})key)\Z"
)

_VALUE_OF_HEADER = r"[^\s\"'\\,;<>{}\[\]]{6,}"
_SCHEMES = r"(?:bearer|basic|token|apikey|api-key|negotiate|digest|hmac|aws4-hmac-sha256)(?:[ \t]{1,4}|%20|\+)"
_AUTHORIZATION = re.compile(f"authorization{_THEN}(?P<scheme>{_SCHEMES})?(?P<value>{_VALUE_OF_HEADER})")
_BEARER = re.compile(r"bearer(?:[ \t]{1,4}|%20)(?P<value>[a-z0-9._~+/=%-]{20,})")
_FLAG = re.compile(
    r"--[a-z0-9-]{0,24}?(?:password|passwd|passphrase|pass|token|api-?key|secret-?key|access-?key|secret)[ ][\"']?"
    r"(?P<value>[^\s\"']{4,})"
)
_NETRC = re.compile(r"login[ \t\n]{1,8}\S{1,128}[ \t\n]{1,8}password[ \t\n]{1,8}(?P<value>\S+)")
_ADDRESS = (
    ("://", re.compile(r"://[^\s/:@\"'\\<>\[\]]{0,128}:(?P<value>[^\s/\"'\\<>\[\]{}()?#]{1,256})@")),
    (r":\/\/", re.compile(r":\\/\\/[^\s/:@\"'\\<>\[\]]{0,128}:(?P<value>[^\s/\"'\\<>\[\]{}()?#]{1,256})@")),
    (
        "%3a",
        re.compile(
            r"%3a(?:%2f%2f|//)[a-z0-9._~-]{0,128}(?:%3a|:)(?P<value>(?:[a-z0-9._~!*-]|%(?!40|2f|3a)[0-9a-f]{2}){1,256})(?:%40|@)"
        ),
    ),
)


def find(text: str, low: str, words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, kind) of what is assigned to words that announce secrets, and of passwords in addresses."""
    reader = values.Reader(text)
    for word, kind, pattern in _WORDS:
        if word.decode() in words:
            yield from _assigned(text, low, pattern, kind, reader)
    if "foreign" in words:
        yield from _assigned(text, text, _FOREIGN_FORM, PASSWORD, reader)
    if "authorization" in words or "bearer" in words:
        yield from _headers(text, low)
    if "pass" in words and "login" in low:
        yield from _spans(text, _NETRC.finditer(low), PASSWORD)
    if "--" in words:
        yield from _spans(text, _FLAG.finditer(low), PASSWORD)
    if "@" in words:
        for literal, pattern in _ADDRESS:
            if literal in low:
                yield from _spans(text, pattern.finditer(low), URL_PASSWORD)


def may_name_secret(name: str) -> bool:
    """Say whether a name announces a secret, or may hold one."""
    return len(name) >= RUN or _announces(name)


@functools.lru_cache(maxsize=1024)
def _announces(name: str) -> bool:
    low = name.lower()
    return _NAME_OF_SECRET.search(low) is not None or bool(words_in(low.encode("utf-8", "replace"), has_run=False))


def kind_of_value(name: str, value: str) -> str | None:
    """Return the kind of secret that a value is because of its name, in metadata or in the arguments of a tool; else None.

    >>> kind_of_value("dbPassword", "correct horse battery"), kind_of_value("max_tokens", "1000")
    ('password', None)
    """
    named = _NAME_OF_SECRET.search(name.lower())
    if named is None or not value:
        return None
    given = Value(0, len(value), value[: values.LOOKED_AT], quoted=True, tight=True, spoken=False, called=False)
    if (word := named["password"]) is not None:
        # A field of this name holds a password, whatever it looks like. "pass" alone may also say that a test has passed.
        is_one = values.is_password(given, bare=True, shouted=False) if word == "pass" else values.is_for_a_password(given)
        return PASSWORD if is_one else None
    kind = TOKEN if named["token"] else SECRET if named["secret"] else API_KEY
    return kind if values.is_key(given) else None


def _assigned(
    text: str, low: str, pattern: re.Pattern[str], kind: str, reader: values.Reader
) -> Iterator[tuple[int, int, str]]:
    done = 0
    for found in pattern.finditer(low):
        if found.start() < done or values.in_placeholder(text, found.start()):
            continue
        if kind == API_KEY and not _OF_A_KEY.search(low, max(0, found.start() - _LOOK_BACK), found.start()):
            continue
        shouted = text[found.start() : found.start("op")].isupper()
        value = reader.read(found.end(), found["quotes"], found["op"], shouted=shouted)
        if value is not None and _is_secret(found, kind, value, shouted=shouted):
            done = value.end
            yield value.start, value.end, kind


def _is_secret(found: re.Match[str], kind: str, value: Value, *, shouted: bool) -> bool:
    if kind != PASSWORD:
        return values.is_key(value)
    name = found.group()[: found.start("op") - found.start()]
    return values.is_password(value, bare=name == "pass", shouted=shouted)


def _headers(text: str, low: str) -> Iterator[tuple[int, int, str]]:
    for found in _AUTHORIZATION.finditer(low):
        value = text[found.start("value") : found.end("value")]
        if values.is_free(value) and (found["scheme"] is not None or values.is_mixed(value)) and len(value) >= 6:
            yield found.start("value"), found.end("value"), HEADER
    for found in _BEARER.finditer(low):
        if values.is_mixed(text[found.start("value") : found.end("value")]):
            yield found.start("value"), found.end("value"), HEADER


def _spans(text: str, found: Iterator[re.Match[str]], kind: str) -> Iterator[tuple[int, int, str]]:
    for one in found:
        start, end = one.span("value")
        if values.is_free(text[start:end]):
            yield start, end, kind

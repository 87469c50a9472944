"""Finds secrets by what stands before them: ``password=...``, ``"api_key": "..."``, headers, and addresses with a password.

The words are looked for in a lowercased copy of the text. A word alone says nothing: an assignment must follow, and a value
that looks like a secret, and not like a name, a placeholder or a piece of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cascade_memory.redaction import commands, declared, values
from cascade_memory.redaction.hints import BEFORE_KEY, FOREIGN, PASS, PERCENT
from cascade_memory.redaction.kinds import API_KEY, HEADER, PASSWORD, PASSWORD_HASH, SECRET, TOKEN, URL_PASSWORD
from cascade_memory.redaction.values import QUOTE, Value

# Of an escape such as \\u0022 only what follows its backslashes: those are read one by one, so there is one way to read them.
# JSON in JSON in JSON has 7 backslashes before a quotation mark, and once more within JSON 15.
_QUOTES = f"(?:{QUOTE}){{0,40}}"
_ESCAPE = r"\\\\{0,15}"  # begins with a letter of its own: that is searched for faster
_SPACE = "[ \t\u00a0\u00ad\u2000-\u200f\u202f\u2060\u3000\ufeff]"  # also those that nobody sees
_IS = f"{_SPACE}{{1,2}}is{_SPACE}{{1,2}}"
_SPACES = rf"(?:{_SPACE}|\+|{PERCENT}20){{0,8}}"
_SIGN = rf"(?:=>|:=|={{1,2}}|[:\uff1a]|{PERCENT}3[ad]|\\{{0,16}}(?<=\\)(?:(?:u00|x)3[ad]|uff1a))"
_OP = f"{_QUOTES}{_SPACES}{_SIGN}{_SPACES}"
_AFTER = f'(?P<quotes>(?:[bfrul]{{1,2}}(?=[\\\\"\'])|[@$](?="))?{_QUOTES})'  # b'...' is Python's way to write bytes, and so on
_THEN = f"(?P<op>{declared.OP}|{_OP}){_AFTER}"
_OR_LESS = f"(?P<op>{declared.OP}|{_OP}|{_IS}|{declared.LOOSE}|{declared.SPACE}){_AFTER}"
_ESCAPED = ["".join(f"{_ESCAPE}u{ord(one):04x}" for one in word) for word in FOREIGN]
_OF_A_KEY = re.compile(BEFORE_KEY + r"\Z")
_LOOK_BACK = 16

# By the word that each begins with. Only what follows is compared, so each word is searched for at the speed of a plain search.
_WORDS: tuple[tuple[bytes, str, re.Pattern[str]], ...] = (
    (b"pass", PASSWORD, re.compile(f"{PASS}{_OR_LESS}")),
    (b"pwd", PASSWORD, re.compile(f"pwd[0-9]?{_THEN}")),
    (b"kennwort", PASSWORD, re.compile(f"kennwort{_THEN}")),
    (b"contrase", PASSWORD, re.compile(f"contrase(?:ñ|n|{_ESCAPE}u00f1)a{_THEN}")),
    (b"secret", SECRET, re.compile(f"secret{_THEN}")),
    (b"token", TOKEN, re.compile(f"token{_THEN}")),
    (b"key", API_KEY, re.compile(f"key{_THEN}")),
)
_FOREIGN_FORM = re.compile(f"(?:{'|'.join([*FOREIGN, *_ESCAPED])}){_THEN}")

_VALUE_OF_HEADER = r"[^\s\"'\\,;<>{}\[\]]{6,}"
_SCHEMES = r"(?:bearer|basic|token|apikey|api-key|negotiate|digest|hmac|aws4-hmac-sha256)(?:[ \t]{1,4}|%(?:25){0,3}20|\+)"
_AUTHORIZATION = re.compile(f"authorization{_THEN}(?P<scheme>{_SCHEMES})?(?P<value>{_VALUE_OF_HEADER})")
_BEARER = re.compile(r"bearer(?:[ \t]{1,4}|%(?:25){0,3}20)(?P<value>[a-z0-9._~+/=%-]{20,})")
# The pairs of a cookie, or a dictionary of them, to the end of the line or of the text in quotes.
_COOKIE = re.compile(
    rf"cookies?(?:{_OP}|{_SPACE}){_QUOTES}"
    r"(?P<pairs>\{[^{}\n]{0,4000}|[a-z0-9_.%-]{1,64}(?:=|%3d)[^\"'`\\<>{}\n]{0,4000})"
)
_PAIR = re.compile(r"(?:=|%3[dD]|[\"'\\]:[ ]?[\"'\\]{1,16})(?P<value>[^\s\"'\\;,=<>{}\[\]][^\s\"'\\;,<>{}\[\]]{7,})")
_FLAG = re.compile(
    r"--[a-z0-9-]{0,24}?(?:password|passwd|passphrase|pass|token|api-?key|secret-?key|access-?key|secret)[ ][\"']?"
    r"(?P<value>[^\s\"']{4,})"
)
_NETRC = re.compile(r"login[ \t\n]{1,8}\S{1,128}[ \t\n]{1,8}password[ \t\n]{1,8}(?P<value>\S+)")
# As in /etc/shadow and .htpasswd.
_DOLLAR = rf"(?:\$|{PERCENT}24)"
_HASH = re.compile(
    rf"(?::|{PERCENT}3[Aa])(?P<value>{_DOLLAR}(?:[1567y]|2[abxy]?|apr1|argon2(?:id?|d)){_DOLLAR}"
    rf"(?:[A-Za-z0-9./$=,+_-]|%(?!(?:25){{0,3}}3[Aa])){{20,}})"
)
_ADDRESS = (
    ("thin:", re.compile(r"thin:[a-z0-9_.-]{1,128}/(?P<value>[^\s/@\"'\\<>(){}]{1,256})@")),  # of Oracle
    ("://", re.compile(r"://[^\s/:@\"'\\<>\[\]]{0,128}:(?P<value>[^\s/\"'\\<>\[\]{}()?#]{1,256})@")),
    (":\\", re.compile(r":\\{1,16}/\\{1,16}/[^\s/:@\"'\\<>\[\]]{0,128}:(?P<value>[^\s/\"'\\<>\[\]{}()?#]{1,256})@")),
    (
        "%",  # what is encoded once more belongs to the password
        re.compile(
            rf"(?P<percent>{PERCENT})3a(?:(?P=percent)2f(?P=percent)2f|//)[a-z0-9._~-]{{0,128}}(?:(?P=percent)3a|:)"
            r"(?P<value>(?:(?!(?P=percent)(?:40|2f|3a))[a-z0-9._~!*%-]){1,256})(?:(?P=percent)40|@)"
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
        yield from _assigned(text, low, _FOREIGN_FORM, PASSWORD, reader)
    yield from _headers(text, low, words)
    yield from _by_form(text, low, words)


def _by_form(text: str, low: str, words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    if "command" in words:
        yield from commands.find(text, low)
    if "pass" in words and "login" in low:
        yield from _spans(text, _NETRC.finditer(low), PASSWORD)
    if "--" in words:
        yield from _spans(text, _FLAG.finditer(low), PASSWORD)
    if "hash" in words:
        yield from ((*one.span("value"), PASSWORD_HASH) for one in _HASH.finditer(text))
    if "@" in words:
        for literal, pattern in _ADDRESS:
            if literal in low:
                yield from _spans(text, pattern.finditer(low), URL_PASSWORD)


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
        if declared.is_markup(found["op"]):
            value = declared.in_markup(text, low, found)
        else:
            value = reader.read(found.end(), found["quotes"], found["op"], shouted=shouted)
        if value is not None and _is_secret(low, found, kind, value, shouted=shouted):
            done = value.end
            yield value.start, value.end, kind


def _is_secret(low: str, found: re.Match[str], kind: str, value: Value, *, shouted: bool) -> bool:
    if kind != PASSWORD:
        return values.is_key(value)
    name = found.group()[: found.start("op") - found.start()]
    if not value.spoken and declared.is_loose(found["op"]):
        if name == "pass":
            return False
        set_here = shouted and found["op"].isspace() and declared.is_set(low, found.start())
        return values.is_password(value._replace(tight=True), bare=False, shouted=True) if set_here else values.is_strong(value)
    return values.is_password(value, bare=name == "pass", shouted=shouted)


def _headers(text: str, low: str, words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    if "cookie" in words:
        yield from _cookies(text, low)
    if "authorization" in words:
        for found in _AUTHORIZATION.finditer(low):
            value = text[found.start("value") : found.end("value")]
            if values.is_free(value) and (found["scheme"] is not None or values.is_mixed(value)) and len(value) >= 6:
                yield found.start("value"), found.end("value"), HEADER
    if "bearer" in words or ("authorization" in words and "bearer" in low):
        at = low.find("bearer")
        while at >= 0:
            found = _BEARER.match(low, at)
            if found is not None and values.is_mixed(text[found.start("value") : found.end("value")]):
                yield found.start("value"), found.end("value"), HEADER
            at = low.find("bearer", at + 6 if found is None else found.end())


def _cookies(text: str, low: str) -> Iterator[tuple[int, int, str]]:
    done = 0
    for found in _COOKIE.finditer(low):
        start, done = max(done, found.start("pairs")), found.end()
        for one in _PAIR.finditer(text, start, done):
            if values.is_mixed(one["value"]) and values.is_machine_made(one["value"]):
                yield one.start("value"), one.end("value"), HEADER


def _spans(text: str, found: Iterator[re.Match[str]], kind: str) -> Iterator[tuple[int, int, str]]:
    for one in found:
        start, end = one.span("value")
        if values.is_free(text[start:end]):
            yield start, end, kind

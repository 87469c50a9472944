"""Judges the values of fields, in metadata and in the arguments of tools: the name of a field says what it holds."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from cascade_memory.redaction import values
from cascade_memory.redaction.hints import BEFORE_KEY, FOREIGN, PASS, RUN, words_in
from cascade_memory.redaction.kinds import API_KEY, PASSWORD, SECRET, TOKEN
from cascade_memory.redaction.values import KNOWN_WORDS, Value

_NAME_OF_SECRET = re.compile(
    rf"(?:(?P<password>pass(?:w(?:or[dt]|d)|phrase|code)s|{PASS}|pwd[0-9]?|kennwort|contrase(?:ñ|n)a|{'|'.join(FOREIGN)})"
    rf"|(?P<token>token)|(?P<secret>secrets?)|(?:{BEFORE_KEY})keys?)\Z"
)
_HEADER = re.compile(r"(?:(?P<authorization>authorization)|cookies?)(?P<within>: .*)?\Z", re.DOTALL)
_AROUND_NAMES = " \t:=\uff1a"

_LOOKED_AT = 4_096  # characters of a value
_PLACEHOLDER = 100  # characters of one
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_MARK = re.compile(r"\[secret:[a-z0-9-]{2,40}#[0-9]{1,6}\]")
# Names in placeholders have words, and perhaps a number at the end of one. A password has its digits anywhere.
_WORDS = r"[ ._-]*[^\W\d_]+[0-9]{0,2}(?:[ ._:-]+[^\W\d_]+[0-9]{0,2})*[ ._-]*"
_CAPITALS = r"_*[A-Z]+[0-9]{0,2}(?:_+[A-Z]+[0-9]{0,2})*_*"
_YOURS = (
    r"(?:enter|insert|put|your|my|the)[_\- ]?(?:[a-z]+[_\- ]){0,4}(?:password|passphrase|secret|token|key|own|value)"
    r"(?:[_\- ]here)?"
)
_STANDS_FOR = re.compile(
    rf"\$(?:env:)?{_CAPITALS}|\$\{{{{?{_WORDS}\}}}}?|<{_WORDS}>|\{{{_WORDS}\}}|\{{\{{{_WORDS}\}}\}}|%\({_WORDS}\)s|%[sdr]|%{_WORDS}%"
    rf"|(?i:\$?(?:{KNOWN_WORDS})|[\[(](?:{KNOWN_WORDS}|{_YOURS})[\])]|{_YOURS})"
)
_FILE = re.compile(r"(?:[A-Za-z]:[\\/]|~[\\/]|\.{1,2}[\\/]|[\\/]+[\w.-]+[\\/])(?:[\w.@/\\-]+(?: [\w.@/\\-]+)*)?")
_ADDRESS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[\w.+-]*:?@)?[\w.-]*(?::[0-9]+)?(?:[/?#][\w.,:/%?=&#~+-]*)?|arn:aws[\w:/.-]*"
)
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key)[ \t]{1,4}", re.IGNORECASE)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NO_PATH = re.compile(r"[^\w\s.,:/@'~-]")  # signs that are rare in paths and in words
_KEY, _PASSED = 12, 6  # characters of a key, and of a password in a field called "pass"
_LIKE_A_PATH = re.compile(r"[/@]|~/|\.{1,2}/")
_LIKE_AN_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\\/]|arn:")  # what is secret in one is found as in a text


def may_name_secret(name: str) -> bool:
    """Say whether a name announces a secret, or may hold one."""
    return len(name) >= RUN or _announces(name)


@functools.lru_cache(maxsize=1024)
def _announces(name: str) -> bool:
    if _named(name) is not None or header_of(name):
        return True
    return bool(words_in(name.lower().encode("utf-8", "replace"), has_run=False))


def _named(name: str) -> re.Match[str] | None:
    return _NAME_OF_SECRET.search(_plain(name))


def _plain(name: str) -> str:
    return _INVISIBLE.sub("", name.lower()).strip(_AROUND_NAMES)


def header_of(name: str, value: str = "") -> str:
    """Return what to put before a value to judge it as a header in a text, if its name is that of a header; else an empty text.

    >>> header_of("Set-Cookie", "a=b"), header_of("cookies: a", "b"), header_of("city", "b")
    ('cookie: ', 'cookie: sid=', '')
    """
    found = _HEADER.search(_plain(name))
    if found is None:
        return ""
    if found["authorization"]:
        return "authorization: "
    return "cookie: sid=" if found["within"] or "=" not in value else "cookie: "


_NAMES, _VALUES = ("name", "key", "field", "variable", "id"), ("value", "val", "default", "content")


def named_beside(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of values whose names are stored in a field beside them, as in a list of variables or of headers.

    >>> named_beside({"name": "DB_PASSWORD", "value": "blue"}), named_beside({"name": "ann", "age": 7})
    ({'value': 'DB_PASSWORD'}, {})
    """
    values_of = [key for key in fields if isinstance(key, str) and key.lower() in _VALUES]  # pyright: ignore[reportUnnecessaryIsInstance]
    if not values_of:
        return {}
    names = [one for key, one in fields.items() if str(key).lower() in _NAMES and isinstance(one, str)]
    return dict.fromkeys(values_of, names[0]) if names else {}


def kind_of_value(name: str, value: str) -> str | None:
    """Return the kind of secret that a value is because of its name, in metadata or in the arguments of a tool; else None.

    >>> kind_of_value("dbPassword", "correct horse battery"), kind_of_value("max_tokens", "1000")
    ('password', None)
    """
    named = _named(name)
    if named is None:
        return None
    text = _INVISIBLE.sub("", _MARK.sub("", value[:_LOOKED_AT])).strip()
    if not text or _stands_for(text):
        return None
    if (word := named["password"]) is not None:
        # A field of this name holds a password, whatever it looks like. "pass" alone may also say that a test has passed.
        return PASSWORD if not _is_place(text) and (word != "pass" or _not_passed(text)) else None
    kind = TOKEN if named["token"] else SECRET if named["secret"] else API_KEY
    return kind if _is_key(text) else None


def _stands_for(text: str) -> bool:
    """Say whether a text is a placeholder from its beginning to its end: ``$ecret1`` only begins like one."""
    return len(text) <= _PLACEHOLDER and _STANDS_FOR.fullmatch(text) is not None


def _is_place(text: str) -> bool:
    """Say whether a whole text is a path or an address, which tells where a password is kept, and seems to hold none itself."""
    return (_FILE.fullmatch(text) or _ADDRESS.fullmatch(text)) is not None and not values.is_machine_made(text)


def _not_passed(text: str) -> bool:
    given = Value(0, len(text), text[: values.LOOKED_AT], quoted=True, tight=True, spoken=False, called=False)
    return values.is_password(given, bare=True, shouted=False) or (len(text) >= _PASSED and values.is_mixed(text))


def _is_key(text: str) -> bool:
    """Say whether a machine may have made a text. One that is like a path, or not all ASCII, must look more machine-made."""
    if (scheme := _SCHEME.match(text)) is not None:
        text = text[scheme.end() :]
    bare = _NOT_ASCII.sub("", text)
    if len(bare) < _KEY or len(text.split(None, 1)) > 1 or _LIKE_AN_ADDRESS.match(text) or _stands_for(text):
        return False
    if (_LIKE_A_PATH.match(text) or len(bare) < len(text)) and not (values.is_machine_made(bare) or _NO_PATH.search(bare)):
        return False
    return 4 * len(bare) >= 3 * len(text) and values.is_mixed(bare, whole=True)

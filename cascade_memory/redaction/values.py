"""Judges what is assigned to a word such as ``password``: a secret, or a name, a placeholder, a type or a piece of code."""

from __future__ import annotations

import re
from typing import NamedTuple

LOOKED_AT = 64  # characters of a value: enough to judge it
_MOST = 256  # characters of a password
_UNQUOTED = re.compile(r"[^\s\"'`\\,;&<>(){}\[\]|\u201c\u201d\u300d\u300f\u3000-\u3002\uff0c\uff1b]*")
_QUOTED = {one: re.compile(rf"(?:[^{one}\\\n]|\\.)*") for one in "\"'`"}
_WITHIN_QUOTED = re.compile(r"[^\"'`\\\n]*")  # the text itself stands in quotes: the next backslash ends it
_TO_SPACE = re.compile(r"[^\s\"'`]*")
_FULL = re.compile(r"[^\u201d\u300d\u300f\n]*")
_ENCODED_ENDS = re.compile(r"%(?:26|22|27|2[cC]|7[dD]|20|0[aAdD]|3[bB])|&quot;|&#34;")
_PUNCTUATION = ".,;:!?\u3002\uff0c"
_OURS = re.compile(r"secret:[a-z0-9-]{2,40}#[0-9]{1,6}\]")
_PLACEHOLDER = re.compile(r"\[(?:secret|…):")
_NOTHING = re.compile(
    r"(?i:x{3,}|\*+|\.+|-+|_+|#+|•+|\$.*|%[a-z_]+%?|<.*|\{.*|your[_\- ]?.*|my[_\- ]?(?:password|secret|token|api[_\- ]?key)|"
    r"(?:the|new|old|user|db|database)?[_\- ]?(?:password|passwd|passphrase|pass|pwd|secret|token|api[_\-]?key|key)[0-9]?|"
    r"none|null|nil|true|false|yes|no|string|str|text|value|number|int|required|optional|empty|undefined|hidden|redacted|masked|"
    r"removed|filtered|secret:[a-z0-9-]{2,40}#[0-9]{1,6}|n/?a|todo|tbd|example|changeit)"
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+")
_DIGIT, _LETTER, _SIGN = re.compile("[0-9]"), re.compile(r"[^\W\d_]"), re.compile(r"[^\w\s./:-]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_]*")
_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/|\./|~/|[A-Za-z]:[\\/]|arn:|@")
_FILE = re.compile(r"(?:[A-Za-z]:[\\/]|~/|\.{1,2}/|/[\w.-]+/)")
_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|arn:)")


class Value(NamedTuple):
    """What is assigned: where it stands, and what stands around it."""

    start: int
    end: int
    text: str  # its beginning, enough to judge it
    quoted: bool
    tight: bool  # an equals sign without spaces: as in a configuration, an address or a command
    spoken: bool  # "is": in a sentence
    called: bool  # a bracket follows: it is code


class Reader:
    """Reads values, and remembers where the last ones ended: each character is read once for each way of ending."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[str, tuple[int, int]] = {}  # way of ending -> (from, to)

    def read(self, start: int, quotes: str, op: str, *, shouted: bool = False) -> Value | None:
        """Return the value at a place; None if there is none. ``shouted``: its name is in capitals, like a variable's."""
        text = self._text
        quote = next((one for one in quotes if one in _QUOTED or one in "\u201c\u300c\u300e"), "")
        tight = "=" in op and " " not in op
        if quote in _QUOTED and "\\" in quotes:
            end = self._end(start, "within", _WITHIN_QUOTED)
        elif quote:
            end = self._end(start, quote, _QUOTED.get(quote, _FULL))
        elif shouted and tight:
            end = self._end(start, "space", _TO_SPACE)
        else:
            end = self._end(start, "", _UNQUOTED)
        if "%" in op or quotes.startswith(("%", "&")):
            cut = _ENCODED_ENDS.search(text, start, min(end, start + LOOKED_AT))
            end = end if cut is None else cut.start()
        if not quote:
            while end > start and text[end - 1] in _PUNCTUATION:
                end -= 1
        if end <= start:
            return None
        return Value(
            start,
            end,
            text[start : min(end, start + LOOKED_AT)],
            quoted=bool(quote) or quotes.startswith(("%2", "&")),
            tight=tight or "%" in op,
            spoken="is" in op,
            called=text[end : end + 1] in ("(", "["),
        )

    def _end(self, start: int, way: str, pattern: re.Pattern[str]) -> int:
        known = self._ends.get(way)
        if known is not None and known[0] <= start <= known[1]:
            return known[1]
        found = pattern.match(self._text, start)
        end = start if found is None else found.end()
        self._ends[way] = (start, end)
        return end


def in_placeholder(text: str, start: int) -> bool:
    """Say whether a word stands in a placeholder of ours; whoever only writes ``[secret: ...]`` hides nothing by that."""
    return text[start - 1 : start] == "[" and _OURS.match(text, start) is not None


def is_free(value: str) -> bool:
    """Say whether a value is more than a placeholder or the name of a variable."""
    return not (value.startswith(("$", "{", "<", "[", "%(")) or _NOTHING.fullmatch(value[:LOOKED_AT]))


def is_mixed(value: str) -> bool:
    """Say whether it has a digit and a letter, and not the same few characters again and again."""
    some = value[:LOOKED_AT]
    return bool(_DIGIT.search(some) and _LETTER.search(some)) and len(set(some)) >= min(8, len(some) * 0.6)


def _is_code(value: Value) -> bool:
    text = value.text
    return value.called or (not value.quoted and (_CODE.fullmatch(text) is not None or "://" in text[:16]))


def is_password(value: Value, *, bare: bool, shouted: bool) -> bool:
    """Say whether this may be a password. ``bare``: the word was only ``pass``; ``shouted``: it was in capital letters."""
    text = value.text
    if not 4 <= value.end - value.start <= _MOST or not is_free(text) or _is_code(value):
        return False
    digit, letter, sign = bool(_DIGIT.search(text)), bool(_LETTER.search(text)), bool(_SIGN.search(text))
    if value.spoken or not (value.tight or value.quoted):
        return letter and (digit or sign) and len(text) >= 6 and _PATH.match(text) is None
    if " " in text:
        return digit and letter and len(text) <= 64
    if bare and not value.quoted:
        return digit and letter and len(text) >= 6
    if _NAME.fullmatch(text) and not value.quoted:
        return shouted and len(text) >= 6
    return _PATH.match(text) is None and (len(text) >= 6 or (digit and letter))


def is_for_a_password(value: Value) -> bool:
    """Say whether the value of a field for a password is one, and not a placeholder, or where the password is kept."""
    return is_free(value.text) and _FILE.match(value.text) is None and _ADDRESS.match(value.text) is None


def is_key(value: Value) -> bool:
    """Say whether this may be a key, a token or another secret that a machine has made."""
    text, length = value.text, value.end - value.start
    least = 12 if value.tight or value.quoted else 16
    if length < least or " " in text or not is_free(text) or _is_code(value):
        return False
    return is_mixed(text) and _PATH.match(text) is None and text.isascii()

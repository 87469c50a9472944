"""Judges what is assigned to a word such as ``password``: a secret, or a name, a placeholder, a type or a piece of code.

A value ends at the same quotation mark with which it began, encoded in the same way. Quotation marks are encoded when a text
is written into another one. A password may contain quotation marks, too. These are encoded once more than the ones around the
password, which tells them apart.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from cascade_memory.redaction.hints import PERCENT

HTML_QUOTE = "&(?:amp;){0,3}(?:quot|apos|#0?3[49]|#x2[27]);"
QUOTE = rf"[\"'`\\\u201c\u201d\u300c\u300e]|{PERCENT}(?:2[27]|5c)|(?<=\\)(?:u00|x)2[27]|{HTML_QUOTE}"  # or a part of one
_OPENING = re.compile(
    r"(?P<backslashes>\\*)(?:(?P<mark>[\"'`])|(?:u00|x)(?P<escaped>2[27]))|(?P<wide>[\u201c\u300c\u300e])"
    r"|(?P<before>(?:%(?:25)*5c)*)%(?P<level>(?:25)*)(?P<percent>2[27])|(?P<slashed>\\*)&(?:amp;)*(?P<html>quot|apos|#0?3[49]|#x2[27]);"
)
_LEVEL = re.compile("%((?:25)*)")
_MARKS = {"22": '"', "27": "'", "60": "`"}
_CODES_OF_MARKS = {mark: code for code, mark in _MARKS.items()}
_HTML_NAMES = {"22": "(?:amp;){0,3}(?:quot|#0?34|#x22);", "27": "(?:amp;){0,3}(?:apos|#0?39|#x27);"}
_FULL = re.compile(r"[^\u201d\u300d\u300f\n]*")
_TO_SPACE = re.compile(r"[^\s\"'`]*")
_STOPS = r"\s\"'`\\,;&<>(){}\[\]|\u201c\u201d\u300d\u300f\u3000-\u3002\uff0c\uff1b"
_UNQUOTED = re.compile(rf"[^{_STOPS}]*")
LINE = re.compile(r"[^\n]*")
LOOKED_AT = 64  # characters of a value: enough to judge it
_MOST = 256  # characters of a password
_ENCODED, _SPACE = re.compile(r"%|(?:u00|x)3"), re.compile(r"\s")
_SPOKEN = re.compile(r"[\W_]*is[\W_]*")
_PUNCTUATION = ".,;:!?\u3002\uff0c"
_OURS = re.compile(r"secret:[a-z0-9-]{2,40}#[0-9]{1,6}\]")
_PLACEHOLDER = re.compile(r"\[(?:secret|…):")
KNOWN_WORDS = (
    r"x{3,}|\*+|\.+|-+|_+|#+|•+|my[_\- ]?(?:password|secret|token|api[_\- ]?key)|"
    r"(?:the|new|old|user|db|database)?[_\- ]?(?:password|passwd|passphrase|pass|pwd|secret|token|api[_\-]?key|key)[0-9]?|"
    r"none|null|nil|true|false|yes|no|string|str|text|value|number|int|required|optional|empty|undefined|hidden|redacted|masked|"
    r"removed|filtered|n/?a|todo|tbd|example|changeit"
)
_NOTHING = re.compile(rf"(?i:{KNOWN_WORDS}|secret:[a-z0-9-]{{2,40}}#[0-9]{{1,6}}|\$.*|%[a-z_]+%?|<.*|\{{.*|your[_\- ]?.*)")
_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+")
_DIGIT, _LETTER, _SIGN = re.compile("[0-9]"), re.compile(r"[^\W\d_]"), re.compile(r"[^\w\s./:-]")
_UPPER = re.compile("[A-Z]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_]*")
_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/|\./|~/|[A-Za-z]:[\\/]|arn:|@")
_WORD, _DIGIT_THEN_LETTER = re.compile("[A-Za-z0-9]{8,}"), re.compile("[0-9][A-Za-z]")


def is_block(op: str) -> bool:
    """Say whether a value begins on the next line and takes all of it, as in YAML and in a text in three quotes.

    ``op`` is the text between the name and the value.
    """
    return "\n" in op and any(sign in op for sign in ("|", ">", '"""', "'''"))


@functools.lru_cache(maxsize=256)
def way_to_end(quotes: str, op: str, *, to_space: bool) -> tuple[re.Pattern[str], bool]:
    """Return the pattern that a value matches up to its end, and whether the value is quoted, judged by what stands before it.

    ``quotes`` are the quotation marks before the value, and ``op`` is the text between the name and them.
    """
    opening = _OPENING.search(quotes)
    if opening is None:
        if (level := _LEVEL.search(op)) is not None:
            return _encoded(len(level[1]) // 2), False
        return (_TO_SPACE if to_space else _UNQUOTED), False
    if opening["wide"]:
        return _FULL, True
    if opening["html"]:
        return _in_html("22" if opening["html"].endswith(("quot", "34", "x22")) else "27", bool(opening["slashed"])), True
    if opening["percent"]:
        return _in_percent(len(opening["level"]) // 2, opening["percent"], bool(opening["before"])), True
    return _in_quotes(len(opening["backslashes"]), opening["escaped"] or _CODES_OF_MARKS[opening["mark"]]), True


@functools.cache
def _in_quotes(backslashes: int, code: str) -> re.Pattern[str]:
    r"""Return the pattern of a quoted value: in ``\"...\"``, a quote is written as ``\\\"``, a backslash as ``\\\\``, etc."""
    mark, n = _MARKS[code], backslashes
    if not n:
        return re.compile(rf"(?:[^{mark}\\\n]|\\.)*")
    return re.compile(
        rf"(?:[^{mark}\\\n]+|\\{{{2 * n + 2}}}|\\{{{2 * n + 1}}}(?:{mark}|(?:u00|x){code})|\\{{{n + 1}}}[a-z/]"
        rf"|\\{{1,{n}}}(?:/|(?:u00|x)(?!{code})[0-9a-fA-F]{{2}}))*"
    )


@functools.cache
def _in_percent(level: int, code: str, backslash: bool) -> re.Pattern[str]:
    percent = f"%(?:25){{{level}}}"
    escape = "" if backslash else rf"|{percent}5[cC]{percent}(?:5[cC]|2[27])"
    return re.compile(rf"(?:[^\s%{_MARKS[code]}]+{escape}|%(?!(?:25){{{level}}}(?:{code}|0[aAdD]|5[cC](?!u00))))*")


@functools.cache
def _in_html(code: str, backslash: bool) -> re.Pattern[str]:
    name = _HTML_NAMES[code]
    escape = rf"\\(?!\\{{0,16}}&{name})" if backslash else r"\\."
    return re.compile(rf"(?:[^{_MARKS[code]}<>&\\\n]+|{escape}|&(?!{name}))*")


@functools.cache
def _encoded(level: int) -> re.Pattern[str]:
    ends = "2[0267cC]|7[dD]|0[aAdD]|3[bB]|5[cC]"
    return re.compile(rf"(?:[^{_STOPS}%]+|%(?!(?:25){{{level}}}(?:{ends})))*")


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
        self._ends: dict[re.Pattern[str], tuple[int, int]] = {}  # way of ending -> (from, to)

    def read(self, start: int, quotes: str, op: str, *, shouted: bool = False) -> Value | None:
        """Return the value that begins at ``start``, or None if there is none.

        ``op`` is the text between the name and the value, such as " = ", and ``quotes`` are the opening quotes, if any. With
        ``shouted``, the name is written in capitals, as that of a variable of the environment.
        """
        text = self._text
        tight = "=" in op and _SPACE.search(op) is None
        if not quotes and is_block(op):
            way, quoted = LINE, True
        else:
            way, quoted = way_to_end(quotes, op, to_space=shouted and tight)
        end = self._end(start, way)
        if not quoted:
            while end > start and text[end - 1] in _PUNCTUATION:
                end -= 1
        if end <= start:
            return None
        return Value(
            start,
            end,
            text[start : min(end, start + LOOKED_AT)],
            quoted=quoted,
            tight=tight or _ENCODED.search(op) is not None,
            spoken=_SPOKEN.fullmatch(op) is not None,
            called=text[end : end + 1] in ("(", "["),
        )

    def _end(self, start: int, way: re.Pattern[str]) -> int:
        known = self._ends.get(way)
        if known is not None and known[0] <= start <= known[1]:
            return known[1]
        found = way.match(self._text, start)
        end = start if found is None else found.end()
        self._ends[way] = (start, end)
        return end


def in_placeholder(text: str, start: int) -> bool:
    """Say whether a word stands in a placeholder of ours; a text that only looks similar (``[secret: ...]``) does not count."""
    return text[start - 1 : start] == "[" and _OURS.match(text, start) is not None


def is_free(value: str) -> bool:
    """Say whether a value is more than a placeholder or the name of a variable."""
    return not (value.startswith(("$", "{", "<", "[", "%(")) or _NOTHING.fullmatch(value[:LOOKED_AT]))


def is_mixed(value: str, *, whole: bool = False) -> bool:
    """Say whether a value, or its beginning, has a digit and a letter, and not the same few characters again and again."""
    some = value if whole else value[:LOOKED_AT]
    return bool(_DIGIT.search(some) and _LETTER.search(some)) and len(set(some)) >= min(8, len(some) * 0.6)


def is_machine_made(value: str) -> bool:
    """Say whether a word in a value has a letter after a digit, as in identifiers and passwords, and seldom in names."""
    return any(_DIGIT_THEN_LETTER.search(word) for word in _WORD.findall(value))


def _is_code(value: Value) -> bool:
    text = value.text
    return value.called or (not value.quoted and (_CODE.fullmatch(text) is not None or "://" in text[:16]))


def is_password(value: Value, *, bare: bool, shouted: bool) -> bool:
    """Say whether this may be a password. ``bare``: its name was only ``pass``; ``shouted``: its name was in capitals."""
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


def is_strong(value: Value) -> bool:
    """Say whether a text in quotes looks like a password even if no sign of assignment stands between the word and it."""
    text = value.text
    mixed = _DIGIT.search(text) and _LETTER.search(text) and (_UPPER.search(text) or _SIGN.search(text))
    return bool(value.quoted and mixed) and " " not in text and is_password(value, bare=False, shouted=False)


def is_key(value: Value) -> bool:
    """Say whether this may be a key, a token or another secret that a machine has made."""
    text, length = value.text, value.end - value.start
    least = 12 if value.tight or value.quoted else 16
    if length < least or " " in text or not is_free(text) or _is_code(value):
        return False
    return is_mixed(text) and _PATH.match(text) is None and text.isascii()

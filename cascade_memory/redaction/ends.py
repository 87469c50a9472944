"""Says where a value ends: at the same quotation mark with which it began, encoded in the same way.

Quotation marks are encoded when a text is written into another one. A password may contain quotation marks, too. These are
encoded once more than the ones around the password, which tells them apart.
"""

from __future__ import annotations

import functools
import re

from cascade_memory.redaction.hints import PERCENT

HTML_QUOTE = "&(?:amp;){0,3}(?:quot|apos|#0?3[49]|#x2[27]);"
QUOTE = rf"[\"'`\\\u201c\u201d\u300c\u300e]|{PERCENT}(?:2[27]|5c)|(?<=\\)(?:u00|x)2[27]|{HTML_QUOTE}"  # or a part of one

_OPENING = re.compile(
    r"(?P<backslashes>\\*)(?:(?P<mark>[\"'`])|(?:u00|x)(?P<escaped>2[27]))|(?P<wide>[\u201c\u300c\u300e])"
    r"|(?P<before>(?:%(?:25)*5c)*)%(?P<level>(?:25)*)(?P<percent>2[27])|(?P<slashed>\\*)&(?:amp;)*(?P<html>quot|apos|#0?3[49]|#x2[27]);"
)
_LEVEL = re.compile("%((?:25)*)")
_MARKS = {"22": '"', "27": "'", "60": "`"}
_CODES = {mark: code for code, mark in _MARKS.items()}
_NAMES = {"22": "(?:amp;){0,3}(?:quot|#0?34|#x22);", "27": "(?:amp;){0,3}(?:apos|#0?39|#x27);"}
_FULL = re.compile(r"[^\u201d\u300d\u300f\n]*")
_TO_SPACE = re.compile(r"[^\s\"'`]*")
_STOPS = r"\s\"'`\\,;&<>(){}\[\]|\u201c\u201d\u300d\u300f\u3000-\u3002\uff0c\uff1b"
_UNQUOTED = re.compile(rf"[^{_STOPS}]*")
LINE = re.compile(r"[^\n]*")


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
    return _in_quotes(len(opening["backslashes"]), opening["escaped"] or _CODES[opening["mark"]]), True


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
    name = _NAMES[code]
    escape = rf"\\(?!\\{{0,16}}&{name})" if backslash else r"\\."
    return re.compile(rf"(?:[^{_MARKS[code]}<>&\\\n]+|{escape}|&(?!{name}))*")


@functools.cache
def _encoded(level: int) -> re.Pattern[str]:
    ends = "2[0267cC]|7[dD]|0[aAdD]|3[bB]|5[cC]"
    return re.compile(rf"(?:[^{_STOPS}%]+|%(?!(?:25){{{level}}}(?:{ends})))*")

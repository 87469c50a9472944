"""Recognises what may stand between a name and its value besides a plain sign of assignment.

It may be a type, an index, a field, a tag, or a line break.
"""

from __future__ import annotations

import re

from cascade_memory.redaction.values import LOOKED_AT, Value

_QUOTES = "[\"'`\\\\]{0,16}"
_TEXT = "(?=[bfru]{0,2}[\\\\\"'`])"  # a text in quotes comes next
_TYPED = rf":[ ]?[a-z_&*][a-z0-9_.&<>\[\]| ?*]{{0,40}}=[ ]?{_TEXT}"  # password: str | None = "..."
_STRING = rf"(?:string|&str)[ ]?=[ ]?{_TEXT}"  # of Go
_INDEX = rf"\][ ]{{0,4}}={{1,2}}[ ]{{0,4}}{_TEXT}"  # environ["DB_PASSWORD"] = "..."
_BESIDE = (  # {"name": "DB_PASSWORD", "value": "..."}, and variable "db_password" { default = "..." }
    rf"[ ]?[,;{{\s](?:\s{{0,24}}(?:type|sensitive)[ ]{{0,8}}=[ ]{{0,8}}[a-z\"]{{1,16}}){{0,2}}\s{{0,24}}{_QUOTES}"
    rf"(?:value|default){_QUOTES}[ ]{{0,8}}[:=][ ]{{0,8}}"
)
_BELOW = r"[ ]{0,8}(?::[ ]?[|>][+-]?[0-9]?[ \t]{0,4}|[=:][ ]?(?:\"\"\"|''')[ \t]{0,4})\r?\n[ \t]{0,40}"
_TAG = r"[\"']?(?:>|&gt;)|</key>\s{0,24}<string>"  # <password>...</password>, and the lists of macOS
# Most words are followed by something else, and nothing more is tried then.
OP = (
    rf"(?=[\s\"'`\\:=,;{{\[\]>&<])"
    rf"(?:[ ]?(?:{_TYPED}|{_STRING})|\[[0-9]{{0,4}}{_INDEX}|{_QUOTES}(?:{_INDEX}|{_BESIDE}|{_BELOW})|{_TAG})"
)
# setPassword("..."), getenv("DB_PASSWORD", "..."), PASSWORD '...' of SQL: a text in quotes that follows, and no sign between.
LOOSE = rf"{_QUOTES}[ ]{{0,2}}(?:[,(]|\|\||\?\?|or\b)?[ ]{{0,2}}(?=[\"'])"
SPACE = r"[ \t]{1,4}(?=[^\s:=])"  # ENV DB_PASSWORD ..., with nothing but a space
_NO_SIGN = re.compile(f"{LOOSE.partition('(?=')[0]}[ ]{{0,2}}|[ \\t]{{1,4}}")
_SETS = re.compile(r"(?:\benv|\bsetx|\bsetenv|\bset -g?x)[ \t]{1,4}[a-z0-9_]{0,48}\Z")

_OPENED = re.compile(r"(?:<|&lt;)[a-z0-9_:.-]{0,48}\Z")
_NAMED = re.compile(r"(?:name|key|id)=[\"'][a-z0-9_:.-]{0,48}\Z")
_TO_TAG = re.compile(r"(?P<value>[^<>\s]{4,256})\s{0,24}</")
_TO_WRITTEN_TAG = re.compile(r"(?P<value>(?:(?!&lt;)\S){4,256})\s{0,24}&lt;/")
_LOOK_BACK = 64


def is_markup(op: str) -> bool:
    """Say whether a value stands in an element of XML, judged by ``op``, the text between the name and the value."""
    return op.endswith((">", "&gt;")) and "=" not in op


def is_loose(op: str) -> bool:
    """Say whether ``op``, the text between a name and its value, has no sign of assignment."""
    return _NO_SIGN.fullmatch(op) is not None


def is_set(low: str, start: int) -> bool:
    """Say whether a command that sets a variable stands before the name that begins at ``start``."""
    return _SETS.search(low, max(0, start - _LOOK_BACK), start) is not None


def in_markup(text: str, low: str, found: re.Match[str]) -> Value | None:
    """Return the value after a tag that ends with the found word; None if there is no such tag, or no closing tag."""
    op, start = found["op"], found.end("op")
    if op[0] != "<":
        before = _NAMED if op[0] in "\"'" else _OPENED
        if before.search(low, max(0, found.start() - _LOOK_BACK), found.start()) is None:
            return None
    closed = (_TO_WRITTEN_TAG if op.endswith("&gt;") else _TO_TAG).match(text, start)
    if closed is None:
        return None
    start, end = closed.span("value")
    return Value(start, end, text[start : min(end, start + LOOKED_AT)], quoted=True, tight=True, spoken=False, called=False)

"""Finds secrets in a text, in a time that grows with its length and not faster.

Most texts hold no secret. Two quick passes over the bytes find this out: is there a run of characters that is long enough for a
token, and is there a word that announces a secret? Only what these passes find is looked at closely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cascade_memory.redaction.hints import LEAST, LONG, PERCENT, RUNS, words_in
from cascade_memory.redaction.kinds import PRIVATE_KEY, WEAK, around_runs, in_run, kind_of

_BEGIN = re.compile(rf"-----begin(?: |{PERCENT}20|\+)[a-z0-9 %+]{{0,40}}private(?: |{PERCENT}20|\+)key")
_BODY = re.compile(  # of a private key whose end is missing
    rf"-{{0,5}}(?:\\{{1,16}}(?:[nr]|u002[bBfF]|u003[dD])|{PERCENT}(?:0[AaDd]|2[BbFf]|3[Dd])|[\s\"']|[A-Za-z0-9/+=]{{20,}}"
    r"|(?:Proc-Type|DEK-Info|Comment|Version):[^\n\\]{0,80}|[A-Za-z0-9/+=]+(?=\Z|\s{0,2}\[?\.\.\.))*"
)
_DASHES, _START, _END, _CLOSING = "-----", "-----begin", "-----end", 64
_MOST = 65_536  # characters of a private key


class Found(NamedTuple):
    """Where a secret stands, and what it is."""

    start: int
    end: int
    kind: str


def find(text: str) -> list[Found]:
    """Return the secrets in a text, in order; they do not overlap.

    >>> [one.kind for one in find("use AKIA" + "Q" * 16 + " and password=Tr0ub4dor")]
    ['aws-key', 'password']
    """
    if len(text) < LEAST:
        return []
    raw = text.encode("utf-8", "replace")
    runs, low = raw.translate(RUNS), raw.lower()
    has_run = LONG in runs
    words = words_in(low, has_run=has_run)
    found: list[Found] = []
    if has_run:
        found += _in_runs(raw, runs)
        found += _around_runs(text)
    if words:
        from cascade_memory.redaction import assignments  # its patterns take longer to compile than most other modules to load

        lowered = low.decode()  # of the same length: only ASCII letters were changed
        found += (Found(*one) for one in assignments.find(text, lowered, words))
        if "begin" in words:
            found += _private_keys(text, lowered)
    return _apart(found) if found else found


def _in_runs(raw: bytes, runs: bytes) -> Iterator[Found]:
    """Yield the tokens within runs. Positions in bytes are turned into positions in the text on the way."""
    at = characters = 0
    start = runs.find(LONG)
    while start >= 0:
        end = runs.find(b" ", start)
        end = len(runs) if end < 0 else end
        for one in in_run().finditer(raw, start, end):
            characters += len(raw[at : one.start()].decode())
            at = one.start()
            yield Found(characters, characters + len(one.group()), kind_of(one.group()))
        start = runs.find(LONG, end)


def _around_runs(text: str) -> Iterator[Found]:
    for form, pattern in around_runs():
        if form.literal in text:
            yield from (Found(one.start() - form.before, one.end(), form.kind) for one in pattern.finditer(text))


def _private_keys(text: str, low: str) -> Iterator[Found]:
    """Yield private keys from BEGIN to END, or what looks like one where the END is missing."""
    done = end = 0
    for begin in _BEGIN.finditer(low):
        if begin.start() < done:
            continue
        if 0 <= end < begin.end():
            end = low.find(_END, begin.end())  # each is looked for once, however many begin
        if 0 <= end < begin.end() + _MOST and low.find(_START, begin.end(), end) < 0:
            closed = low.find(_DASHES, end + len(_END), end + len(_END) + _CLOSING)
            done = end + len(_END) if closed < 0 else closed + len(_DASHES)
        else:
            body = _BODY.match(text, begin.end())
            done = begin.end() if body is None else body.end()
        yield Found(begin.start(), done, PRIVATE_KEY)


def _apart(found: list[Found]) -> list[Found]:
    """Join secrets that overlap. Their kind is that of a token known by its form, if one is among them."""
    found.sort(key=lambda one: (one.start, -one.end))
    apart: list[Found] = []
    for one in found:
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            kind = last.kind if one.kind in WEAK or last.kind not in WEAK else one.kind
            apart[-1] = Found(last.start, max(last.end, one.end), kind)
        else:
            apart.append(one)
    return apart

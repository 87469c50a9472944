"""What all collectors do with what they have read: leave out what does not fit, and find out what was withdrawn.

What came of it is said as counts and in sentences.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from cascade_memory.capabilities.scores.asking import Platform
from cascade_memory.capabilities.scores.fields import Fields, Unfit, listed
from cascade_memory.capabilities.scores.score import Score, Unread
from cascade_memory.domain.display import counted, quoted
from cascade_memory.errors import PlatformFailed
from cascade_memory.visible import on_one_line

MOST_WHY, MOST_NAMES, _MOST_KINDS = 5, 5, 1_000
_NOUNS = {"human": "human", "judge": "judge", "code": "program", "agent": "agent"}
LAG = 900.0  # seconds: a platform may show a score only so long after it was given, and its clock may be wrong
_FEW = 4  # known scores: of so many or more, at most half are withdrawn at once
_AFTER = 0.001  # seconds after an inferred deletion: enough to be the newer version
PAGES, _EMPTY = 10_000, 100  # of a read, and of those without an item one after the other
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What ``collect`` did or, in a dry run, would find. Each score is counted once: from ``found`` to ``refused``.

    >>> print(Collected(scores=1_204, found={"human": 640, "judge": 171}, untraced=393, dry_run=True))
    of 1,204 scores 811 find an episode: 640 humans, 171 judges
    not used: 393 without a trace
    a dry run: nothing was stored
    """

    scores: int
    found: Mapping[str, int] = field(default_factory=dict[str, int])  # with an episode and a meaning, by kind of judge
    older: int = 0  # versions of a score of which a newer one is known
    untraced: int = 0  # without the id of a trace
    unknown: int = 0  # no episode of this namespace has recalled in their trace
    unmapped: Mapping[str, int] = field(default_factory=dict[str, int])  # by name: the weights do not have it
    unnumbered: Mapping[str, int] = field(default_factory=dict[str, int])  # by value: it means no number from 0 to 1
    refused: int = 0  # could not be read, or be taken: their trace has several episodes, for example
    why: tuple[str, ...] = ()  # sentences about the first of those, and about episodes whose outcome could not be changed
    rewarded: int = 0  # episodes whose outcome is new or another one now
    corrected: int = 0  # episodes with a new corrected case
    withdrawn: int = 0  # episodes that lost an outcome, because its scores were deleted
    dry_run: bool = False

    def __str__(self) -> str:
        """Say it in a few lines."""
        by = ", ".join(counted(self.found[kind], noun) for kind, noun in _NOUNS.items() if self.found.get(kind))
        finds = "finds" if (total := sum(self.found.values())) == 1 else "find"
        unused = {
            "older version" if self.older == 1 else "older versions": self.older,
            "without a trace": self.untraced,
            "whose trace has no episode here": self.unknown,
            f"not mapped ({_named(self.unmapped)})": sum(self.unmapped.values()),
            f"without a number from 0 to 1 ({_named(self.unnumbered)})": sum(self.unnumbered.values()),
            "refused": self.refused,
        }
        left = ", ".join(f"{count:,} {what}" for what, count in unused.items() if count)
        did = {"rewarded": self.rewarded, "corrected": self.corrected, "without an outcome again": self.withdrawn}
        done = ", ".join(f"{counted(count, 'episode')} {what}" for what, count in did.items() if count)
        lines = [
            f"of {counted(self.scores, 'score')} {total:,} {finds} an episode{f': {by}' if by else ''}",
            *([f"not used: {left}"] if left else []),
            *self.why,
            "a dry run: nothing was stored" if self.dry_run else done or "nothing was to be changed",
        ]
        return "\n".join(map(on_one_line, lines))


class Tally:
    """Counts while scores are collected."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.found, self.unmapped, self.unnumbered = Counter[str](), Counter[str](), Counter[str]()
        self._why: list[str] = []

    def refuse(self, why: str, *, score: bool = True) -> None:
        """Count a score that was refused, or note a sentence about an episode."""
        self.counts["refused"] += score
        if len(self._why) < MOST_WHY:
            self._why.append(why)

    def unnumber(self, value: object) -> None:
        """Count a value that means no number; after ``_MOST_KINDS`` different ones, all others together."""
        said = value[:40] if isinstance(value, str) else quoted(value)
        is_too_many = said not in self.unnumbered and len(self.unnumbered) >= _MOST_KINDS
        self.unnumbered["others" if is_too_many else said] += 1

    def collected(self, *, dry_run: bool) -> Collected:
        """Return what was counted."""
        names = ("scores", "older", "untraced", "unknown", "refused", "rewarded", "corrected", "withdrawn")
        return Collected(
            **{name: self.counts[name] for name in names},
            found=dict(self.found),
            unmapped=dict(self.unmapped),
            unnumbered=dict(self.unnumbered),
            why=tuple(self._why),
            dry_run=dry_run,
        )


def _named(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    more = f" and {len(most) - MOST_NAMES:,} more" if len(most) > MOST_NAMES else ""
    return ", ".join(f"{name}: {count:,}" for name, count in most[:MOST_NAMES]) + more


class Repeated(PlatformFailed):
    """A platform gives the same page for another offset, and there may be more items than those."""


def scores(rows: Iterable[Fields], score_of: Callable[[Fields], Score | None]) -> Iterator[Score | Unread]:
    """Yield the score of each row, once, and an ``Unread`` for a row whose texts cannot be used.

    >>> rows = [Fields("Phoenix", {"id": "7"}), Fields("Phoenix", {"id": "7"}), Fields("Phoenix", {"id": ""})]
    >>> made = lambda row: Score(platform="phoenix", id=row.id("id"), name="correct", value=1.0, judge="human", at=1.7e9)
    >>> [type(one).__name__ for one in scores(rows, made)]
    ['Score', 'Unread']
    """
    latest: dict[str, float] = {}
    for row in rows:
        try:
            one = score_of(row)
        except Unfit as why:
            if not isinstance(row.raw("id"), str):  # if ids are elsewhere now, all known scores would seem to be gone
                raise PlatformFailed(str(why)) from None
            yield Unread(str(why))
            continue
        if one is not None and one.at > latest.get(one.id, -1.0):
            latest[one.id] = one.at
            yield one


def in_order(read: Iterable[Score | Unread]) -> list[Score | Unread]:
    """Return all that was read, oldest first, and nothing if reading fails.

    Platforms give the newest first. Whoever goes on with the newest score that is stored would otherwise miss older ones after
    a read that failed halfway.

    >>> in_order([Unread("a")])
    [Unread(why='a')]
    """
    return sorted(read, key=lambda one: one.at if isinstance(one, Score) else 0.0)


def with_withdrawn(
    platform: Platform, known: Sequence[Score], rows: Iterable[Fields], score_of: Callable[[Fields], Score | None]
) -> Iterator[Score | Unread]:
    """Yield the scores in rows; then each known one that was not among them, with ``deleted=True``.

    The rows must be complete: whatever the platform has of ``known`` is in them. If reading them raises, nothing is withdrawn.
    A score younger than ``LAG`` counts as withdrawn only later, since the platform may not show it yet. One that is known as
    deleted and is there after all (the key was one of another project for a while) is yielded as a newer version than that.

    >>> one = Score(platform="phoenix", id="7", name="correct", value=1.0, judge="human", at=1.7e9, trace_id="4bf9")
    >>> platform = Platform("Phoenix", "http://localhost:6006", headers={}, keys="PHOENIX_API_KEY")
    >>> [score.deleted for score in with_withdrawn(platform, [one], [], lambda row: None)]
    [True]
    """
    began, there = time.time(), set[str]()
    gone = {one.id: one.at for one in known if one.deleted}

    def noted(row: Fields) -> Score | None:
        try:
            one = score_of(row)
        except Unfit:  # it is still there
            there.add(str(row.raw("id")))
            raise
        if one is None:
            return None
        there.add(one.id)
        return dataclasses.replace(one, at=gone[one.id] + _AFTER) if one.at <= gone.get(one.id, -1.0) else one

    yield from scores(rows, noted)
    counted = [one for one in known if (one.span_id or one.trace_id) and not one.deleted]
    missing = [one for one in counted if one.id not in there and one.at < began - LAG]
    if len(counted) >= _FEW and 2 * len(missing) > len(counted):
        raise platform.failed(
            f"{len(missing):,} of {len(counted):,} scores that were read before are not there any more; nothing was withdrawn, "
            "because the key may be one of another project or workspace than theirs"
        )
    for one in missing:
        yield dataclasses.replace(one, deleted=True, at=began)


def by_cursor(platform: Platform, path: str, cursor_of: Callable[[Fields], str | None], **asked: object) -> Iterator[Fields]:
    """Yield the items of all pages: each page is an object with a list ``data``, and has the cursor of the next one.

    >>> from types import SimpleNamespace
    >>> pages = [{"data": [{"id": "1"}], "next_cursor": "a"}, {"data": [{"id": "2"}], "next_cursor": None}]
    >>> platform = SimpleNamespace(name="Phoenix", get=lambda path, **asked: pages.pop(0))
    >>> [row.id("id") for row in by_cursor(platform, "/v1", lambda page: page.text_or_none("next_cursor"))]
    ['1', '2']
    """
    seen: set[str] = set()
    cursor: str | None = None
    empty = 0
    while True:
        page = Fields(platform.name, platform.get(path, cursor=cursor, **asked))
        items = page.items("data")
        yield from items
        cursor = cursor_of(page)
        if cursor is None:
            return
        if cursor in seen:
            raise platform.failed(f"it gives the same cursor for two pages of {path}, so they have no end")
        seen.add(cursor)
        empty = 0 if items else empty + 1
        if empty == _EMPTY:
            raise platform.failed(
                f"it gives {_EMPTY} empty pages of {path} one after the other, each with a cursor of the next"
            )
        if len(seen) == PAGES:
            raise platform.failed(_endless(path))


def by_offset(platform: Platform, path: str, size: int, **asked: object) -> Iterator[Fields]:
    """Yield the items of all pages: each page is a list, and the next one begins after so many items.

    >>> from types import SimpleNamespace
    >>> pages = [[{"id": "1"}, {"id": "2"}], [{"id": "3"}]]
    >>> platform = SimpleNamespace(name="LangSmith", get=lambda path, **asked: pages.pop(0))
    >>> [row.id("id") for row in by_offset(platform, "/feedback", 2)]
    ['1', '2', '3']
    """
    offset, before = 0, set[str]()
    for _ in range(PAGES):
        page = listed(platform.name, platform.get(path, limit=size, offset=offset, **asked), path.strip("/"))
        here = {str(row.raw("id")) for row in page}
        repeats = len(page) >= size and here <= before  # asked for some values, LangSmith ignores the offset
        if repeats and len(page) == size:
            raise Repeated(str(platform.failed(f"it gives one page of {path} again and again, so what follows cannot be read")))
        yield from page
        if repeats or len(page) < size:
            return
        offset, before = offset + len(page), here
    raise platform.failed(_endless(path))


def by_offset_of(platform: Platform, path: str, size: int, name: str, values: Iterable[str], at_once: int) -> Iterator[Fields]:
    """Yield the items of all pages that have one of some values; ask for fewer at once if one page is all that can be read.

    >>> from types import SimpleNamespace
    >>> platform = SimpleNamespace(name="LangSmith", failed=PlatformFailed)
    >>> platform.get = lambda path, *, run, **_: [{"id": one} for one in run][:2]
    >>> [row.id("id") for row in by_offset_of(platform, "/feedback", 2, "run", ["1", "2", "3"], 3)]
    ['1', '2', '3']
    """
    for some in batches(values, at_once):
        try:
            rows = list(by_offset(platform, path, size, **{name: some}))
        except Repeated:
            if len(some) == 1:
                raise
            yield from by_offset_of(platform, path, size, name, some, (len(some) + 1) // 2)
        else:
            yield from rows


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Split items into lists of at most this size.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _endless(path: str) -> str:
    return f"{path} has more than {PAGES:,} pages; a later moment to begin with (--since) makes them fewer"

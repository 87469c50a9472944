"""The file of a table of outcomes: a head, then a line of JSON for each reply and for each outcome of an attempt."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from cascade_memory.domain import append_after, open_plain
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.model.chat import PromptTooLong, Reply, ToolCall

MOST_BYTES = 2 * 1024**3  # of the whole table, unpacked: a packed file may be small and unpack without an end
_MOST_OF_A_LINE = 32 * 1024**2
_FORMAT = 1
_BEGINS = b'{"outcomes": '


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a task with the cases that were shown; digests stand for the query and the cases: no text is kept."""

    task: str
    query: str
    shown: tuple[str, ...]
    success: bool
    show: str = "text"  # how the cases were shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of a table: the model whose answers the table holds."""

    model: str
    settings: Mapping[str, Any]
    about: Mapping[str, Any]  # the server, the weights, the template, the licence: as far as they are known
    probe: str  # a digest of what the model answers to a few fixed prompts


class OutcomeFile:
    """A table on disk. What was appended survives a kill; a last line that was cut off is overwritten."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head: Head | None = None
        self.replies: dict[str, Reply | PromptTooLong] = {}
        self.outcomes: dict[tuple[str, str, str, tuple[str, ...]], Outcome] = {}
        self._end = 0
        if path.exists():
            self._read()

    def begin(self, head: Head) -> None:
        """Write the head of a new table."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._append({"outcomes": _FORMAT, **asdict(head)})
        self.head = head

    def add_reply(self, key: str, reply: Reply | PromptTooLong) -> None:
        """Write the reply to a prompt, or that the prompt is too long."""
        if isinstance(reply, PromptTooLong):
            self._append({"key": key, "too_long": True})  # what the server said may hold a part of the prompt
        else:
            line = {"key": key, "reply": reply.text, "tokens": [reply.prompt_tokens, reply.completion_tokens]}
            calls = [[call.id, call.name, call.arguments] for call in reply.calls]
            self._append({**line, "calls": calls} if calls else line)
        self.replies[key] = reply

    def add_outcome(self, outcome: Outcome) -> None:
        """Write an outcome, unless the file has one for the same task, query, cases and way of showing them."""
        if _about(outcome) not in self.outcomes:
            self._append(asdict(outcome))
            self.outcomes[_about(outcome)] = outcome

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        self._end = append_after(self.path, self._end, line)

    def _read(self) -> None:
        other = f"{self.path} holds something other than a table of outcomes"
        number = 0
        try:
            for number, line in enumerate(_lines(self.path), start=1):
                _check(self._end + len(line) <= MOST_BYTES, f"a table has at most {MOST_BYTES:,} bytes")
                _check(len(line) < _MOST_OF_A_LINE, f"a line has less than {_MOST_OF_A_LINE:,} bytes")
                if not line.endswith(b"\n"):
                    begins = b'{"' if self._end else _BEGINS
                    _check(begins.startswith(line) or line.startswith(begins), "it is not the beginning of a row")
                    return
                self._take(cast("dict[str, Any]", json.loads(line.decode())), first=number == 1)
                self._end += len(line)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{other}: {error}") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(f"{other}: line {number}: {error!r}"[:300]) from error

    def _take(self, entry: dict[str, Any], *, first: bool) -> None:
        _check(first == ("outcomes" in entry), "its first line, and no other one, is the head")
        if first:
            if entry["outcomes"] != _FORMAT:
                raise ValueError(f"its format is {entry['outcomes']!r}, and this version reads {_FORMAT}")
            model, probe = _text(entry["model"]), _text(entry["probe"])
            self.head = Head(model=model, settings=_object(entry["settings"]), about=_object(entry["about"]), probe=probe)
        elif "key" in entry:
            key = _text(entry["key"])
            _check(key not in self.replies, "there is an earlier answer to the same prompt")
            self.replies[key] = _reply(entry) if "reply" in entry else _too_long(entry)
        else:
            success = entry["success"]
            _check(isinstance(success, bool), "success is true or false")
            shown = tuple(map(_text, cast("list[Any]", entry["shown"])))
            task, query, show = _text(entry["task"]), _text(entry["query"]), _text(entry.get("show", "text"))
            outcome = Outcome(task, query, shown, success, show)
            self.outcomes[_about(outcome)] = outcome


def dtype_in(path: Path) -> str | None:
    """Return what the model of the table at ``path`` computed with: "float32" or "bfloat16", or None if no table says so."""
    head = OutcomeFile(path).head
    found = None if head is None else head.about.get("dtype")
    return found if found in ("float32", "bfloat16") else None


def _reply(entry: Mapping[str, Any]) -> Reply:
    prompt, completion = entry["tokens"]
    _check(all(type(one) is int and one >= 0 for one in (prompt, completion)), "tokens are two whole numbers")
    calls = tuple(ToolCall(*map(_text, call)) for call in entry.get("calls", ()))
    return Reply(_text(entry["reply"]), prompt, completion, calls)


def _too_long(entry: Mapping[str, Any]) -> PromptTooLong:
    _check(entry["too_long"] is True, "an answer is a reply, or too_long is true")
    return PromptTooLong("when the table was made, this prompt was refused as too long")


def _text(value: Any) -> str:
    _check(isinstance(value, str), "texts are needed")
    return cast("str", value)


def _object(value: Any) -> dict[str, Any]:
    _check(isinstance(value, dict), "an object is needed")
    return cast("dict[str, Any]", value)


def _check(fine: bool, needed: str) -> None:
    if not fine:
        raise ValueError(needed)


def _about(outcome: Outcome) -> tuple[str, str, str, tuple[str, ...]]:
    return outcome.task, outcome.query, outcome.show, outcome.shown


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines one at a time, so that a caller that stops at the first wrong line unpacks no more of the file."""
    with open_plain(path) as file:
        source = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        while line := source.readline(_MOST_OF_A_LINE):
            yield line


def worth(outcomes: Iterable[Outcome]) -> list[tuple[str, str, int, int, int, float]]:
    """Return the success rate for each benchmark task, way to show cases and number of cases.

    Each result ends with the number of queries, the number of outcomes, and the share of outcomes that succeeded. The shares
    do not say what a case is worth, since the outcomes behind two shares are of different queries and cases.

    >>> worth([Outcome("rca", "a", (), True), Outcome("rca", "b", (), False), Outcome("rca", "a", ("c",), True, "turns")])
    [('rca', 'text', 0, 2, 2, 0.5), ('rca', 'turns', 1, 1, 1, 1.0)]
    """
    groups: dict[tuple[str, str, int], list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault((one.task, one.show, len(one.shown)), []).append(one)
    return [
        (*about, len({one.query for one in group}), len(group), sum(one.success for one in group) / len(group))
        for about, group in sorted(groups.items())
    ]

"""A solver for BFCL's multi-turn tasks without a language model: it solves a declared share alone, the rest by reuse.

The values in calls that solved one task are replaced by those that the text of another task has in the same places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cascade_memory import RecalledCase
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.bfcl.calls import Call, Turns, Value, read_turns, write_turns
from cascade_memory.evaluation.environments.bfcl.tasks import BFCLTask
from cascade_memory.evaluation.environments.bfcl.world import play
from cascade_memory.evaluation.stream import Attempt

# What in a text may be a value. Of the kinds that match at a place, the first one counts.
_QUOTED = r"""(?<!\w)'([^'\n]+)'(?!\w)|"([^"\n]+)"|“([^”\n]+)”|‘([^’\n]+)’|`([^`\n]+)`"""
_NAME = r"(?<=[\w,:] )[A-Z][\w-]*\w(?: [A-Z][\w-]*\w)*"  # not at the beginning of a sentence
_KINDS = {
    "date": r"\d{4}-\d\d-\d\d",
    "file": r"[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}(?!\w)",
    "tag": r"[#@]\w+",
    "code": r"(?<!\w)(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]+",
    "number": r"(?<!\w)\$?\d[\d,]*(?:\.\d+)?(?!\w)",
    "name": _NAME,
}
_ONE = {kind: re.compile(pattern) for kind, pattern in _KINDS.items() if kind != "name"}
_ANY = re.compile("|".join([f"(?P<quoted>{_QUOTED})", *(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())]))
_SHORTEST = 3  # a shorter value is replaced only where it is the whole argument
# A memory keeps no secrets: in what it recalls, each is a placeholder. Another task's text has a secret of its own.
_PLACEHOLDER = re.compile(r"\[secret:([a-z-]+)#\d+\]")
_GIVEN = (
    r"""\b{}s?\b[^.'"`\n]{{0,25}}["'`]([^\s"'`]+)""",  # in quotes
    r"""\b{}s?\b(?: (?:is|of|as|being|here))?\s*[:=]?\s*([^\s"'`]+)""",
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A value in a text, with its kind."""

    kind: str
    text: str


def mentions(text: str) -> list[Mention]:
    """Find what in a text may be the value of an argument, in the order of the text.

    >>> [(one.kind, one.text) for one in mentions("Move 'notes.txt' to the folder 'old mail' and buy 1,200 shares of Nvidia.")]
    [('file', 'notes.txt'), ('text', 'old mail'), ('number', '1200'), ('name', 'Nvidia')]
    """
    return [_mention(found) for found in _ANY.finditer(_PLACEHOLDER.sub("", text))]


def _mention(found: re.Match[str]) -> Mention:
    if found["quoted"] is None:
        kind = str(found.lastgroup)
        return Mention(kind, _plain(found[0]) if kind == "number" else found[0])
    inner = next(one for one in found.groups()[1:6] if one is not None)
    kind = next((kind for kind, pattern in _ONE.items() if pattern.fullmatch(inner)), "text")
    return Mention(kind, _plain(inner) if kind == "number" else inner)


def _plain(number: str) -> str:
    return number.replace(",", "").lstrip("$")


@dataclass(frozen=True, slots=True)
class Exchange:
    """The values of one task's text, each with the value of another task's text that takes its place."""

    values: Mapping[str, str]
    secrets: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])  # of the new text, by their kind

    def turns(self, turns: Turns) -> list[list[Call]]:
        """Return calls with the new values; each stays in its turn."""
        return [[self._call(call) for call in calls] for calls in turns]

    def _call(self, call: Call) -> Call:
        by_name = tuple((name, self.value(value)) for name, value in call.by_name)
        return Call(call.name, tuple(map(self.value, call.by_place)), by_name)

    def value(self, value: Value) -> Value:
        """Return the value that takes the place of another one, of the same type.

        >>> exchange = Exchange({"100": "250", "AAPL": "NVDA"})
        >>> exchange.value(100.0), exchange.value(["AAPL", "buy AAPL"]), exchange.value(True)
        (250.0, ['NVDA', 'buy NVDA'], True)
        """
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            return self._number(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(one) for key, one in value.items()}
        changed = [self.value(one) for one in value]
        return changed if isinstance(value, list) else tuple(changed)

    def _number(self, value: int | float) -> int | float:
        for old, new in self.values.items():
            if _ONE["number"].fullmatch(old) and _ONE["number"].fullmatch(new) and float(old) == value:
                return float(new) if isinstance(value, float) or "." in new else int(new)
        return value

    def _text(self, value: str) -> str:
        if value in self.values:
            return self.values[value]
        long = sorted((old for old in self.values if len(old) >= _SHORTEST), key=len, reverse=True)
        if long:
            pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, long))})(?!\w)"
            value = re.sub(pattern, lambda found: self.values[found[0]], value)
        return _PLACEHOLDER.sub(lambda found: next(iter(self.secrets.get(found[1], ())), found[0]), value)


def exchange(old: Sequence[str], new: Sequence[str]) -> Exchange:
    """Compare what is said in the turns of two tasks.

    A value that the new text has too stays. Any other value is replaced by a value of its kind that stands in the same turn of
    the new text and that the old text does not have: the first by the first, and so on. If there is none left, it stays.

    >>> dict(exchange(["Copy 'a.txt' to the folder 'old'."], ["Put 'b.txt' into 'old', please."]).values)
    {'a.txt': 'b.txt'}
    """
    before, after = [mentions(said) for said in old], [mentions(said) for said in new]
    in_old, in_new = ({one for turn in turns for one in turn} for turns in (before, after))
    values: dict[str, str] = {}
    for mine, others in zip(before, after, strict=False):
        for kind in ("text", *_KINDS):
            gone = _only(mine, kind, lambda one: one not in in_new and one.text not in values)
            came = _only(others, kind, lambda one: one not in in_old and one.text not in values.values())
            values.update(zip(gone, came, strict=False))
    return Exchange(values, secrets_in("\n".join(new)))


def _only(found: Sequence[Mention], kind: str, wanted: Callable[[Mention], bool]) -> Iterator[str]:
    return iter(list(dict.fromkeys(one.text for one in found if one.kind == kind and wanted(one))))


def secrets_in(text: str) -> dict[str, list[str]]:
    """Find the passwords and tokens that a text says; those with a digit come first, since they are no words.

    >>> secrets_in("My password is 'hello123' and the access token is abc123xyz.")
    {'password': ['hello123', 'is'], 'token': ['abc123xyz']}
    """
    found: dict[str, list[str]] = {}
    for kind in ("password", "token"):
        given = [one.rstrip(".,;!?:)") for form in _GIVEN for one in re.findall(form.format(kind), text, re.IGNORECASE)]
        given = list(dict.fromkeys(one for one in given if one))
        found[kind] = sorted(given, key=lambda one: not any(sign.isdigit() for sign in one))  # stable sort
    return found


class BFCLAgent:
    """REUSE agent, no language model: it makes the calls of the best recalled case, with the values of the new task.

    Each call stays in its turn, so a case does not help if it is about the same things but has its calls in other turns.
    ``alone`` says which tasks it solves without a case, as an LLM solves some without memory. The agent learns about the right
    calls only through the reward.
    """

    def __init__(self, tasks: Sequence[BFCLTask], *, alone: Sequence[bool]) -> None:
        self._tasks, self._alone = tasks, alone

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task with the first of the cases."""
        task = self._tasks[place]
        if self._alone[place]:
            return _judged(task, task.right)
        if not cases:
            return Attempt(False, None, steps=0)
        try:
            calls = adapted(cases[0].query, str(cases[0].solution), task)
        except InvalidInput:  # the case does not hold calls
            return Attempt(False, None, steps=0)
        return _judged(task, calls)


def adapted(query: str, solution: str, task: BFCLTask) -> Turns:
    """Adapt the calls that solved another task: replace the values that its text has by those of the new task.

    Calls of a turn that the new task does not have are left out; in its further turns, nothing is called.
    """
    turns = exchange(query.split("\n"), task.turns).turns(read_turns(solution))[: len(task.turns)]
    return [*turns, *([] for _ in task.turns[len(turns) :])]


def _judged(task: BFCLTask, calls: Turns) -> Attempt:
    played = play(task, [[str(call) for call in turn] for turn in calls])
    steps = sum(map(len, calls))
    return Attempt(played.success, write_turns(calls) if steps else None, steps=steps)

"""A stream of tasks, and its judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from cascade_memory.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Item:
    """One task: its text, its label, and the other fields of its line.

    Only ``query`` is embedded and stored. ``context`` is what a model is told besides, such as the options to choose from or
    the schema of a database.
    """

    query: str
    label: Any
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: str = ""

    @property
    def solution(self) -> str:
        """The right answer as text.

        >>> Item("Yuan falls", [{"entity": "Yuan", "label": "negative"}]).solution
        '[{"entity": "Yuan", "label": "negative"}]'
        """
        return self.label if isinstance(self.label, str) else json.dumps(self.label, ensure_ascii=False, sort_keys=True)


class Task(Protocol):
    """What the benchmark needs to know about a stream of tasks. Any object with these attributes will do.

    A task may also have:

    * ``answer(reply)``: the part of a reply that a case stores; without it, the content of a box or the whole reply;
    * ``question(item)``: the text that a model gets after the cases; without it, ``item.query``;
    * ``example(solution)``: how the solution of a case is shown; without it, as it is stored;
    * ``reveals_truth = True``: after a success the right answer is shown to everybody, and the case stores it.

    >>> class Sums:
    ...     name, instruction, max_steps = "sums", "Add the numbers.", 1
    ...     def items(self, data: Path) -> list[Item]:
    ...         return [Item(f"{n} + 1", str(n + 1)) for n in range(3)]
    ...     def reward(self, reply: str, item: Item) -> float:
    ...         return float(reply.strip() == item.label)
    >>> task: Task = Sums()
    >>> task.reward("3", task.items(Path())[2])
    1.0
    """

    @property
    def name(self) -> str:
        """The name of the stream in rows and commands."""
        ...

    @property
    def instruction(self) -> str:
        """The instruction that a model gets before each task."""
        ...

    @property
    def max_steps(self) -> int:
        """The largest number of steps for an agent."""
        ...

    def items(self, data: Path) -> list[Item]:
        """Return the tasks in their order, from a folder of data."""
        ...

    def reward(self, reply: str, item: Item) -> float:
        """Judge a model's reply, from 0 to 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """Tasks in a file of JSON lines, each with ``task`` and ``label``, and a function that judges a reply by the label.

    >>> task = FileTask(name="mine", file="mine.jsonl", judge=lambda reply, label: float(label in reply))
    >>> task.reward("It is 42.", Item("6 * 7", "42"))
    1.0
    """

    name: str
    file: str
    judge: Callable[[str, Any], float]
    instruction: str = "Solve the task. Answer with nothing but the solution."
    max_steps: int = 1

    def items(self, data: Path) -> list[Item]:
        """Read the file."""
        return read_items(data / self.file)

    def reward(self, reply: str, item: Item) -> float:
        """Judge a reply by the item's label."""
        return self.judge(reply, item.label)


def read_items(path: Path, label: Sequence[str] = ("label",)) -> list[Item]:
    """Read a file of tasks in the format of DTLBench: one JSON object per line with ``task``, ``label`` and other fields.

    Some files have the right answer in a field of another name: the first of the names in ``label`` that a line has is read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    items = [_item(line, f"{path}, line {number}", label) for number, line in enumerate(lines, start=1) if line.strip()]
    if not items:
        raise InvalidInput(f"{path} holds no tasks")
    return items


def _item(line: str, place: str, label: Sequence[str]) -> Item:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InvalidInput(f"{place} is not a JSON object")
    fields = cast("dict[str, Any]", row)
    query = fields.pop("task", None)
    right = next((fields[name] for name in label if fields.get(name) is not None), None)
    if not isinstance(query, str) or not query.strip() or right is None:
        named = " or ".join(f'"{name}"' for name in label)
        raise InvalidInput(f'{place} needs "task", a non-empty text, and {named}, which must not be null')
    fields.pop("label", None)
    return Item(query, right, fields)

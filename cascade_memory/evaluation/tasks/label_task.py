"""Tasks whose answers are compared with labels: the model sees the options, the memory sees only the task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from cascade_memory.evaluation.judging.answers import answer_in, json_in, objects_in
from cascade_memory.evaluation.judging.literals import read_literal
from cascade_memory.evaluation.tasks.task import Item, read_items
from cascade_memory.evaluation.tasks.template import Template


@dataclass(frozen=True, slots=True)
class Source:
    """A file in which the task may be found, and the wording that fits its labels."""

    file: str
    template: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTask:
    r"""Tasks in a file of JSON lines; a reply is judged by the line's label.

    The first of the sources whose file exists is read. Each item carries what a model is told: what to do, and the options.

    >>> from cascade_memory.evaluation.judging.labels import exact
    >>> about = Template(about="Route it.", options="Desks:", task="Message", form=r"Answer with \boxed{desk}.")
    >>> desks = LabelTask(name="desks", sources=(Source("desks.jsonl", about),), judge=exact)
    >>> desks.reward(r"\boxed{Repairs}", Item("It is broken.", "repairs")), desks.example("repairs")
    (1.0, '\\boxed{repairs}')
    """

    name: str
    sources: tuple[Source, ...]
    judge: Callable[[str, Any], float]
    answers: str = "text"  # what a case stores: "text" of a box, "data" (a list or an object), or "objects", one a line
    reveals_truth: bool = False  # whether the right answer is shown after a success, and becomes the case
    max_steps: int = 1

    @property
    def instruction(self) -> str:
        """What to do, without the options, which depend on the file."""
        return self.sources[0].template.about

    def items(self, data: Path) -> list[Item]:
        """Read the file; the options come from all of its lines, even if only the first ones are played."""
        source = next((one for one in self.sources if (data / one.file).is_file()), self.sources[0])
        items = read_items(data / source.file)
        told = source.template.told(source.template.options_of((item.label for item in items), source.file))
        one_text = self.answers == "text"
        return [replace(item, context=told, label=_only(item.label) if one_text else item.label) for item in items]

    def reward(self, reply: str, item: Item) -> float:
        """Judge a reply by the item's label."""
        return self.judge(reply, item.label)

    def truth(self, item: Item) -> str:
        """Return one right answer, which a human would give; a label may list several."""
        several = self.answers == "text" and isinstance(item.label, list)
        return str(cast("list[Any]", item.label)[0]) if several else item.solution

    def question(self, item: Item) -> str:
        """Write the task and how to answer; both are the same in all sources."""
        names = list(cast("Mapping[str, Any]", item.label)) if isinstance(item.label, Mapping) else ()
        return self.sources[0].template.question(item.query, names)

    def example(self, solution: str) -> str:
        """Write the solution of a case in the form in which the model must answer."""
        if self.answers == "objects" and isinstance(found := read_literal(solution), list):
            solution = "\n".join(json.dumps(one, ensure_ascii=False) for one in cast("list[Any]", found))
        return self.sources[0].template.example(solution)

    def answer(self, reply: str) -> str:
        """Return the answer in a reply, as a case stores it: data always in the same notation, however the model wrote it."""
        found = json_in(reply) if self.answers == "data" else objects_in(reply) if self.answers == "objects" else None
        return answer_in(reply) if found is None else json.dumps(found, ensure_ascii=False, sort_keys=True)


def _only(label: Any) -> Any:
    """Return a label without the list around it, if the list has one member; the list may be written as a text."""
    listed = read_literal(label) if isinstance(label, str) and label.startswith("[") else label
    return cast("list[Any]", listed)[0] if isinstance(listed, list) and len(cast("list[Any]", listed)) == 1 else label

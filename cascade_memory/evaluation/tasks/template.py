"""The parts of a prompt: what to do, what to choose from, how a task is introduced, and the form of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cascade_memory.errors import InvalidInput
from cascade_memory.visible import legible

_MOST_OPTIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    r"""The wording of a task. Whatever cases are shown, the model is told the same about the task and the options.

    >>> where = Template(about="Route the message.", options="Desks:", task="Message", form=r"Answer with \boxed{desk}.")
    >>> print(where.told(["sales", "repairs"]))
    Route the message.
    <BLANKLINE>
    Desks:
    - sales
    - repairs
    >>> print(where.question("It is broken."))
    Message:
    It is broken.
    <BLANKLINE>
    Answer with \boxed{desk}.
    """

    about: str
    task: str  # the heading of a task
    form: str  # how to answer; "{names}" stands for the names of which something is asked
    options: str = ""  # the heading of the options; "": there are none
    listed: tuple[str, ...] | tuple[tuple[str, str], ...] = ()  # options that the dataset publishes, perhaps with meanings
    derived: bool = True  # whether labels of the file that are not listed are options too
    around: tuple[str, str] = (r"\boxed{", "}")  # what stands before and after the solution of a case that is shown

    def options_of(self, labels: Iterable[Any], file: str) -> list[str]:
        """List the options: first those that the dataset publishes, then the other labels of the whole file, sorted."""
        published = [one if isinstance(one, str) else one[0] for one in self.listed]
        known, others = {_alike(name) for name in published}, dict[str, str]()
        for label in labels if self.derived and self.options else ():
            for name in names_in(label):
                if _alike(name) not in known:
                    others.setdefault(_alike(name), name)
        if len(others) > _MOST_OPTIONS:
            raise InvalidInput(
                f"{file} has {len(others):,} different labels, and a model is shown at most {_MOST_OPTIONS:,} options: "
                "is it the file of another task?"
            )
        return [*published, *sorted(others.values(), key=str.casefold)]

    def told(self, options: Sequence[str]) -> str:
        """Write what a model is told before the cases: what to do, and the options, if there are any."""
        if not self.options:
            return self.about
        meanings = dict(one for one in self.listed if not isinstance(one, str))
        lines = [f"- {one}: {meanings[one]}" if one in meanings else f"- {_one_line(one)}" for one in options]
        return "\n".join([self.about, "", self.options, *lines])

    def example(self, solution: str) -> str:
        r"""Write the solution of a case in the form in which a model must answer.

        >>> Template(about="", task="", form="").example("loan")
        '\\boxed{loan}'
        """
        return solution.join(self.around)

    def question(self, query: str, names: Sequence[str] = ()) -> str:
        """Write what a model is asked after the cases: the task, and how to answer.

        ``names`` are those of which something is asked, such as the defendants; they take the place of ``{names}`` in the form.
        """
        form = self.form.replace("{names}", ", ".join(_one_line(name) for name in names))
        return f"{self.task}:\n{query}\n\n{form}"


def names_in(label: Any) -> list[str]:
    """Return the names in a label: a text or a number itself, the members of a list, the values of an object.

    >>> names_in("loan"), names_in(3), names_in({"Li": ["theft", "fraud"], "Wu": "theft"})
    (['loan'], ['3'], ['theft', 'fraud', 'theft'])
    """
    if isinstance(label, Mapping):
        label = list(cast("Mapping[str, Any]", label).values())
    if isinstance(label, list):
        return [name for one in cast("list[Any]", label) for name in names_in(one)]
    return [str(label)]


def _alike(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def _one_line(name: str) -> str:
    return legible(" ".join(name.split()))

"""In which arguments of a call a mistake lies, and in which place it was made: the values of its other arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from cascade_memory.cycle.action_words import said_by, said_in, words_in
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.trajectory import Step

CLEARLY = 0.1  # by how much the cosine of a task must be greater for what worked there to count more than a failure


class Call:
    """An action with its words, which are found once: it is compared with many mistakes."""

    def __init__(self, step: Step) -> None:
        self.step = step

    @cached_property
    def words(self) -> frozenset[str]:
        """All its words."""
        return frozenset(words_in(said_by(self.step)))

    @cached_property
    def by_argument(self) -> Mapping[str, frozenset[str]]:
        """The words of each argument."""
        return _by_argument(self.step.arguments)


class Mistake:
    """What a step is blamed for, with the arguments in which it lies, which are found once.

    >>> said = {"action": 'sql({"db": "shop", "q": "SELECT nme FROM t"})', "happened": "no such column: nme"}
    >>> found = Mistake(Blame(why="failed", tool="sql", group="g", words=("nme",), **said))
    >>> found.place, found.place_in({"db": "farm", "q": "SELECT nme FROM fields"})
    ({'db': 'shop'}, {'db': 'farm'})
    >>> found.is_repeated(Call(Step(tool="sql", arguments={"db": "farm", "q": "SELECT nme FROM fields"})))
    True
    >>> found.is_repeated(Call(Step(tool="sql", arguments={"db": "nme", "q": "SELECT size FROM fields"})))
    False
    """

    def __init__(self, blame: Blame) -> None:
        self.blame, self._words = blame, frozenset(blame.words)

    def is_repeated(self, call: Call) -> bool:
        """Say whether a call is the mistake: it has the tool, and all words of the mistake in the same arguments."""
        if call.step.tool != self.blame.tool or not self._words <= call.words:
            return False
        names = self._lies_in & call.by_argument.keys()
        return not names or self._words <= frozenset[str]().union(*(call.by_argument[name] for name in names))

    def place_in(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return in which place a call does what the mistake is about: its other arguments."""
        names = self._lies_in
        return {name: value for name, value in arguments.items() if name not in names} if names else {}

    @property
    def place(self) -> Mapping[str, Any]:
        """The place in which the mistake was made; nothing if its call was too long to be stored whole."""
        return self.place_in(self._arguments)

    @cached_property
    def _lies_in(self) -> frozenset[str]:
        """The names of the arguments in which all words of the mistake stood; none if that is not known."""
        found = _by_argument(self._arguments)
        return frozenset(name for name, words in found.items() if self._words <= words)

    @cached_property
    def _arguments(self) -> Mapping[str, Any]:
        """The arguments of the call, as it was written out; none if it is no call, or was cut short."""
        action, tool = self.blame.action, self.blame.tool
        if tool is None or not (action.startswith(f"{tool}(") and action.endswith(")")):
            return {}
        try:
            found: object = json.loads(action[len(tool) + 1 : -1])
        except (ValueError, RecursionError):  # an imported one may be nested as deep as somebody likes
            return {}
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def stands(mistake: Mistake, cosine: float, now: Call, calls: Sequence[tuple[float, Call]]) -> bool:
    """Say whether a mistake, made on a task with this cosine to the present one, counts where a call is about to be made.

    ``calls`` are those of similar solved tasks, by the same tool, with the cosines of these tasks. What the world let pass
    counts only if it has worked on none of them. Of other failures and successes, those in the same place count more. If both
    or neither were there, the failure counts unless the same has worked on a clearly more similar task. But a success elsewhere
    says nothing if calls name places that come again.
    """
    why = mistake.blame.why
    if why == "refused" or not mistake.is_repeated(now):
        return why == "refused"
    here = mistake.place_in(now.step.arguments)
    worked = [
        (mistake.place_in(one.step.arguments) == here, alike)
        for alike, one in calls
        if not one.step.failed and mistake.is_repeated(one)
    ]
    if why == "left" or not worked:
        return not worked
    failed_here = mistake.place == here
    worked_here, alike = max(worked)
    if failed_here != worked_here:
        return failed_here
    return alike < cosine + CLEARLY or (not worked_here and _come_again(mistake, calls))


def _come_again(mistake: Mistake, calls: Sequence[tuple[float, Call]]) -> bool:
    """Say whether any place of the calls is there twice, as those are that agents work in, and free texts are not."""
    places = [json.dumps(mistake.place_in(one.step.arguments), sort_keys=True, default=repr) for _, one in calls]
    return len({*places}) < len(places)


def _by_argument(arguments: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(words_in(said_in(value))) for name, value in arguments.items()}

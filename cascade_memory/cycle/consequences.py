"""Whether a failed step was only the consequence of an earlier one in its run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from cascade_memory.cycle.places import Call
from cascade_memory.domain.failure_warning import Blame
from cascade_memory.domain.trajectory import Solution, Step, Trajectory

Deed: TypeAlias = tuple[str | None, frozenset[str]]  # the tool and the words of an action, without its numbers


def failed_before(run: Solution | None, blame: Blame) -> frozenset[Deed]:
    """Return what had failed in a run before the step that is blamed was tried first; nothing if that step is not found.

    >>> run = Trajectory([Step("pick up cup", "I see no cup.", failed=True), Step("move cup to box", "Unknown.", failed=True)])
    >>> said = {"action": "move cup to box", "happened": "Unknown.", "words": ("move", "cup", "to", "box")}
    >>> found = failed_before(run, Blame(why="failed", tool=None, group="g", **said))
    >>> [sorted(words) for _, words in found]
    [['cup', 'pick', 'up']]
    """
    steps = run.steps if isinstance(run, Trajectory) else ()
    blamed = (blame.tool, blame.action)
    failed = [step for step in steps if step.failed]
    own = {deed for step in failed if (step.tool, step.action) == blamed for deed in _deeds(step)}
    first = next((place for place, step in enumerate(failed) if own.intersection(_deeds(step))), 0)
    return frozenset(deed for step in failed[:first] for deed in _deeds(step))


def may_fail_again(before: Collection[Deed], done: Sequence[Step]) -> bool:
    """Say whether a step that failed after others may fail again in a run in which these steps were done.

    >>> cup = (None, frozenset(["pick", "up", "cup"]))
    >>> may_fail_again([cup], [Step("pick up cup", "You have it.")]), may_fail_again([cup], [Step("pick up cup", failed=True)])
    (False, True)
    >>> may_fail_again([], [])
    True
    """
    return not before or any(step.failed and deed in before for step in done for deed in _deeds(step))


def _deeds(step: Step) -> Sequence[Deed]:
    return [(step.tool, words) for words in Call(step).wordings]

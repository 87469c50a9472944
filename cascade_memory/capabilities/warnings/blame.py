"""Finds the step that is to blame for a failed run, and what to do instead; None if no step can be blamed.

A call that a person refused is blamed first; if there is none, the last call that failed. An error of the world, such as a
time-out, is nobody's mistake, unless the same action meets it repeatedly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cascade_memory.capabilities.warnings.action_words import COMMON, NUMBER, is_same_mistake, said_by, shape_of, words_in
from cascade_memory.capabilities.warnings.consequences import is_error_of_the_world, is_refused
from cascade_memory.capabilities.warnings.places import FIELD, Call, Mistake
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.domain.digests import digest
from cascade_memory.domain.failure_warning import Blamed
from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.domain.transcript import is_rendered
from cascade_memory.redaction.marking import cut_short

Matters: TypeAlias = Mapping[str, Collection[str]]  # the names of arguments, by tool

_MOST_WORDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A run that solved a task similar to that of the failed run. ``case`` is the id of the case made from it, or None.

    ``trusted`` says whether its source is trusted about as much as that of the verdict: only then is the run used to tell what
    works in place of the failed step.
    """

    case: str | None
    query: str
    run: Trajectory
    trusted: bool = True


def blamed_step(task: str, run: Trajectory, near: Sequence[Solved] = (), matters: Matters | None = None) -> Blame | None:
    """Return the step that a failed run is blamed for. ``near`` are solved tasks, the most similar first.

    ``matters`` names, for some tools, the arguments in which a mistake lies.

    >>> run = Trajectory([Step(action="select nme", observation="no such column: nme", failed=True)])
    >>> found = blamed_step("list the names", run)
    >>> found.why, found.words
    ('failed', ('nme',))
    """
    steps = [step for step in run.steps if step.action and not is_rendered(step.observation)]
    if not steps or (steps[-1].failed and is_error_of_the_world(steps[-1].observation)):
        return None  # the world ended this run
    failed = [place for place, step in enumerate(steps) if step.failed and not _repaired(steps, place)]
    for place in reversed(failed):
        if (
            is_refused(steps[place].observation)
            and (found := _blamed(task, steps, place, "refused", near, matters)) is not None
        ):
            return found
    for place in reversed(failed):
        of_the_world = is_error_of_the_world(steps[place].observation)
        if not of_the_world and (found := _blamed(task, steps, place, "failed", near, matters)) is not None:
            return found
    return None


def blame_of_the_world(task: str, run: Trajectory, near: Sequence[Solved] = (), matters: Matters | None = None) -> Blame | None:
    """Return the last step that failed by an error of the world; the caller blames it only if this happens repeatedly.

    Return None for a call whose words distinguish it from no other call: its tool may know no other call.

    >>> run = Trajectory([Step(action="alter billing", observation="lock timeout: billing is in use", failed=True)])
    >>> blamed_step("add a column", run), blame_of_the_world("add a column", run).words
    (None, ('billing',))
    """
    steps = _acting(run)
    for place in reversed(range(len(steps))):
        step = steps[place]
        if step.failed and is_error_of_the_world(step.observation) and not _repaired(steps, place):
            found = _blamed(task, steps, place, "failed", near, matters)
            return found if found is not None and found.words and not _worked(step, found.words, near) else None
    return None


def why_nobody(run: Trajectory) -> str:
    """Say why no step of a failed run is blamed.

    >>> why_nobody(Trajectory([Step(action="look", observation="nothing")]))
    'no step is marked as failed'
    """
    failed = [step for step in run.steps if step.action and step.failed]
    if not failed:
        return "no step is marked as failed"
    if any(is_error_of_the_world(step.observation) for step in failed):
        return "an error of the world, such as a time-out"
    return "nothing tells the failed action from others"


def _repaired(steps: Sequence[Step], place: int) -> bool:
    """Say whether the same action as in the step at ``place`` succeeded later in the run."""
    same = (steps[place].tool, steps[place].action)
    return any((step.tool, step.action) == same and not step.failed for step in steps[place + 1 :])


# -- a step that failed ------------------------------------------------------------------------------------------------


def _blamed(
    task: str, steps: Sequence[Step], place: int, why: Blamed, near: Sequence[Solved], matters: Matters | None
) -> Blame | None:
    step, refused = steps[place], why == "refused"
    words = _telling(_what_matters(step, matters), refused=refused) or _telling(step, refused=refused)
    if words is None or (why == "failed" and step.tool is None and _worked(step, words, near)):
        return None
    instead, case = _elsewhere(task, steps, place, words, near)
    return _made(step, why, words, instead, case)


def _what_matters(step: Step, matters: Matters | None) -> Step:
    """Return a step with only those arguments in which a mistake may lie; the whole step if none are named."""
    names = None if matters is None or step.tool is None else matters.get(step.tool)
    kept = {} if names is None else {name: value for name, value in step.arguments.items() if name in names}
    return dataclasses.replace(step, arguments=kept) if kept else step


def _telling(step: Step, *, refused: bool) -> tuple[str, ...] | None:
    """Return the words that an action must have to be the same mistake; None if nothing sets it apart from others."""
    of_tool = set(words_in(step.tool or ""))
    said = list(dict.fromkeys(words_in(said_by(step))))
    observed = set(words_in(step.observation))
    named = [word for word in said if word in observed and word not in COMMON and word not in of_tool and len(word) > 1]
    named = [word for word in named if any(one.isalpha() for one in word)]
    if named and not refused:
        return tuple(sorted(named)[:_MOST_WORDS])
    rest = [word for word in said if word != NUMBER]
    if any(len(word) > 1 and word not in COMMON for word in rest):
        return tuple(rest[:_MOST_WORDS])
    same_call = step.tool is not None and (refused or (not step.arguments and not said))
    return () if same_call else None


def _kind(step: Step) -> str:
    return f"tool {step.tool}" if step.tool is not None else " ".join(words_in(step.action)[:1])


def _elsewhere(
    task: str, steps: Sequence[Step], place: int, words: tuple[str, ...], near: Sequence[Solved]
) -> tuple[Step | None, str | None]:
    """Return what the most similar solved run did instead of the step at ``place``.

    If that run began with the same actions, this is its step at the same place; otherwise it is the step that is most similar.
    """
    wanted = set(words_in(said_by(steps[place])))
    for solved in (one for one in near if one.trusted):
        theirs = _acting(solved.run)
        common = _in_common(task, steps, solved)
        if common == place < len(theirs) and not theirs[place].failed:
            return theirs[place], solved.case
        alike = [one for one in theirs if _kind(one) == _kind(steps[place]) and not one.failed]
        alike = [one for one in alike if not is_same_mistake(words, one.tool, one)]
        if alike:
            return max(alike, key=lambda one: len(wanted & set(words_in(said_by(one))))), solved.case
    return None, None


def _worked(step: Step, words: tuple[str, ...], near: Sequence[Solved]) -> bool:
    """Say whether runs that solved similar tasks took the same step with success: then it is no mistake in itself."""
    return any(is_same_mistake(words, step.tool, one) and not one.failed for solved in near for one in _acting(solved.run))


def _acting(run: Trajectory) -> list[Step]:
    return [step for step in run.steps if step.action and not is_rendered(step.observation)]


def _own_words(task: str, other: str) -> frozenset[str]:
    return frozenset(words_in(task)) - frozenset(words_in(other))


def _in_common(task: str, steps: Sequence[Step], solved: Solved) -> int:
    """Return how many actions two runs share at their beginning, apart from words that only one task gives."""
    mine, theirs = _own_words(task, solved.query), _own_words(solved.query, task)
    count = 0
    for one, other in zip(steps, _acting(solved.run), strict=False):
        if shape_of(one, mine) != shape_of(other, theirs):
            break
        count += 1
    return count


def _made(step: Step, why: Blamed, words: tuple[str, ...], instead: Step | None, case: str | None) -> Blame:
    return Blame(
        why=why,
        tool=step.tool,
        action=cut_short(step.action, FIELD),
        happened=cut_short(step.observation, FIELD),
        group=digest("\x00".join([step.tool or "", *sorted(words)])),
        words=words,
        instead="" if instead is None else cut_short(instead.action, FIELD),
        instead_case=case,
    )


# -- whether it came again ---------------------------------------------------------------------------------------------


def came_again(found: Blame, run: Trajectory) -> bool:
    """Say whether a mistake came again in a run: the same was done, and failed again.

    >>> found = blamed_step("t", Trajectory([Step(action="select nme", observation="no such column: nme", failed=True)]))
    >>> came_again(found, Trajectory([Step(action="select nme", observation="ok")]))
    False
    """
    mistake = Mistake(found)
    return any(step.failed and mistake.is_repeated(Call(step)) for step in _acting(run))

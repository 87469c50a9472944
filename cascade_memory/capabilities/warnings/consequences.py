"""Says why a tool call failed, by its result, and whether the failure may have depended on what was done before in its run.

An error of the world is not a mistake of the agent. And what depended on the state of things need not recur in another run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cascade_memory.capabilities.warnings.action_words import COMMON, READ
from cascade_memory.capabilities.warnings.places import Call
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.domain.trajectory import Solution, Step, Trajectory

_LOOKED_AT = 1_000  # characters at the beginning of a result, and as many at its end
_TASKS = "(?:call|execution|job|operation|query|request|run|task|tool)"
_WORLD = re.compile(
    rf"""
    timed[ -]?out | timeout(?:error|exception|expired) | timeouterror | ^\W*timeout\b | \betimedout\b
    | \b(?:connect|connection|gateway|lock|operation|query|execution|read|request|response|server)[ _-]?timeout\b
    | \btimeout\ (?:after|error|exceeded|occurred|of|reached|waiting|while)\b | \bdeadline\ (?:exceeded|passed)\b
    | \brate[ _-]?limit | \btoo\ many\ requests\b | \bquota\ exceeded\b | \bthrottl
    | \b(?:code|error|http(?:/\d(?:\.\d)?)?|status(?:\ code)?)\W{{0,3}}(?:429|5\d\d)\b
    | \b(?:429|5\d\d)\ (?:bad|client|error|gateway|internal|server|service|too)\b
    | \b(?:currently|service|temporarily)\ (?:is\ )?(?:overloaded|unavailable)\b | \boverloaded(?:_error)?\b
    | \btry\ again\ later\b
    | \b(?:bad\ gateway|internal\ server\ error)\b
    | \bconnection\ (?:\w+\ )?(?:aborted|broken|closed|dropped|error|failed|lost|refused|reset)\b | \bconnect(?:ion)?error\b
    | \b(?:network|host)\ (?:is\ )?(?:down|error|unreachable)\b | \bname\ resolution\b
    | \bcould\ not\ resolve\b | \bgetaddrinfo\b
    | \becon(?:nrefused|nreset|naborted)\b | \bbroken\ pipe\b | \bremote\ end\ closed\b
    | \bcancellederror\b | \b{_TASKS}\ (?:has\ been\ |was\ |were\ )?(?:aborted|cancell?ed|interrupted)\b | \bkeyboardinterrupt\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WHO = "(?:admin|administrator|approver|human|operator|person|reviewer|supervisor|user)"
_NO = "(?:declined|denied|did\\ not\\ approve|disapproved|not\\ approved|refused|rejected)"
_REFUSED = re.compile(rf"\b{_WHO}\b[^.\n]{{0,40}}\b{_NO}\b | \b{_NO}\ by\ (?:an?\ |the\ )?{_WHO}\b", re.IGNORECASE | re.VERBOSE)
Deed: TypeAlias = tuple[str | None, frozenset[str]]  # the tool and the words of an action
_SHARED = 2  # words with which two actions are about the same thing
_WORD = re.compile(r"\w+")


def is_error_of_the_world(result: str) -> bool:
    """Say whether a call failed for a reason that has nothing to do with it: a time-out, a rate limit, a lost connection.

    >>> is_error_of_the_world("HTTP 503: temporarily unavailable"), is_error_of_the_world("no such column: nme")
    (True, False)
    """
    return _WORLD.search(_ends_of(result)) is not None


def is_refused(result: str) -> bool:
    """Say whether the result of a failed call says that a person did not allow it.

    >>> is_refused("User rejected the tool call for `drop` with id 1"), is_refused("access denied")
    (True, False)
    """
    return _REFUSED.search(_ends_of(result)) is not None


def _ends_of(text: str) -> str:
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


@dataclass(frozen=True, slots=True)
class DoneBefore:
    """What was done in a run before the blamed step was tried for the first time.

    ``failed`` has the words of the actions that failed, without numbers; ``done`` has the words of the others, with numbers.
    """

    failed: frozenset[Deed] = frozenset()
    done: frozenset[Deed] = frozenset()


def before(run: Solution | None, blame: Blame) -> DoneBefore:
    """Return what was done in a run before the blamed step was first tried; an empty ``DoneBefore`` if the step is not found.

    >>> run = Trajectory([Step("pick up cup", "I see no cup.", failed=True), Step("move cup to box", "Unknown.", failed=True)])
    >>> said = {"action": "move cup to box", "happened": "Unknown.", "words": ("move", "cup", "to", "box")}
    >>> found = before(run, Blame(why="failed", tool=None, group="g", **said))
    >>> [sorted(words) for _, words in found.failed], found.done
    ([['cup', 'pick', 'up']], frozenset())
    """
    steps = run.steps if isinstance(run, Trajectory) else ()
    blamed = (blame.tool, blame.action)
    own = {deed for step in steps if step.failed and (step.tool, step.action) == blamed for deed in _deeds(step)}
    first = next((place for place, step in enumerate(steps) if step.failed and own.intersection(_deeds(step))), 0)
    failed = frozenset(deed for step in steps[:first] if step.failed for deed in _deeds(step))
    return DoneBefore(failed, frozenset(_exactly(step) for step in steps[:first] if not step.failed))


class SoFar:
    """What was done in the present run so far, prepared for comparison with many failures."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.failed = frozenset(deed for step in steps if step.failed for deed in _deeds(step))
        self.done = {_exactly(step): _telling(step) for step in steps if not step.failed}


def may_fail_again(then: DoneBefore, action: Step, now: SoFar) -> bool:
    """Say whether an action that failed in another run may fail again in the present one.

    There are two conditions. If other steps had failed before it in that run, at least one of them has failed in the present
    run too. And no action that shares two words with it has succeeded in the present run, unless the same action had succeeded
    in that run: otherwise the things may be in another state now.

    >>> move, no_cup = Step("move blue cup to box"), Step("pick up blue cup", "I see no cup.", failed=True)
    >>> then = DoneBefore(failed=frozenset([(None, frozenset(["pick", "up", "blue", "cup"]))]))
    >>> may_fail_again(then, move, SoFar([])), may_fail_again(then, move, SoFar([no_cup]))
    (False, True)
    >>> may_fail_again(then, move, SoFar([no_cup, Step("go to kitchen", "You are there.")]))
    True
    >>> may_fail_again(then, move, SoFar([no_cup, Step("pick up the blue cup", "You have it.")]))
    False
    """
    if then.failed and not then.failed & now.failed:
        return False
    about = _telling(action)
    return not any(len(about & words) >= _SHARED for deed, words in now.done.items() if deed not in then.done)


def _deeds(step: Step) -> Sequence[Deed]:
    return [(step.tool, words) for words in Call(step).wordings]


def _exactly(step: Step) -> Deed:
    return step.tool, frozenset(_WORD.findall(step.action[:READ].lower()))


def _telling(step: Step) -> frozenset[str]:
    """Return the words of an action that may name a thing; those of its arguments, if it is a call."""
    return Call(step).wordings[-1] - COMMON

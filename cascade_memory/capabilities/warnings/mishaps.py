"""Reads from its result why a tool call failed: an error of the world is not a mistake of the agent."""

from __future__ import annotations

import re

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

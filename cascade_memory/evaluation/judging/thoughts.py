"""Removes from a model's reply what the model thinks aloud before it answers."""

from __future__ import annotations

import re

_MARK = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]", re.IGNORECASE)


def without_thoughts(reply: str) -> str:
    r"""Return a reply without the blocks in which a model thinks; an unclosed block is removed to the end of the reply.

    Some servers write the opening mark of a block themselves, so a reply may have the closing mark alone.

    >>> without_thoughts("<think>A card, so ...</think>\n\\boxed{loan}"), without_thoughts("A card, so ...</think> loan")
    ('\\boxed{loan}', 'loan')
    >>> without_thoughts("<think>A card"), without_thoughts("a < b")
    ('', 'a < b')
    """
    kept: list[str] = []
    at, thinking, marked = 0, False, False
    for mark in _MARK.finditer(reply):
        marked = True
        if mark[1] or mark[2]:  # it closes a block
            if not thinking:
                kept.clear()
            thinking = False
        else:
            if not thinking:
                kept.append(reply[at : mark.start()])
            thinking = True
        at = mark.end()
    if not marked:
        return reply
    return "".join([*kept, "" if thinking else reply[at:]]).strip()

"""Finds the answer in a model's reply: in a box, in a code block, or the whole reply.

What the model thinks aloud before it answers is removed first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from cascade_memory.evaluation.judging.literals import literal_at, read_literal

_MARK = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]", re.IGNORECASE)
_BRACE = re.compile(r"(\\+(?:f?boxed|fbox)\s*\{)|\\[{}]|\{|\}")  # an opening box; escaped braces, which are text; plain braces
_BARE_BOX = re.compile(r"\\+f?boxed[^\S\n]+([^\s{}$]+)")  # a box without braces
_STYLE = r"text(?:bf|it|sf|rm|tt|sc|normal)?|math(?:rm|bf|it|sf|tt)|operatorname|mbox|emph|underline"
_WRAPPER = re.compile(rf"^\\(?:{_STYLE})\s*\{{(.*)\}}$|^\\\((.*)\\\)$", re.DOTALL)
_MOST_WRAPPERS = 10  # nested LaTeX commands around an answer; real answers have fewer
_ESCAPED = re.compile(r"\\([_&%#${} ])")
_FENCE = re.compile(r"```(?:[^\S\n]*(\w+))?[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
# Other names that models use for a language.
_ALSO = {
    "sql": ("sqlite", "sqlite3", "sqlite-sql", "mysql", "postgresql"),
    "python": ("py", "python3", "py3"),
    "json": ("jsonl",),
}
_MOST_CHARS = 1_000_000  # of a reply that are read; what a runaway model writes after that is ignored


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


def boxed(reply: str) -> str | None:
    r"""Return the content of the last closed box without surrounding LaTeX; None if there is no such box.

    >>> boxed(r"First \boxed{a}, no: $\boxed{\text{card\_arrival}}$.")
    'card_arrival'
    >>> boxed(r"\boxed{{1, 2}}"), boxed(r"\boxed{never closed"), boxed("card arrival")
    ('{1, 2}', None, None)
    """
    reply = reply[-_MOST_CHARS:]
    open_: list[int | None] = []  # for each open brace: where the text of its box begins, or None for a plain brace
    last: tuple[int, int] | None = None
    for match in _BRACE.finditer(reply):
        if match[1]:
            open_.append(match.end())
        elif match[0] == "{":
            open_.append(None)
        elif match[0] == "}" and open_:
            start = open_.pop()
            if start is not None and (last is None or start > last[0]):
                last = (start, match.start())
    if last is not None:
        return _bare(reply[last[0] : last[1]])
    unbraced = _BARE_BOX.findall(reply)
    return _bare(unbraced[-1].rstrip(".,;")) if unbraced else None


def answer_in(reply: str) -> str:
    """Return the content of the last box, or the whole reply if there is no box."""
    found = boxed(reply)
    return reply[-_MOST_CHARS:].strip() if found is None else found


def code_in(reply: str, language: str) -> str:
    r"""Return the last code block in a language (or without one), otherwise the content of a box, otherwise the whole reply.

    >>> code_in("Here:\n```sql\nSELECT 1\n```\nand so on", "sql")
    'SELECT 1'
    """
    blocks = _FENCE.findall(reply[-_MOST_CHARS:])
    names = (language, *_ALSO.get(language, ()))
    named = [code for name, code in blocks if name.lower() in names] or [code for name, code in blocks if not name]
    return named[-1].strip() if named else answer_in(reply)


def json_in(reply: str) -> Any:
    r"""Return the JSON or Python data in a reply: from a box, from a code block, or else the last data that can be read.

    >>> json_in('The charges are {"Li": ["theft"]}, I believe.'), json_in(r"\boxed{[1, 2]}"), json_in("none")
    ({'Li': ['theft']}, [1, 2], None)
    >>> json_in("{'Li': ['theft']}")
    {'Li': ['theft']}
    """
    for text in (boxed(reply), code_in(reply, "json")):
        found = read_literal(text) if text is not None else None
        if found is not None:
            return found
    return _last_data(reply[-_MOST_CHARS:])


def objects_in(reply: str) -> list[Mapping[str, Any]] | None:
    r"""Return the objects in a reply, in their order: one in each line, or all in one list; None if there are none.

    Lines that do not begin with a brace are passed over.

    >>> objects_in("{'entity': 'Yuan', 'label': 'negative'}\n{'entity': 'Euro', 'label': 'neutral'}")
    [{'entity': 'Yuan', 'label': 'negative'}, {'entity': 'Euro', 'label': 'neutral'}]
    >>> objects_in('[{"entity": "Yuan"}]'), objects_in("The Yuan falls.")
    ([{'entity': 'Yuan'}], None)
    """
    lines = [line.strip().rstrip(",") for line in code_in(reply, "json").split("\n") if line.lstrip().startswith("{")]
    found: Any = [read_literal(line) for line in lines] if len(lines) <= _MOST_LINES else None
    if not lines or not _are_objects(found):
        found = json_in(reply)
        found = [found] if isinstance(found, Mapping) else found
    return cast("list[Mapping[str, Any]]", found) if _are_objects(found) else None


def _are_objects(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, Mapping) for one in cast("list[Any]", found))


def _bare(text: str) -> str:
    text = text.strip().strip("$").strip()
    for _ in range(_MOST_WRAPPERS):
        match = _WRAPPER.match(text)
        if match is None or not _is_whole(inside := match[match.lastindex or 0]):
            break
        text = inside.strip()
    return _ESCAPED.sub(r"\1", text).strip()


def _is_whole(text: str) -> bool:
    """Say whether the braces of a text are balanced, as they are not if it begins in one LaTeX command and ends in another."""
    depth = 0
    for match in _BRACE.finditer(text):
        depth += 1 if match[0].endswith("{") and len(match[0]) != 2 else -1 if match[0] == "}" else 0
        if depth < 0:
            return False
    return depth == 0


_MOST_STARTS = 64  # brackets at which data may begin: a reply that consists of brackets must not take forever
_MOST_LINES = 1_000


def _last_data(text: str) -> Any:
    found, at = None, 0
    for _ in range(_MOST_STARTS):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            break
        read = literal_at(text, min(starts))
        if read is None:
            at = min(starts) + 1
        else:
            found, at = read
    return found

"""Prepares texts for people and prompts: writes out invisible characters, keeps texts within their lines, cuts long texts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar, cast

# Unicode's default-ignorable characters, assigned or not, with the marks of direction and of annotations.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Scripts that are written from right to left, and scripts with joined letters.
_LEFTWARD = "\u05be-\u05ff\u0608-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_JOINING = (
    "\u0620-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af\u1a00-\u1aff\u1b00-\u1c4f\ua800-\ua82f"
    "\ua840-\ua8ff\ua930-\ua9df\uaa60-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010aff\U00011000-\U00011fff"
    "\U0001e900-\U0001e95f"
)
_FLAGS = ("gbeng", "gbsct", "gbwls")  # the regions that have flag emoji; other tags after a black flag may hide a message
_NEEDED = "|".join(
    [
        f"\U0001f3f4(?:{'|'.join(''.join(chr(0xE0000 + ord(c)) for c in region) for region in _FLAGS)})\U000e007f",
        f"(?<=[{_PICTURES}0-9#*])[\ufe0e\ufe0f]",  # shows a character as text or as a picture
        f"(?:(?<=[{_PICTURES}])|(?<=[{_PICTURES}]\ufe0f))\u200d(?=[{_PICTURES}])",  # joins emoji, such as a family
        f"(?<=[{_JOINING}])[\u200c\u200d]",
        "(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]",  # chooses the shape of a Mongolian letter
        f"(?:(?<=[{_LEFTWARD}])[\u061c\u200e\u200f]|[\u061c\u200e\u200f](?=[{_LEFTWARD}]))",
        "(?<=[^\\W\\d_])\u00ad(?=[^\\W\\d_])",  # a soft hyphen within a word
    ]
)
# Control characters except tab and the ends of lines in files, every other character that is a line break to some program,
# and halves of characters, which UTF-8 cannot hold.
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_HIDDEN = re.compile(f"[{_UNSEEN}{_CONTROL}]|\r(?!\n)")
_NEEDED_OR_HIDDEN = re.compile(f"({_NEEDED})|[{_UNSEEN}{_CONTROL}]|\r(?!\n)")
_LINE_END = re.compile("[\r\n]")
# The first sign of a word by which the templates of chat models end a turn or begin another one: many servers let their
# tokenizer find such words wherever they stand. ChatML and Llama 3 write <|im_end|>, DeepSeek the same with wide bars, Gemma 4
# <|turn> and <turn|>, EXAONE [|user|].
_TURN = re.compile(
    "<(?=[|\uff5c][^<>\\s]{1,60}>|[^<>\\s|\uff5c]{1,60}[|\uff5c]>|/?(?:s|bos|eos|(?:start|end)_of_turn|think|tool_call|tool_response)>|</?SYS>>)"
    "|\\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK)\\])"
    "|\\[(?=\\|[^\\[\\]\\s]{1,40}\\|\\])"
)


def visible(text: str) -> str:
    r"""Prepare a text for people: write out what is invisible, changes the direction of text or commands a terminal.

    The only line breaks that are left are those of files: ``\n`` and ``\r\n``.

    >>> visible("pay bob\u202e\U000e0041"), visible("\x1b[2J paid\u2028\r\n")
    ('pay bob<U+202E><U+E0041>', '<U+001B>[2J paid<U+2028>\r\n')
    """
    return text if _plain(text) else _HIDDEN.sub(_written, text)


def on_one_line(text: str) -> str:
    r"""Prepare a text for people in a place that has one line: line breaks are written out.

    A second line would look as if somebody else had written it.

    >>> on_one_line("fine\nwho   ann")
    'fine<U+000A>who   ann'
    """
    return text if _plain(text) else _LINE_END.sub(_written, visible(text))


def indented(text: str, by: str = "  ") -> str:
    r"""Prepare a text for people in a place that may have several lines: all but the first are indented.

    The indentation shows that these lines belong to the text.

    >>> indented("fine\nwho   ann")
    'fine\n  who   ann'
    """
    return text if _plain(text) else f"\n{by}".join(visible(text).splitlines())


def legible(text: str) -> str:
    r"""Prepare a text for a prompt: invisible characters are written out, unless the script or an emoji needs them.

    The same happens to words by which chat models tell one turn of a conversation from the next: a text that contains one would
    end the user's turn and speak as somebody else.

    >>> legible("pay bob\u200b"), legible("\U0001f468\u200d\U0001f469") == "\U0001f468\u200d\U0001f469"
    ('pay bob<U+200B>', True)
    >>> legible("done<|im_end|>")
    'done<U+003C>|im_end|>'
    """
    if not _plain(text) and _HIDDEN.search(text) is not None:
        text = _NEEDED_OR_HIDDEN.sub(_written_unless_needed, text)
    return _TURN.sub(_written, text) if "<" in text or "[" in text else text


def legible_within(value: Any) -> Any:
    r"""Prepare every text in a value of JSON for a prompt, the names of its fields included.

    >>> legible_within({"note": ["pay bob\u200b", 2]})
    {'note': ['pay bob<U+200B>', 2]}
    """
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, Mapping):
        return {legible(str(name)): legible_within(one) for name, one in cast("Mapping[Any, Any]", value).items()}
    return [legible_within(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def shortened(text: str, limit: int) -> str:
    """Cut the middle of a text that is longer than the limit, and say there how much was cut.

    The end is kept, since the end of a trajectory often holds what solved the task.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit:,} characters cut ...]\n{text[len(text) - tail :]}"


def fitting(text: str, limit: int) -> str:
    """Cut the middle out of a text that is too long, with a note on it, and write characters out that nobody would see.

    With characters written out, the text may have up to twice the limit.
    """
    return shortened(legible(shortened(text, limit)), 2 * limit)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _written(found: re.Match[str]) -> str:
    return f"<U+{ord(found.group()):04X}>"


def _written_unless_needed(found: re.Match[str]) -> str:
    return found.group() if found.group(1) is not None else _written(found)


_Shown = TypeVar("_Shown")


def as_moment(name: str, value: object) -> str | None:
    """Write a time as UTC, to the minute; return None if the field holds no time, or one that is unset or impossible.

    >>> as_moment("created_at", 1_764_237_600.0), as_moment("reward", 1.0)
    ('2025-11-27T10:00Z', None)
    """
    if not (isinstance(value, float) and value > 0 and (name == "at" or name.endswith(("_at", "_seen")))):
        return None
    try:
        return datetime.fromtimestamp(value, timezone.utc).strftime("%Y-%m-%dT%H:%MZ")
    except (ValueError, OverflowError, OSError):  # of an edited ledger
        return None


def shown_visibly(one: type[_Shown]) -> type[_Shown]:
    """Make the ``repr`` of a dataclass write out invisible characters and times; Python's own leaves both as they are."""

    def written(self: Any) -> str:
        shown = (field.name for field in dataclasses.fields(self) if field.repr)
        values = ((name, getattr(self, name)) for name in shown)
        parts = (f"{name}={as_moment(name, value) or repr(value)}" for name, value in values)
        return visible(f"{type(self).__qualname__}({', '.join(parts)})")

    one.__repr__ = written  # pyright: ignore[reportAttributeAccessIssue] - a function becomes a method there
    return one

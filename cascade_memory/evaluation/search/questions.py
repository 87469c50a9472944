"""The files of the deep-search stream: questions with their right answers, and the passages of an encyclopedia."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.tasks.task import Item, read_items

MOST = 1_000_000  # passages; their vectors alone take 1.5 GB, and every search reads all of them
# The published layout comes first: a folder for each task. The other files are of our own selection.
QUESTIONS = ("2wiki/2wiki.jsonl", "2wiki.jsonl", "2wiki_rag.jsonl")
PASSAGES = ("2wiki/corpus.jsonl", "2wiki/source/wiki-18.jsonl", "2wiki_corpus.jsonl")
_MOST_ANSWERS = 100  # right answers to one question


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph with the title of its article."""

    title: str
    text: str


def read_passages(path: Path) -> list[Passage]:
    """Read JSON lines with ``title`` and ``text``, or with ``contents``: the title in quotes, a line break, the text.

    The second form is that of the dump of Wikipedia which the paper searches. More than ``MOST`` passages are refused.
    """
    passages: list[Passage] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, place in _lines(file, path):
                passages.append(_passage(line, place))
                if len(passages) > MOST:
                    raise InvalidInput(
                        f"{path} has more than {MOST:,} passages, and every search would compare all of them, in RAM. "
                        "Run a search server with an index of its own, and name it: bench run --search URL"
                    )
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    if not passages:
        raise InvalidInput(f"{path} holds no passages")
    return passages


def _lines(file: Any, path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield line, f"{path}, line {number}"


def _passage(line: str, place: str) -> Passage:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place} is not JSON: {error}") from error
    fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    title, text = fields.get("title"), fields.get("text")
    contents = fields.get("contents")
    if text is None and isinstance(contents, str):
        first, _, text = contents.partition("\n")
        title = first.strip().strip('"')
    if not isinstance(title, str) or not isinstance(text, str) or not (title + text).strip():
        raise InvalidInput(f'{place} needs "title" and "text", or "contents" with a title, a line break and a text')
    return Passage(title, text)


def first_of(names: Sequence[str], data: Path) -> Path | None:
    """Return the first of these files that exists in the folder; None if none does."""
    return next((data / name for name in names if (data / name).is_file()), None)


def lacking(data: Path, *, passages: bool = True) -> str | None:
    """Say which file is missing; None if none is. With a search server, no passages are needed.

    >>> lacking(Path("nowhere"))
    'no questions for 2wiki in nowhere (2wiki/2wiki.jsonl): cascade-memory bench data says where to get them'
    """
    if first_of(QUESTIONS, data) is None:
        return f"no questions for 2wiki in {data} ({QUESTIONS[0]}): cascade-memory bench data says where to get them"
    if passages and first_of(PASSAGES, data) is None:
        return (
            f"no passages for 2wiki in {data} ({PASSAGES[0]}): cascade-memory bench data says where to get them; "
            "or let a model search with a server of yours: --search"
        )
    return None


def read_questions(data: Path) -> list[Item]:
    """Read the questions; the label of each becomes the list of its right answers, at least one."""
    path = first_of(QUESTIONS, data)
    if path is None:
        raise InvalidInput(str(lacking(data)))
    return [Item(item.query, right_answers(item, path), item.fields) for item in read_items(path)]


def right_answers(item: Item, path: Path) -> list[str]:
    """Return the right answers: the label, a text or a list of texts, and the ``aliases`` if the line has any.

    >>> right_answers(Item("Who?", "Ada", {"aliases": ["Ada Lovelace"]}), Path("2wiki.jsonl"))
    ['Ada', 'Ada Lovelace']
    """
    fields: Mapping[str, Any] = item.fields
    found: list[str] = []
    for name, given in (("label", item.label), ("aliases", fields.get("aliases") or [])):
        many = cast("list[Any]", given) if isinstance(given, list) else [given]
        if not all(isinstance(one, str) and one.strip() for one in many):
            raise InvalidInput(
                f"{path}: the {name} of {item.query[:80]!r} must be a text, or a list of texts that are not empty"
            )
        found += many
    if not 0 < len(found) <= _MOST_ANSWERS:
        raise InvalidInput(f"{path}: {item.query[:80]!r} needs 1 to {_MOST_ANSWERS} right answers, not {len(found)}")
    return list(dict.fromkeys(found))

"""Rewards that compare an answer with a label, or with a name, a place, a date, yes or no.

Each takes a model's whole reply and returns 0 or 1.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from cascade_memory.evaluation.judging.answers import answer_in, json_in, objects_in
from cascade_memory.evaluation.judging.literals import read_literal

_LONGEST = 1_000  # characters of an answer that is compared; a longer one is not a short answer
_INTRODUCTION = re.compile(r"^\W*(?:final )?answer\W*:\s*", re.IGNORECASE)
_MONTHS = frozenset(month.casefold() for month in calendar.month_name if month)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_SPACE = re.compile(r"[\s_]+")
_BETWEEN = re.compile(r"[,;\n、，；]")


def short_answer(reply: str, right: Sequence[str]) -> float:
    r"""Reward a reply that is one of the right answers and nothing more.

    Capitals, accents and punctuation do not matter, nor does the order in a date.

    >>> short_answer("The Netherlands.", ["Netherlands"]), short_answer("Answer: March 20, 851", ["20 March 851"])
    (1.0, 1.0)
    >>> short_answer("Paris or London", ["Paris"]), short_answer("", ["Paris"])
    (0.0, 0.0)
    """
    given = answer_in(reply).strip()
    if len(given) > _LONGEST:
        return 0.0
    words = _words(_INTRODUCTION.sub("", given))
    return float(bool(words) and any(words == _words(one) for one in right))


def plain(text: str) -> str:
    """Return a text without case, accents, punctuation and articles.

    >>> plain("The Café-Concert!")
    'cafe concert'
    """
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(word for word in re.findall(r"\w+", bare.casefold()) if word not in {"a", "an", "the"})


def _words(text: str) -> list[str]:
    words = plain(text).split()
    if len(words) <= 3 and any(word in _MONTHS for word in words):  # a date: "20 March 851" is "March 20, 851"
        return sorted(_ORDINAL.sub(r"\1", word) for word in words)
    return words


def normal(text: object) -> str:
    """Normalise a label for comparison: lower case, no quotes or full stops around it, underscores as spaces.

    >>> normal(" 'Card_Arrival'. "), normal("Guillain-Barré  syndrome")
    ('card arrival', 'guillain-barré syndrome')
    """
    usual = unicodedata.normalize("NFKC", str(text))
    return _SPACE.sub(" ", usual).strip(" .。\"'`*“”‘’").casefold()


def exact(reply: str, label: object) -> float:
    r"""Reward a reply that gives exactly the right label.

    >>> exact(r"It is \boxed{Card arrival}", "card_arrival"), exact(r"\boxed{card arrival, lost card}", "card arrival")
    (1.0, 0.0)
    """
    return float(bool(normal(label)) and normal(answer_in(reply)) == normal(label))


def one_of(reply: str, label: str | Sequence[str]) -> float:
    r"""Reward a reply that gives exactly one of the right labels; a label may be one text, a list, or a list written as a text.

    >>> one_of(r"\boxed{cardiology}", ["Cardiology", "Internal Medicine"]), one_of(r"\boxed{urology}", "['Cardiology']")
    (1.0, 0.0)
    """
    listed = read_literal(label) if isinstance(label, str) and label.lstrip().startswith("[") else label
    right = cast("list[object]", listed) if isinstance(listed, list) else [label]
    return max((exact(reply, one) for one in right), default=0.0)


def jaccard(reply: str, label: str | Iterable[str], *, above: float = 0.2) -> float:
    r"""Reward a set that overlaps with the right one: more than the share ``above`` of their union is in both sets.

    A label that is a text is split at commas, as the reply is.

    >>> jaccard(r"\boxed{aspirin, insulin}", ["Insulin", "Heparin"]), jaccard(r"\boxed{[]}", ["Insulin"])
    (1.0, 0.0)
    >>> jaccard("aspirin, insulin", "Insulin, Heparin")
    1.0
    """
    wanted = _items(label) if isinstance(label, str) else {normal(one) for one in label} - {""}
    given = _items(reply)
    return float(bool(wanted & given) and len(wanted & given) / len(wanted | given) > above)


def every_defendant(reply: str, label: Mapping[str, Any]) -> float:
    """Reward a reply with the right charges or penalties for every defendant, and with no other defendant.

    The order of several charges does not matter, but each must be said as often as in the label.

    >>> every_defendant('{"Chen": ["robbery"], "Liu": "theft"}', {"Chen": "robbery", "Liu": ["theft"]})
    1.0
    """
    given = json_in(reply)
    if not isinstance(given, Mapping):
        return 0.0
    found = cast("Mapping[Any, Any]", given)
    mine = {normal(name): _values(value) for name, value in found.items()}
    if len(mine) != len(found):  # a defendant occurs twice
        return 0.0
    return float(bool(label) and mine == {normal(name): _values(value) for name, value in label.items()})


def every_entity(reply: str, label: Sequence[Mapping[str, str]]) -> float:
    """Reward a reply with the right sentiment for every entity, and with no other entity.

    An entity that the label names twice must be given twice, and one that it names once must be given once. The order does
    not matter.

    >>> every_entity("{'entity': 'Yuan', 'label': 'negative'}", [{"entity": "yuan", "label": "negative"}])
    1.0
    >>> every_entity('{"Yuan": "negative", "Dollar": "positive"}', [{"entity": "yuan", "label": "negative"}])
    0.0
    """
    given = _pairs(objects_in(reply))
    wanted = Counter((normal(one["entity"]), normal(one["label"])) for one in label)
    return float(bool(wanted) and given is not None and Counter(given) == wanted)


def _pairs(given: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, str]] | None:
    if given is None:
        return None
    if len(given) == 1 and not set(given[0]) <= {"entity", "label", "sentiment"}:  # {"Yuan": "negative", "Euro": "neutral"}
        return [(normal(entity), normal(sentiment)) for entity, sentiment in given[0].items()]
    pairs: list[tuple[str, str]] = []
    for one in given:
        sentiment = one.get("label", one.get("sentiment"))
        if "entity" not in one or sentiment is None:
            return None
        pairs.append((normal(one["entity"]), normal(sentiment)))
    return pairs


def _items(reply: str) -> set[str]:
    given = json_in(reply)
    if isinstance(given, list):
        return {normal(one) for one in cast("list[Any]", given)} - {""}
    return {normal(one.strip().lstrip("-*•").strip()) for one in _BETWEEN.split(answer_in(reply))} - {""}


def _values(value: Any) -> list[str]:
    many = cast("list[Any]", value) if isinstance(value, list) else [value]
    return sorted(normal(one) for one in many)

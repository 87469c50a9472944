"""SEntFiN: headlines of financial news, and the sentiment about each entity."""

from __future__ import annotations

import re
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, table_of, words_of

_FILE = "SEntFiN.csv"
# Not a Python literal: the quotes around an entity stay the same even if it has an apostrophe.
_DECISION = re.compile(
    r"""\s*(?P<quote>['"])(?P<entity>.+?)(?P=quote)\s*:\s*['"](?P<sentiment>positive|negative|neutral)['"]\s*(?:,|$)"""
)


def convert(source: Path, count: int) -> Converted:
    """Draw headlines; the entities of each are in the order of the headline."""
    rows: list[Row] = []
    for index, line in enumerate(table_of(source, ("Title", "Decisions"), _FILE)):
        headline = words_of(line["Title"])
        decisions = _decisions(line["Decisions"])
        if not decisions:
            raise InvalidInput(f"{source / _FILE}: row {index + 1} should name entities, each with its sentiment")
        named = sorted(decisions, key=lambda entity: headline.lower().find(entity.lower()) % (len(headline) + 1))
        label = [{"entity": entity, "label": decisions[entity]} for entity in named]
        rows.append({"task": headline, "label": label, "orig_index": index})
    return {"sentifin.jsonl": drawn(rows, count)}


def _decisions(text: str) -> dict[str, str]:
    """Read the sentiment of each entity; an empty dictionary if any part of the text cannot be read.

    >>> _decisions("{'Sebi': 'neutral', 'Osian's Art Fund': 'positive'}")
    {'Sebi': 'neutral', "Osian's Art Fund": 'positive'}
    """
    inner, at, found = text.strip().removeprefix("{").removesuffix("}"), 0, dict[str, str]()
    while at < len(inner):
        one = _DECISION.match(inner, at)
        if one is None:
            return {}
        found[one["entity"]] = one["sentiment"]
        at = one.end()
    return found


SENTIFIN = Converter(
    get="git clone https://github.com/pyRis/SEntFiN",
    reads=(_FILE,),
    rows=2_299,
    tried="the repository at commit eba4361",
    convert=convert,
)

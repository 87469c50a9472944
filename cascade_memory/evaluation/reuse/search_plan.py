"""Plans for questions that need several searches: read from a question or from a case, adapted, and carried out.

The plan of a case is its first thought. It says whether to go from a name to somebody else (a director, a father) before
anything is looked up, and whether to search for two names separately. The question says whom and what to look up. Names and
facts are read with patterns (``search_reading.py``). With the right plan for every question, 56 % of our 97 questions would be
answered right.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from cascade_memory.evaluation.reuse.search_reading import about, fact, names, when
from cascade_memory.evaluation.search.passages import Passage

KNOWN = 0.35  # the share of questions that it can plan without a case
_PLAN = re.compile(r"Plan: of each name, follow \[([^\]]*)\], look up the ([\w ]+), give (\w+)")
_LINKS = {
    "director": r"director",
    "performer": r"performer",
    "composer": r"composer",
    "father": r"father(?!-in)",
    "mother": r"\bmother(?!-in)",
    "spouse": r"husband|wife|-in-law",
}
_ASKED = {
    "life span": r"lived longer",
    "death date": r"date of death|\bdied (?:first|later|earlier)|When did .* die",
    "death place": r"place of death|Where did .* die",
    "birth place": r"place of birth|Where was .* born|in the same place",
    "birth date": r"date of birth|\bborn\b|older|younger",
    "release": r"released|came out|established",
    "country": r"countr|nationality",
    "father": r"father-in-law|grandfather|the father of",
    "mother": r"mother-in-law|stepmother|the mother of",
    "child": r"the child of|child-in-law",
    "spouse": r"the spouse of",
}


@dataclass(frozen=True)
class Plan:
    """How to search: the links to follow from a name, the fact to look up there, and how to make the answer from it."""

    links: tuple[str, ...]
    asked: str
    give: str = "it"  # or, for two names: "earlier", "later", "same"

    def __str__(self) -> str:
        return f"Plan: of each name, follow [{', '.join(self.links)}], look up the {self.asked}, give {self.give}"


def understood(question: str) -> Plan:
    """Return the plan that fits the words of a question.

    >>> print(understood("Where was the director of film Jaws born?"))
    Plan: of each name, follow [director], look up the birth place, give it
    """
    asked = next((asked for asked, words in _ASKED.items() if re.search(words, question)), "birth place")
    links = tuple(link for link, words in _LINKS.items() if re.search(words, question) and link != asked)
    if "paternal grandfather" in question:
        links = ("father",)
    if len(names(question)) < 2:
        return Plan(links, asked)
    if re.match(r"Are|Do|Did|Were|Have|Is", question):
        return Plan(links, asked, "same")
    return Plan(links, asked, "later" if re.search(r"later|younger|longer", question) else "earlier")


def adapted(case: str, question: str) -> Plan | None:
    """Return the plan in the text of a case, adapted to this question; None if there is no plan, or if it does not fit."""
    match = _PLAN.search(case)
    if match is None or (match[3] == "it") is not (len(names(question)) == 1):
        return None
    ours = understood(question)
    return replace(ours, links=(ours.links or tuple(match[1].split(", "))) if match[1] else ())


def carry_out(question: str, plan: Plan | None) -> Generator[str, Sequence[Passage], str]:
    """Yield each search query, receive the passages that were found, and return the answer."""
    subjects = names(question) or [question]
    if plan is None:  # one search, and an answer from the first passage
        found = yield question
        if len(subjects) > 1:
            return "yes" if re.match(r"Are|Do|Did|Were", question) else subjects[0]
        return (fact(understood(question).asked, found[0]) if found else "") or "unknown"
    facts: list[str] = []
    for subject in subjects[:2]:
        name = subject
        for link in (*plan.links, plan.asked):
            passage = about(name, (yield name))
            name = fact(link, passage) if passage else ""
            if not name:
                break
        facts.append(name)
    if plan.give == "it":
        return facts[0] or "unknown"
    if plan.give == "same":
        return "yes" if facts[0] and facts[0] == facts[1] else "no"
    first, second = (_place_in_order(plan, one) for one in facts)
    if first is None or second is None:
        return subjects[0]
    return subjects[(second > first) is (plan.give == "later")]


def _place_in_order(plan: Plan, found: str) -> int | None:
    """Return a number by which facts are ordered: the days of a life, or the days since the beginning of the calendar."""
    if plan.asked == "life span" and found:
        return int(found)
    day: date | None = when(found)
    return None if day is None else day.toordinal()

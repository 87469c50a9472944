"""A SIMULATED model. It follows the plan of a shown case; otherwise it can plan a declared share of the questions by itself.

For the rest it searches once, and answers from the first passage. From a case it takes the plan in the first thought: whether
to go from a name to somebody else (a director, a father) before it looks anything up, and whether to search for two names
separately. Whom and what to look up it reads in the question. It reads names and facts with regular expressions
(``reading.py``). With the right plan for every question it would answer 56 % of them.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from passages import Passage
from reading import about, fact, names, when

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
    """Return the plan that fits the words of a question."""
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
    """Return the plan of the first case in a prompt, adapted to this question; None if there is none, or if it does not fit."""
    match = _PLAN.search(case)
    if match is None or (match[3] == "it") is not (len(names(question)) == 1):
        return None
    ours = understood(question)
    return replace(ours, links=(ours.links or tuple(match[1].split(", "))) if match[1] else ())


def carry_out(question: str, plan: Plan | None) -> Generator[str, list[Passage], str]:
    """Yield each search query, receive the passages that were found, and return the answer."""
    subjects = names(question)
    if plan is None:  # one search, and an answer from the first passage
        found = yield question
        if len(subjects) > 1:
            return "yes" if re.match(r"Are|Do|Did|Were", question) else subjects[0]
        return (found and fact(understood(question).asked, found[0])) or "unknown"
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
    order = [int(one) if plan.asked == "life span" and one else when(one) for one in facts]
    if None in order:
        return subjects[0]
    return subjects[(order[1] > order[0]) is (plan.give == "later")]  # type: ignore[operator]


class ScriptedModel(BaseChatModel):
    """Answers questions with a tool ``search(query)``. The seed decides which questions it can plan by itself."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the model itself: the one tool is built into it."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next message. Earlier results are replayed from the messages, so that no state is kept between calls."""
        prompt = next(str(message.text) for message in messages if message.type == "human")
        question = prompt.rsplit("\n", 1)[-1]
        known = random.Random(f"{self.seed} {question}").random() < KNOWN
        plan = adapted(prompt, question) or (understood(question) if known else None)
        way = carry_out(question, plan)
        try:
            query = next(way)
            for message in messages:
                if message.type == "tool":
                    if message.status == "error":  # no more searches are allowed
                        return AIMessage("unknown")
                    query = way.send([Passage(**passage) for passage in json.loads(str(message.text))])
        except StopIteration as end:
            return AIMessage(end.value)
        call = {"name": "search", "args": {"query": query}, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
        return AIMessage(content=str(plan or ""), tool_calls=[call])

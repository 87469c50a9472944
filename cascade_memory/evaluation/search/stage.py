"""Deep search as a stage, with a language model as the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade_memory import with_tool_calls
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.search_stage import embedder_in, passages_of
from cascade_memory.evaluation.bench.stage import Folders, Stage, data_differs, in_order
from cascade_memory.evaluation.judging.labels import short_answer
from cascade_memory.evaluation.judging.model_judge import ModelJudge
from cascade_memory.evaluation.model.asking import Asking
from cascade_memory.evaluation.model.chat import Message, TakesTools
from cascade_memory.evaluation.search.agent import SearchingSolver
from cascade_memory.evaluation.search.questions import read_questions
from cascade_memory.evaluation.search.settings import Searching
from cascade_memory.evaluation.search.tool import MCPTool, PassageTool, SearchTool, schema

_CRITERIA = (
    "the work answers the question, and its answer means the same as one of the right answers; other words for the same thing "
    "are right, several different answers are not"
)
_TRIES = 3


def by_labels(question: str, answer: str, right: Sequence[str]) -> float:  # noqa: ARG001 - the signature of a judge
    """Reward an answer that is one of the right answers.

    >>> by_labels("Who wrote it?", "ada lovelace", ["Ada Lovelace"])
    1.0
    """
    return short_answer(answer, right)


class ByModel:
    """Asks a model whether an answer means the same as one of the right ones, as the paper does.

    If the model gives no verdict in several tries, the answer counts as wrong, as in the paper; ``silent`` counts how often.
    """

    def __init__(self, ask: Callable[[Sequence[Message]], str]) -> None:
        self._judge = ModelJudge(ask, _CRITERIA)
        self.silent = 0

    def __call__(self, question: str, answer: str, right: Sequence[str]) -> float:
        """Return the reward."""
        known = "\n".join(f"- {one}" for one in right)
        for _ in range(_TRIES):
            verdict = self._judge.verdict(question, answer, known)
            if verdict is not None:
                return float(verdict > 0.5)
        self.silent += 1
        return 0.0


def tool_of(searching: Searching, folders: Folders, model: str = "") -> SearchTool:
    """Return the search tool: connect to the search server, or index the passages on this machine."""
    if searching.server is not None:
        return MCPTool(searching.server, tool=searching.tool)
    return PassageTool(passages_of(folders.data, searching.retrieval, folders.work, model))


def searching_stage(asked: Asking, searching: Searching, declared: Mapping[str, Any], run: Run, folders: Folders) -> Stage:
    """Build the stage: the questions in the order of the seed, and a model that calls a search tool.

    ``asked`` asks the model without tools. The stage asks the same model with the search tool, with the same log and prices.
    """
    model = asked.chat
    if not isinstance(model, TakesTools):
        raise InvalidInput(
            f"the model {model.name} cannot call tools: deep search needs OpenAICompatible, AnyChatModel or the like"
        )
    items = in_order(read_questions(folders.data)[: run.limit], run)
    embedder = folders.model(run, "embedder")
    tool = tool_of(searching, folders, embedder)
    chat = model.with_tools([schema(tool)])
    asking = asked.of(chat)
    judging, judge = None, by_labels
    if searching.judge is not None:
        log = asked.log
        judging = Asking(searching.judge, log=None if log is None else log.with_name(f"judge-{log.name}"))
        judge = ByModel(judging)
    solver = SearchingSolver(items, asking, tool, judge)

    def account() -> Mapping[str, Any]:
        own = {
            **asking.account(),
            **data_differs(run, folders),
            "search": tool.about,
            "searches": solver.called,
            "searches_failed": solver.failed,
            "judged_by": "labels",
        }
        if judging is None or not isinstance(judge, ByModel):
            return own
        of_judge = {f"judge_{name}": value for name, value in judging.account().items()}
        return {**own, **of_judge, "judged_by": judging.chat.name, "judge_silent": judge.silent}

    def close() -> None:
        tool.close()
        ended = getattr(chat, "close", None)  # the copy with tools has connections of its own
        if callable(ended):
            ended()

    return Stage(
        queries=[item.query for item in items],
        solver=solver,
        embedder=embedder_in(embedder),
        declared=declared,
        case_text=with_tool_calls,
        account=account,
        close=close,
    )

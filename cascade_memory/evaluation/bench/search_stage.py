"""The stage (``stage.Stage``) of deep search, with an agent that reuses plans and searches the passages with BM25."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from pathlib import Path

from cascade_memory import with_tool_calls
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, in_order
from cascade_memory.evaluation.reuse.search import KNOWN, SearchAgent
from cascade_memory.evaluation.search.local import LocalSearch, Retrieval
from cascade_memory.evaluation.search.questions import PASSAGES, first_of, lacking, read_passages, read_questions
from cascade_memory.ports import Embedder


@cache
def embedder_in(folder: str) -> Embedder:
    """Return the embedder in a folder, one per process; it embeds texts during a run, since they are not known before it."""
    return best_embedder(folder)


@lru_cache(maxsize=2)
def passages_of(data: Path, retrieval: Retrieval, kept_in: Path, model: str = "") -> LocalSearch:
    """Index the passages of the data, once per process; their vectors are stored in the folder ``kept_in``."""
    path = first_of(PASSAGES, data)
    if path is None:
        raise InvalidInput(str(lacking(data)))
    return LocalSearch(read_passages(path), retrieval, embedder=partial(embedder_in, model), kept_in=kept_in)


def search_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the questions in the order of the seed, and the agent."""
    items = in_order(read_questions(folders.data)[: run.limit], run)
    agent = SearchAgent(items, passages_of(folders.data, "bm25", folders.work), seed=run.seed)
    return Stage(
        queries=[item.query for item in items],
        solver=agent,
        embedder=embedder_in(folders.model(run, "embedder")),
        declared={"planned": KNOWN, "search": "bm25"},
        alone=[agent.attempt(place, ()).success for place in range(len(items))],
        case_text=with_tool_calls,
    )

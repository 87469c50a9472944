"""The paper's experiments in parts: all methods play tasks with one answer, three play tasks in which a model acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.authors import gradient_rate_of
from cascade_memory.evaluation.bench.names import GRADIENT
from cascade_memory.evaluation.bench.on_reranker import RERANKED
from cascade_memory.evaluation.bench.plan import PAPER
from cascade_memory.evaluation.bench.stages import WORLDS, lacking
from cascade_memory.evaluation.environments.household.official import official_games
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, CREDENTIALED

# Figure 3 and the tables of the supplement, in the paper's order; then the human in the loop.
ANSWERED_WITH = (
    "zero-shot",
    "ICRL",
    "ICRLPlus",
    "NP-CBR",
    "Neural-LinLogUCB",
    "Neural-LinLogUCB without exploration",
    "LinLogUCB",
    "NeuralLogUCB",
    "Neural-LinUCB",
    "NP-CBR + revision",
    "Neural-LinLogUCB + revision",
    *(f"Neural-LinLogUCB + discovery by {metric}" for metric in ("Random", "Explore", "Exploit", "UCB")),
)
ACTED_WITH = ("zero-shot", "NP-CBR", "Neural-LinLogUCB")
METHODS = tuple(dict.fromkeys((*ANSWERED_WITH, *RERANKED, *GRADIENT)))
SEARCHED, HOUSEHOLD = "2wiki", "alfworld"
_NOT_TO_BE_SENT = "its licence forbids to send it to the maker of a model, and the paper leaves it out there"


@dataclass(frozen=True, slots=True)
class Part:
    """Tasks that are played with the same methods by the same solver."""

    name: str
    tasks: Sequence[str]
    methods: Sequence[str]


def parts(
    data: Path,
    *,
    gradient: bool,
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    passages: bool = True,
    licensed: bool = True,
) -> tuple[list[Part], Mapping[str, str]]:
    """Split the suite into parts; return them, and for each task that cannot be played the reason.

    With ``gradient``, a model in this process is trained; otherwise a model behind a server plays with every kind of memory.
    ``tasks`` and ``methods`` narrow the suite down. ``licensed=False`` leaves out tasks whose licence forbids to send them to
    the maker of a model, unless ``tasks`` names them. ``passages=False`` says that a server searches for the task 2wiki, so
    that no passages are needed in ``data``.

    >>> found, absent = parts(Path(), gradient=False, tasks=["banking77"])
    >>> found, list(absent)
    ([], ['banking77'])
    """
    wanted = [name for name in PAPER if tasks is None or name in tasks]
    if not data.is_dir():
        raise InvalidInput(f"there is no folder of data at {data}")
    absent = {name: why for name in wanted if (why := _why_not(name, data, passages, gradient)) is not None}
    if HOUSEHOLD in wanted and HOUSEHOLD not in absent and tasks is None and official_games(data) is None:
        absent[HOUSEHOLD] = "alfworld: no official games; --tasks alfworld plays generated ones instead"
    if not licensed and tasks is None:
        absent |= {name: f"{name}: {_NOT_TO_BE_SENT}" for name in wanted if CATALOGUE[name].licence == CREDENTIALED}
    there = [name for name in wanted if name not in absent]
    answered = [name for name in there if name not in WORLDS]
    acted = [name for name in there if name in WORLDS and name != SEARCHED]
    planned = [
        Part("asked and answered", answered, _of(ANSWERED_WITH, methods)),
        Part("in worlds", acted, _of(ACTED_WITH, methods)),
        Part("deep search", [name for name in there if name == SEARCHED], _of(ACTED_WITH, methods)),
    ]
    if gradient:
        trained = [one for one in GRADIENT if methods is None or one in methods]
        rates = {name: gradient_rate_of(name) for name in answered}  # a part for each of the authors' learning rates
        planned = [
            Part("gradients", [name for name in answered if rates[name] == rate], trained)
            for rate in dict.fromkeys(rates.values())
        ]
    return [part for part in planned if part.tasks and part.methods], absent


def _why_not(task: str, data: Path, passages: bool, gradient: bool) -> str | None:
    if task in WORLDS and gradient:
        return f"{task}: --gradient plays tasks with one answer each"
    if task in WORLDS:
        return lacking(task, data, passages=passages)
    if CATALOGUE[task].is_there(data):
        return None
    return f"no data for {task} in {data}: cascade-memory bench data {task} says where to get it"


def _of(usual: Sequence[str], methods: Sequence[str] | None) -> list[str]:
    """Return ``usual`` if ``methods`` is None, otherwise those of ``methods`` that are usual or use a reranker."""
    return list(usual) if methods is None else [one for one in methods if one in usual or one in RERANKED]

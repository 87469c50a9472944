"""The plan of a benchmark: its streams, methods and seeds, and the declared success rates of the solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from cascade_memory.evaluation.bench.methods import ABLATION, AGAINST_RULES, METHODS, OTHER_MEMORIES, QUICK, RIVALS
from cascade_memory.evaluation.bench.names import FILE

MATCHED, MISLED = 0.97, 0.5

# The SIMULATED solver, fixed before any run: how often it succeeds alone. These are the zero-shot rates of a 32B model in the
# paper; a task that replaces one of the paper's has the rate of that one. With a right case the solver succeeds with
# probability MATCHED; a wrong case spoils a success with probability MISLED.
ALONE = {"banking77": 0.667, "ddxplus": 0.638, "sentifin": 0.343, "rca": 0.454, "lfd": 0.5}

ASIDE = "reuse-aside"  # the solver that plays tasks on which no methods are compared
ALONE_REUSE = 0.2  # the share of tasks that a reuse agent solves without a case, by the known solution

# Streams that the simulated solver does not play: the task, and its solver. "reuse-map" is the weaker agent.
_COMPARED = {
    "scienceworld": ("scienceworld", "reuse"),
    "scienceworld-map": ("scienceworld", "reuse-map"),
    "alfworld-20": ("alfworld-20", "reuse"),
    "alfworld-30": ("alfworld-30", "reuse"),
    "spider": ("spider", "reuse"),
    "spider-map": ("spider", "reuse-map"),
}
# Tasks on which no methods are compared: agents and rankers are developed with them.
_SET_ASIDE = {f"{name}-aside": (name, ASIDE) for name in ("scienceworld", "alfworld-20", "alfworld-30", "spider", "bfcl")}
# Streams with a suite of their own.
_BESIDE = {name: (name, "reuse") for name in ("2wiki", "hospital", "llb-db", "bfcl", "bfcl-twins", "bfcl-base")}
REUSED = {**_COMPARED, **_SET_ASIDE, **_BESIDE}


@dataclass(frozen=True, slots=True)
class Run:
    """One method on one stream in one order, under certain conditions; the fields identify the row with the results."""

    task: str
    method: str
    seed: int
    limit: int | None = None
    solver: str = "simulated"
    options: str = ""  # parameters of the method, as JSON with sorted keys; those that are missing have their defaults
    rewards: str = ""  # "late=100", "missing=0.5" or "flipped=0.2"; "": rewards come at once and are true
    wrong_cases: str = ""  # "start=0.05" or "along=0.05", a share of the tasks or a number of cases; "": none
    misled: float | None = None  # the probability that a wrong case spoils a success; None: MISLED
    models: str = ""  # the reranker and the embedder, as JSON: their names with a digest; "": light features, default embedder
    order: str = ""  # FILE: the stream's own order, whatever the seed; "": shuffled by the seed
    attack: str = ""  # the kind of an attack, or "clean", and the share of malicious turns ("many=0.05"); "": no actors
    layers: str = ""  # the measures against an attack that are in force; "": all
    settings: str = ""  # which of the options were taken from the paper's authors, who have others for each task; "": none


PROCEDURES = ", procedures"  # after the name of a stream: each task has a solution of its own, in words that never recur
CONDITIONS = ("rewards", "wrong_cases", "misled")  # the fields of a run that make it harder than usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Runs that belong together.

    ``tasks`` are names of the catalogue or keys of ``REUSED``. A key of ``REUSED`` also names an agent as the solver; a name of
    the catalogue gets the simulated solver.
    """

    tasks: Sequence[str]
    methods: Sequence[str]
    seeds: int
    limit: int | None = None
    rewards: Sequence[str] = ("",)
    wrong_cases: Sequence[str] = ("",)
    misled: Sequence[float | None] = (None,)
    order: str = ""

    def runs(self) -> Iterator[Run]:
        """Yield the runs seed by seed, so that the first seeds have all methods if the benchmark is stopped early.

        >>> len(list(Suite(tasks=["rca"], methods=["zero-shot", "CASCADE"], seeds=3).runs()))
        6
        """
        every = product(range(self.seeds), self.tasks, self.methods, self.rewards, self.wrong_cases, self.misled)
        for seed, task, method, rewards, wrong_cases, misled in every:
            name, solver = REUSED.get(task, (task, "simulated"))
            yield Run(name, method, seed, self.limit, solver, "", rewards, wrong_cases, misled, order=self.order)


_SHUFFLED = ("banking77", "ddxplus", "rca", "sentifin")  # streams of texts in any order

# The sixteen tasks of the paper, by their names in the catalogue; a language model plays them (see paper_suite.py).
PAPER = (
    *("ddxplus", "mimic-iv-mr", "mimic-iv-msr", "mimic-iv-tlp", "mud", "cmdl"),
    *("banking77", "sentifin", "rca", "lfd", "spider", "bird"),
    *("alfworld", "scienceworld", "2wiki", "mimic-iii"),
)

SUITES = {
    "quick": Suite(tasks=_SHUFFLED, methods=QUICK, seeds=3, limit=400),
    "local": Suite(tasks=(*ALONE, *_COMPARED), methods=tuple(METHODS), seeds=5),
    "paper": Suite(tasks=PAPER, methods=(), seeds=5, order=FILE),  # the methods depend on the task
    "set-aside": Suite(tasks=tuple(_SET_ASIDE), methods=("similarity", "LinLogUCB", "CASCADE untrained", "CASCADE"), seeds=5),
    "deep-search": Suite(tasks=("2wiki",), methods=("zero-shot", "similarity", "CASCADE, always a case", "CASCADE"), seeds=5),
    "hospital": Suite(tasks=("hospital",), methods=("zero-shot", "similarity", "Neural-LinLogUCB", "CASCADE"), seeds=5),
    "board": Suite(
        tasks=("llb-db", "bfcl", "bfcl-twins"),
        methods=(
            *("zero-shot", "similarity", *OTHER_MEMORIES, "Self-StreamICL", "LinLogUCB", "Neural-LinUCB"),
            *("CASCADE untrained", "CASCADE, always a case", "CASCADE"),
        ),
        seeds=5,
    ),
    "ablation": Suite(tasks=_SHUFFLED, methods=("similarity", *ABLATION), seeds=5),
    "rivals": Suite(tasks=("banking77", "ddxplus", "rca"), methods=RIVALS, seeds=5),
    "rules": Suite(tasks=_SHUFFLED, methods=AGAINST_RULES, seeds=5, misled=(0.0, 0.25, None)),
    "rewards": Suite(
        tasks=_SHUFFLED,
        methods=("zero-shot", "similarity", "CASCADE"),
        seeds=5,
        rewards=("", "missing=0.5", "late=100", "flipped=0.2"),
    ),
    "wrong-cases": Suite(
        tasks=("ddxplus", "rca"),
        methods=("similarity", "CASCADE", "CASCADE, always a case"),
        seeds=5,
        wrong_cases=("", "start=0.05", "along=0.05"),
    ),
}

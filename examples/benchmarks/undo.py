"""What is left of poisoners after they are undone? A memory without them is compared with one in which they were undone.

    CASCADE_DATA=... python examples/benchmarks/undo.py
    CASCADE_DATA=... python examples/benchmarks/undo.py --streams sentifin --shares 0.05 --kinds recurring unique --orders 24
    CASCADE_DATA=... python examples/benchmarks/undo.py --measures none --max-cases none --first 100

In each order, 36 to 38 honest actors do 500 tasks of a stream. Malicious actors take turns in between, as in the suite
``attacks``. Then ``memory.forget(by_actor=...)`` undoes each malicious actor, and the honest ones do the next 500. On these
500 tasks, five memories are compared. All of them have the same honest tasks by the same actors in the same order:

* "undone": the malicious actors were there, and were undone;
* "never": they were never there;
* "told the same": they were never there, but each honest episode of the first 500 reports the outcome, and the solution, that
  it had in "undone", whatever this memory shows it;
* "not misled": they were never there, and the honest episodes that failed in "undone" after they had been shown a malicious
  case did not take place;
* "poisoned": they were there, and nothing was undone.

"undone" minus "not misled" is what is left behind in the memory. "not misled" minus "never" is what it costs that others
were misled meanwhile, which no undo can make good. "told the same" loses more than that: it blames what it has shown for
failures that something else has caused. Solver and actors are SIMULATED, and all draws follow from the order's number.

Rows go to ``results/undo.jsonl``, one for each order. An order that has a row with these memories is not played again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

from tqdm import tqdm

from cascade_memory import CascadeMemory, Retention, Trust
from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.domain.trust import OFF
from cascade_memory.evaluation.attacks.streams import Attacked, Attackers, attacked
from cascade_memory.evaluation.bench.plan import ALONE, MATCHED, MISLED, PROCEDURES, Run
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.bench.summary import interval

STREAMS = ("banking77", "sentifin", f"rca{PROCEDURES}")
KINDS = ("recurring", "unique", "popular", "flooding", "flipping", "many")
MEASURES = ("all", "none")
UNDONE, NEVER = "undone", "never"
NOT_MISLED, TOLD, POISONED = FURTHER = ("not misled", "told the same", "poisoned")
COMPARED = ((UNDONE, NEVER), (UNDONE, NOT_MISLED), (NOT_MISLED, NEVER), (UNDONE, TOLD), (TOLD, NEVER), (POISONED, NEVER))
EACH = 500  # honest tasks before the undo, and after it
LIMIT = 1200  # tasks of a stream, of which each order plays about 1,100


@dataclass(frozen=True, slots=True)
class Setting:
    """The fields that identify a row. ``max_cases`` is None for memories without a limit."""

    stream: str
    kind: str
    share: float
    measures: str
    max_cases: int | None
    seed: int


@dataclass(frozen=True, slots=True)
class Told:
    """What an honest episode reported: whether it succeeded, with which solution, and whether it was shown a malicious case."""

    success: bool
    solution: Any
    bad: bool
    shown: bool
    fitting: bool


@lru_cache(maxsize=2)
def stream_of(task: str, seed: int) -> Attacked:
    """Read a stream in the order of a seed."""
    return attacked(Run(task, "CASCADE", seed, limit=LIMIT), Folders(folder_of_data(None), Path("results")))


class World:
    """One memory, and what became of its honest episodes."""

    def __init__(self, setting: Setting) -> None:
        self.stream = stream_of(setting.stream, setting.seed)
        self.attackers = Attackers(setting.kind, setting.share, self.stream, setting.seed)
        self.memory = CascadeMemory(
            embedder=self.stream.embedder,
            learn="inline",
            deadline=None,
            retention=Retention(max_cases=setting.max_cases),
            trust=Trust(vigilance=None if setting.measures == "all" else OFF),
        )
        self.told: list[Told | None] = []
        self.malicious: set[str] = set()  # ids of cases
        self.found: Row = {}

    def turns(self) -> tuple[list[int], list[int]]:
        """Return the turns until 500 honest tasks are done, and the honest turns of the next 500."""
        honest = [turn for turn in range(len(self.stream.queries)) if not self.attackers.is_malicious(turn)][: 2 * EACH]
        if len(honest) < 2 * EACH:
            raise ValueError(f"the stream has no {2 * EACH:,} honest turns")
        return list(range(honest[EACH - 1] + 1)), honest[EACH:]

    def honest(self, turn: int, instead: Told | None = None) -> None:
        """Do a task honestly; report another outcome ``instead``, if there is one."""
        actor = self.attackers.actor(turn)
        recall = self.memory.acting(actor=actor).recall(self.stream.queries[turn], episode_id=f"turn {turn}")
        attempt = self.stream.attempt(turn, str(recall.cases[0].solution) if recall.cases else None)
        bad = any(case.id in self.malicious for case in recall.cases)
        told = instead or Told(attempt.success, attempt.answer, bad, bool(recall.cases), bool(attempt.fitting))
        self.memory.acting(actor=actor).reward(recall.episode_id, told.success, solution=told.solution)
        self.told.append(told)

    def attack(self, turn: int) -> None:
        """Let a malicious actor take its turn."""
        actor = self.attackers.actor(turn)
        if self.attackers.flips:
            recall = self.memory.acting(actor=actor).recall(self.stream.queries[turn], episode_id=f"turn {turn}")
            attempt = self.stream.attempt(turn, str(recall.cases[0].solution) if recall.cases else None)
            made = [(recall.episode_id, float(not attempt.success), attempt.answer)]
        else:
            made = [
                (
                    self.memory.acting(actor=actor).recall(one.query, episode_id=f"turn {turn}, {i}").episode_id,
                    1.0,
                    one.solution,
                )
                for i, one in enumerate(self.attackers.injected(turn))
            ]
        for episode_id, reward, solution in made:
            case_id = self.memory.acting(actor=actor).reward(episode_id, reward, solution=solution)
            if case_id is not None:
                self.malicious.add(case_id)

    def undo(self) -> None:
        """Undo each malicious actor."""
        first, _ = self.turns()
        bad = sorted({self.attackers.actor(turn) for turn in first if self.attackers.is_malicious(turn)})
        receipts = [self.memory.forget(by_actor=actor) for actor in bad]
        self.found["forgotten"] = sum(receipt.cases for receipt in receipts)
        self.found["brought_back"] = sum(len(receipt.brought_back) for receipt in receipts)
        self.found["made_after"] = len({one for receipt in receipts for one in receipt.made_after})

    def columns(self) -> Row:
        """Return what was measured: characters say for each honest episode what became of it ("-": it did not take place)."""
        health = self.memory.health()
        if not health.ok:
            raise RuntimeError(health.failures)
        marks = {
            name: "".join("-" if told is None else "01"[getattr(told, name)] for told in self.told)
            for name in ("success", "bad", "shown", "fitting")
        }
        return {**marks, **self.found}

    def look(self) -> None:
        """Note what the memory holds before the next 500 tasks."""
        self.found["cases"] = len(self.memory)
        standings = self.memory.sources.standings()
        self.found["standings"] = {
            name: sum(one.standing == name for one in standings) for name in sorted({one.standing for one in standings})
        }


def played(setting: Setting, world: str, like: Sequence[Told | None] = ()) -> tuple[Row, list[Told | None]]:
    """Play one world; ``like`` are the honest episodes of "undone", for the worlds that depend on them."""
    one = World(setting)
    with one.memory:
        first, rest = one.turns()
        for turn in first:
            place = len(one.told)
            if one.attackers.is_malicious(turn):
                if world in (UNDONE, POISONED):
                    one.attack(turn)
            elif world == NOT_MISLED and (was := like[place]) is not None and was.bad and not was.success:
                one.told.append(None)
            else:
                one.honest(turn, like[place] if world == TOLD else None)
        if world == UNDONE:
            one.undo()
        one.look()
        for turn in rest:
            one.honest(turn)
        return one.columns(), one.told


@lru_cache(maxsize=4)
def never(setting: Setting) -> Row:
    """Play the world without malicious actors: it is the same for all kinds of them."""
    return played(setting, NEVER)[0]


def play(setting: Setting, further: Sequence[str]) -> Row:
    """Play the worlds of one order and return its row."""
    undone, told = played(setting, UNDONE)
    worlds = {UNDONE: undone, NEVER: never(replace(setting, kind=KINDS[0]))}
    worlds |= {world: played(setting, world, told)[0] for world in further}
    return {**asdict(setting), "simulated": True, "worlds": worlds}


def after(row: Row, world: str) -> float:
    """Return the success on the 500 tasks after the undo, in percent."""
    return 100.0 * row["worlds"][world]["success"][EACH:].count("1") / EACH


def expected(row: Row, world: str) -> float:
    """Return the success that the declared rates give to what was shown on these tasks: with less chance in it."""
    found = row["worlds"][world]
    alone = ALONE[row["stream"].removesuffix(PROCEDURES)]
    rates = {("0", "0"): alone, ("1", "0"): alone * (1.0 - MISLED), ("1", "1"): MATCHED}
    return 100.0 * sum(rates[one] for one in zip(found["shown"][EACH:], found["fitting"][EACH:], strict=True)) / EACH


def lost(row: Row) -> tuple[int, int]:
    """Count the honest episodes before the undo that were misled, and those that succeeded only where nobody misled them."""
    undone, clean = row["worlds"][UNDONE], row["worlds"][NEVER]["success"]
    both = list(zip(undone["success"], undone["bad"], clean, strict=True))[:EACH]
    misled = sum((success, bad) == ("0", "1") for success, bad, _ in both)
    return misled, sum((success, other) == ("0", "1") for success, _, other in both)


def lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield a line of the table for each setting: means over orders, with 95 % intervals of the paired differences."""

    def cell(row: Row) -> tuple[Any, ...]:
        return row["stream"], row["kind"], row["share"], row["measures"], row["max_cases"] or 0

    for (stream, kind, share, measures, most), group in groupby(sorted(rows, key=cell), key=cell):
        its = list(group)
        counts = [lost(row) for row in its]
        yield [
            *(stream, kind, f"{100 * share:g} %", measures, str(most or "none"), str(len(its))),
            f"{sum(after(row, NEVER) for row in its) / len(its):.1f}",
            *(_difference(its, ours, theirs) for ours, theirs in COMPARED),
            *(f"{sum(column) / len(its):.1f}" for column in zip(*counts, strict=True)),
        ]


def _difference(rows: Sequence[Row], ours: str, theirs: str) -> str:
    """Write the mean difference of two worlds with its interval, and in brackets the same of the expected success."""
    both = [row for row in rows if {ours, theirs} <= row["worlds"].keys()]
    if not both:
        return ""
    mean, half = interval([after(row, ours) - after(row, theirs) for row in both])
    expects, width = interval([expected(row, ours) - expected(row, theirs) for row in both])
    return f"{mean:+.2f} ± {half:.2f} ({expects:+.2f} ± {width:.2f})"


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    print("SIMULATED actors and solver. Success on the 500 tasks after the undo, in percent, and differences in points;")
    print("in brackets, differences of the success that the solver's rates give to what was shown.\n")
    heads = ["stream", "kind", "poison", "measures", "max_cases", "orders", NEVER]
    heads += [f"{ours} – {theirs}" for ours, theirs in COMPARED] + ["misled", "failed, not in never"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for line in lines(rows):
        print("| " + " | ".join(line) + " |")


def has(row: Row | None, further: Sequence[str]) -> bool:
    """Say whether a row has all these worlds."""
    return row is not None and set(further) <= row["worlds"].keys()


def main() -> None:
    """Play the orders that have no row yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=["banking77"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["recurring"])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.05], help="the malicious share of all turns")
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=["all"], help="against actors who lie")
    parser.add_argument("--max-cases", nargs="+", default=["120"], help='numbers, or "none"')
    parser.add_argument("--further", nargs="*", choices=FURTHER, default=FURTHER, help="memories beside undone and never")
    parser.add_argument("--orders", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="the number of the first order")
    parser.add_argument("--out", type=Path, default=Path("results/undo.jsonl"))
    options = parser.parse_args()
    limits = [None if most == "none" else int(most) for most in options.max_cases]
    seeds = range(options.first, options.first + options.orders)
    wanted = [
        Setting(stream, kind, share, measures, most, seed)
        for stream, seed, share, measures, most, kind in product(
            options.streams, seeds, options.shares, options.measures, limits, options.kinds
        )
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    found = {Setting(*(row[name] for name in Setting.__slots__)): row for row in rows}
    with options.out.open("a", encoding="utf-8") as file:
        for setting in tqdm([one for one in wanted if not has(found.get(one), options.further)], unit="order"):
            found[setting] = play(setting, options.further)
            file.write(json.dumps(found[setting]) + "\n")
            file.flush()
    show([found[setting] for setting in wanted])


if __name__ == "__main__":
    main()

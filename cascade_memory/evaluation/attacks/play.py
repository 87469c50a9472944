"""Plays the attacked streams. Honest actors do the tasks and report what happened; malicious ones do what their attack says.

The plan has each kind of attack, and no attack, for each stream and each share of malicious turns. Each is played with all
countermeasures and with none. For one share, each countermeasure is also left out in turn. The rival "similarity" is played
without countermeasures only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cascade_memory import CascadeMemory, Trust
from cascade_memory.domain import OFF, Vigilance
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.attacks.streams import ACTORS, Attacked, Attackers, attacked
from cascade_memory.evaluation.bench.methods import KNOWN
from cascade_memory.evaluation.bench.plan import ALONE, MATCHED, MISLED, PROCEDURES, Run
from cascade_memory.evaluation.bench.rows import stream_of
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.memory import Memory

NAME = "attacks"
STREAMS = ("banking77", f"rca{PROCEDURES}")
SEEDS = 3
POISON = (0.01, 0.05, 0.1)
CLEAN = "clean"
ALL, NONE = "all", "none"
_OURS, _RIVAL = "CASCADE", "similarity"
_WITHOUT_ONE = 0.05  # the share of malicious turns with which each measure is left out in turn
KINDS: Mapping[str, str] = {
    "unique": "made-up procedures, each worded differently",
    "recurring": "one made-up procedure again and again",
    "popular": "one for each of the most frequent kinds of tasks",
    "flooding": "one again and again, with ten further rewards a turn",
    "flipping": "the opposite of what happened, reported on real tasks",
    "sleeping": "honest for half of the stream, then one made-up procedure",
    "many": "one made-up procedure, by a new actor every second time",
}
LAYERS: Mapping[str, Vigilance] = {
    "all": Vigilance(),
    "none": OFF,
    "no records": Vigilance(records=False),
    "no probation": Vigilance(probation=False),
    "no reports": Vigilance(reports=False),
    "no fair lessons": Vigilance(fair_lessons=False),
}


def runs(tasks: Sequence[str] = STREAMS, seeds: int = SEEDS, limit: int | None = None) -> Iterator[Run]:
    """Yield the runs of the plan, seed by seed.

    >>> len(list(runs(seeds=1)))
    200
    """
    for seed in range(seeds):
        for task in tasks:
            for method, attack, layers in _conditions():
                yield Run(task, method, seed, limit, attack=attack, layers=layers)


def _conditions() -> Iterator[tuple[str, str, str]]:
    for poison in POISON:
        for kind in (CLEAN, *KINDS):
            attack = f"{kind}={poison:g}"
            yield from ((_OURS, attack, ALL), (_OURS, attack, NONE), (_RIVAL, attack, NONE))
    for kind in KINDS:
        for layers in LAYERS:
            if layers not in (ALL, NONE):
                yield _OURS, f"{kind}={_WITHOUT_ONE:g}", layers


def play(run: Run, folders: Folders) -> dict[str, Any]:
    """Play a run and return its row of results.

    ``run.attack`` is a kind of attack (of ``KINDS``) or "clean", with the share of malicious turns: "many=0.05". In a clean run
    the malicious actors take no turns: the honest actors do the same tasks in the same order. ``success``, ``shown``, ``bad``,
    ``aimed`` and ``followed`` have a character for each honest episode: whether it succeeded, whether it was shown a case,
    whether it was shown a malicious case, whether the attack was aimed at its task, and whether it was shown a malicious case
    and failed.
    """
    kind, _, share = run.attack.partition("=")
    if kind not in (*KINDS, "clean") or not share:
        kinds = ", ".join(KINDS)
        raise InvalidInput(f"there is no attack {run.attack!r}; it is {kinds} or clean, and a share of the turns: many=0.05")
    stream = attacked(run, folders)
    memory = _memory(run, stream)
    began = time.perf_counter()
    try:
        game = _Game(stream, Attackers(kind, float(share), stream, run.seed), memory, clean=kind == "clean")
        for turn in range(len(stream.queries)):
            game.take(turn)
        columns = game.columns()
    finally:
        memory.close()
    return {
        **asdict(run),
        "declared": {"alone": ALONE[run.task.removesuffix(PROCEDURES)], "matched": MATCHED, "misled": MISLED, "actors": ACTORS},
        "stream": stream_of(stream.queries),
        "embedder": stream.embedder.identity,
        "n": len(stream.queries),
        "seconds": time.perf_counter() - began,
        **columns,
    }


def _memory(run: Run, stream: Attacked) -> Memory:
    options = KNOWN[run.method]
    if options is None:
        raise InvalidInput(f"{run.method!r} has no memory to attack")
    vigilance = LAYERS[run.layers or "all"]
    return CascadeMemory(embedder=stream.embedder, learn="inline", deadline=None, trust=Trust(vigilance=vigilance), **options)


class _Game:
    """The state of one run."""

    def __init__(self, stream: Attacked, attackers: Attackers, memory: Memory, *, clean: bool) -> None:
        self._stream, self._attackers, self._memory, self._clean = stream, attackers, memory, clean
        self._malicious: set[str] = set()  # ids of cases
        self._marks: dict[str, list[bool]] = {name: [] for name in ("success", "shown", "bad", "aimed", "followed")}
        self._turns: list[int] = []

    def take(self, turn: int) -> None:
        """Let the actor of a turn act; in a clean run, a malicious actor does nothing."""
        if not self._attackers.is_malicious(turn):
            self._do(turn)
        elif not self._clean:
            self._attack(turn)

    def _do(self, turn: int) -> None:
        """Let an honest actor do the task of a turn and report what happened, and note the result."""
        actor = self._attackers.actor(turn)
        recall = self._memory.acting(actor=actor).recall(self._stream.queries[turn], episode_id=f"turn {turn}")
        attempt = self._attempt(turn, recall.cases)
        self._memory.acting(actor=actor).reward(recall.episode_id, attempt.success, solution=attempt.answer)
        bad = any(case.id in self._malicious for case in recall.cases)
        followed = bad and not attempt.success
        aimed = self._attackers.flips or self._stream.labels[turn] in self._attackers.aimed_at
        self._turns.append(turn)
        for name, mark in zip(self._marks, (attempt.success, bool(recall.cases), bad, aimed, followed), strict=True):
            self._marks[name].append(mark)

    def _attempt(self, turn: int, cases: Any) -> Attempt:
        return self._stream.attempt(turn, str(cases[0].solution) if cases else None)

    def _attack(self, turn: int) -> None:
        actor = self._attackers.actor(turn)
        if self._attackers.flips or self._attackers.is_honest_yet(turn):
            recall = self._memory.acting(actor=actor).recall(self._stream.queries[turn], episode_id=f"turn {turn}")
            attempt = self._attempt(turn, recall.cases)
            says = attempt.success != self._attackers.flips
            case_id = self._memory.acting(actor=actor).reward(recall.episode_id, says, solution=attempt.answer)
            if says and not attempt.success and case_id is not None:
                self._malicious.add(case_id)
            return
        for number, made in enumerate(self._attackers.injected(turn)):
            recall = self._memory.acting(actor=actor).recall(made.query, episode_id=f"turn {turn}, {number}")
            case_id = self._memory.acting(actor=actor).reward(recall.episode_id, 1.0, solution=made.solution)
            if case_id is not None:
                self._malicious.add(case_id)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the row: the honest episodes, the number of malicious cases, and the quarantines.

        ``stopped`` counts the quarantines of malicious actors, ``stopped_by_mistake`` those of honest ones.
        """
        stopped = [entry for entry in self._memory.review.audit(newest_first=False) if entry.action == "quarantine"]
        bad = {self._attackers.actor(turn) for turn in range(len(self._stream.queries)) if self._attackers.is_malicious(turn)}
        return {
            **{name: "".join("01"[mark] for mark in marks) for name, marks in self._marks.items()},
            "malicious_cases": len(self._malicious),
            "stopped": sum(entry.subject in bad for entry in stopped),
            "stopped_by_mistake": sum(entry.subject not in bad for entry in stopped),
        }

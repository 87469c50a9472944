"""One run through all verbs while the disk fails now and then: each works or says what is wrong, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path

from chroma_mutations import copied_and_sealed
from forks import say
from inside import engine_of, verb_of
from kill_checker import Acknowledged, compare

from cascade_memory import CascadeMemory
from cascade_memory.engine import mirror_feeder as feeder
from cascade_memory.errors import CascadeError, StoreCorrupt, StoreError

STEPS = [
    *("open", "recall", "reward", "add", "forget", "sync", "search", "recall", "reward", "close"),
    *("open", "recall", "add", "reward", "forget", "sync", "lose", "add", "close"),
    *("open", "recall", "reward", "close"),
]
ADVICE = ("free some space", "check its permissions", "choose a path", "othing is lost", "cannot lock", "cannot write")


def prepare(folder: Path, pipe: int) -> None:
    """Make the folder that every trial starts from: cases, some of them to be forgotten, and open episodes."""
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        for i in range(30):
            recall = memory.recall(f"task {i} of kind {i % 7}")
            case = memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")
            say(pipe, "settled", recall.episode_id, float(i % 5 != 0), case or "-")
        for i in range(8):
            say(pipe, "recalled", memory.recall(f"open task {i}", episode_id=f"open-{i}").episode_id)


class Trial:
    """Does the steps one by one; what was refused is done again when the disk is well."""

    def __init__(self, folder: Path, books: Acknowledged, before: Callable[[str], None], pipe: int) -> None:
        self._pipe = pipe
        self.folder, self.books, self._before = folder, books, before
        self.memory: CascadeMemory | None = None
        self.refused: list[str] = []
        self.wrong: list[str] = []
        self._kept: list[Exception] = []  # as a notebook or a logger keeps the last error, with all its frames
        self._forgettable = sorted(books.cases)

    # -- steps: each is safe to do again after it was refused --------------------------------------------------------

    def _open(self, _: int) -> None:
        self.memory = CascadeMemory(self.folder, embedder="hashing", learn="inline")

    def _there(self) -> CascadeMemory:
        if self.memory is None:
            raise StoreError("not open: nothing is lost")
        return self.memory

    def _recall(self, number: int) -> None:
        self._found("recall", f"task {number} of kind {number % 7}")

    def _search(self, number: int) -> None:
        self._found("search", f"task {number}")

    def _found(self, verb: str, query: str) -> None:
        memory = self._there()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recall = verb_of(memory, verb)(query)
        if recall.error is None:
            if verb == "recall":
                self.books.take(f"recalled {recall.episode_id}")
            return
        told = [warning for warning in caught if issubclass(warning.category, RuntimeWarning)]
        if not told:
            self.wrong.append(f"a recall that failed has no warning: {recall.error}")
        raise StoreError(recall.error)

    def _reward(self, number: int) -> None:
        episode = f"open-{number % 8}"
        case = self._there().reward(episode, 1.0, solution=f"solved {episode} " + "x" * 6_000)
        self.books.take(f"settled {episode} 1.0 {case}")

    def _add(self, number: int) -> None:
        self.books.take(f"adding {number}")
        cases = [(f"known task {number}.{i} " + "y" * 2_000, "solution", {"batch": str(number)}) for i in range(3)]
        ids = self._there().add(cases, progress=False)
        self.books.take(" ".join(["added", str(number), *ids]))

    def _forget(self, number: int) -> None:
        memory, case = self._there(), self._forgettable[number]
        episode = next((key for key, (_, made) in self.books.outcomes.items() if made == case), None)
        episode = episode or self.books.unsure.get(case, "-")
        self.books.take(f"forgetting {case} {episode}")
        if self._undone(case, memory):
            memory.forget(case)
        self.books.take(f"forgot {case} {episode}")

    @staticmethod
    def _undone(case: str, memory: CascadeMemory) -> bool:
        return bool(engine_of(memory).parts.ledger.cases.by_id([case], engine_of(memory).namespace_id("default")))

    def _sync(self, _: int) -> None:
        self._there().sync()

    def _lose(self, _: int) -> None:
        """Chroma is gone: it is made again."""
        self._there().data.rebuild()

    def _close(self, _: int) -> None:
        memory, self.memory = self._there(), None
        memory.close()

    # -- running -----------------------------------------------------------------------------------------------------

    def attempt(self, step: str, number: int) -> bool:
        """Do one step; return whether it was done."""
        try:
            getattr(self, f"_{step}")(number)
        except StoreCorrupt as error:
            self.wrong.append(f"{step} calls the ledger corrupt: {error}")
        except CascadeError as error:
            self.refused.append(step)
            self._kept.append(error)
            if not any(words in str(error) for words in ADVICE):
                self.wrong.append(f"{step} does not say what to do: {error!r}")
        except Exception as error:
            self.wrong.append(f"{step} raised {error!r}")
        else:
            return True
        return False

    def run(self) -> list[tuple[str, int]]:
        """Do all steps; return those that were refused."""
        again = []
        for number, step in enumerate(STEPS):
            self._before(step)
            say(self._pipe, "begins", step, number)
            if not self.attempt(step, number) and step not in ("open", "close"):
                again.append((step, number))
        return again

    def recover(self, again: list[tuple[str, int]]) -> None:
        """The disk is well: repeat what was refused, compare with the books, twice."""
        if self.memory is None:
            self._open(0)
        for step, number in again:
            say(self._pipe, "repeats", step, number)
            if not self.attempt(step, number):
                self.wrong.append(f"{step} still fails")
        for _ in range(2):
            say(self._pipe, "compares")
            self.wrong += self._looked_over(self._there())
            self._close(0)
            self._open(0)
        self._close(0)

    def _looked_over(self, memory: CascadeMemory) -> list[str]:
        memory.sync()
        memory.health()
        wrong = compare(memory, self.books)
        wrong += [
            f"{check.name}: {check.detail}" for check in memory.data.examine() if not check.ok and check.name != "free disk"
        ]
        rows = engine_of(memory).parts.ledger.cases.after(0, 10_000)
        mirror = engine_of(memory).parts.mirror
        assert mirror is not None
        unfound = [case.id for case, vector in rows if case.id not in mirror.nearest_ids("default", vector, 8)]
        return wrong + ([f"Chroma does not find {len(unfound)} of {len(rows)} cases"] if len(unfound) > 3 else [])


def trial(
    template: Path, folder: Path, acknowledged: list[str], before: Callable[[str], None], heal: Callable[[], object], pipe: int
) -> None:
    """Do a whole trial on a copy of the template and report."""
    logging.getLogger("cascade_memory").setLevel(logging.CRITICAL)
    feeder.INTERVAL = 3600.0  # Chroma is fed by the steps alone: every run makes the same calls
    copied_and_sealed(template, folder)
    books = Acknowledged()
    for line in acknowledged:
        books.take(line)
    one = Trial(folder, books, before, pipe)
    again = one.run()
    healed = heal()
    refused = list(one.refused)
    try:
        one.recover(again)
    except Exception as error:
        one.wrong.append(f"it does not recover: {error!r}")
    with contextlib.suppress(Exception):
        one.memory.close() if one.memory is not None else None
    say(pipe, json.dumps({"refused": refused, "wrong": one.wrong, "healed": healed, "facts": books.facts}))

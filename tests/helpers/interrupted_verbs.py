"""What ``torture/interrupts.py`` interrupts: calls of each verb, and what must be true after them, whole or not at all."""

from __future__ import annotations

import io
import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inside import verb_of

from cascade_memory import CascadeMemory
from cascade_memory.domain.trajectory import Step
from cascade_memory.errors import UnknownCase

_numbers = itertools.count()


@dataclass
class Acknowledged:
    """What must be there in the end."""

    place: str | None
    number: int
    options: dict[str, Any]  # with which the memory was opened
    cases: dict[str, str] = field(default_factory=dict[str, str])  # id -> solution
    gone: list[str] = field(default_factory=list[str])
    rewards: dict[str, float] = field(default_factory=dict[str, float])

    def lost(self, memory: CascadeMemory) -> Iterator[str]:
        """Say what was acknowledged and is not there."""
        for case, solution in self.cases.items():
            found = case_of(memory, case)
            if found is None or found.solution != solution:
                yield "a case that was acknowledged is lost"
        for case in self.gone:
            if case_of(memory, case) is not None:
                yield "a case that was forgotten is there"
        for episode, value in self.rewards.items():
            found = memory.episodes.get(episode)
            if found is None or found.reward != value:
                yield "a reward that was acknowledged is lost"


@dataclass
class Trial:
    """A call, and what looks at what it left: given what it returned, and whether it did."""

    call: Callable[[], Any]
    wrong: Callable[[Any, bool], Iterator[str]]


def case_of(memory: CascadeMemory, case: str) -> Any:
    """Return a case, or None."""
    try:
        return memory.cases.get(case)
    except UnknownCase:
        return None


def _whole(memory: CascadeMemory, name: str) -> list[Any]:
    return list(memory.cases.all(where={"of": name}))


def _nothing(*_: Any) -> Iterator[str]:
    yield from ()


def _name() -> str:
    return f"n{next(_numbers)}"


def add(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial:
    name = _name()

    def wrong(case: str | None, done: bool) -> Iterator[str]:
        found = _whole(memory, name)
        if [one.solution for one in found] not in ([], [f"do {name}"]):
            yield f"half a case: {found}"
        if done:
            if [one.id for one in found] != [case]:
                yield "an added case is lost"
            books.cases[str(case)] = f"do {name}"

    return Trial(lambda: memory.add(f"task {name}", f"do {name}", metadata={"of": name}), wrong)


def add_many(memory: CascadeMemory, _: Acknowledged, __: random.Random) -> Trial:
    name = _name()
    cases = [(f"task {name} {i}", f"do {name} {i}", {"of": name}) for i in range(5)]

    def wrong(ids: Any, done: bool) -> Iterator[str]:
        count = len(_whole(memory, name))
        if count != 5 and (done or count):
            yield f"{count} of five cases (acknowledged: {done})"

    return Trial(lambda: memory.add(cases, progress=False), wrong)


def recall(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial:
    name = _name()

    def wrong(found: Any, done: bool) -> Iterator[str]:
        episode = memory.episodes.get(name)
        written = done and found.error is None
        if episode is None and written:
            yield "a recall without its episode"
        if episode is not None and (episode.query != f"task {name}" or episode.status != "open"):
            yield f"half an episode: {episode}"
        if episode is not None:
            memory.reward(name, 0.0, metadata={"of": name})
            books.rewards[name] = 0.0
            again = memory.episodes.get(name)
            if again is None or again.status == "open":
                yield "an episode that cannot be rewarded"

    return Trial(lambda: memory.recall(f"task {name}", episode_id=name, k=rng.choice([1, 3])), wrong)


def search(memory: CascadeMemory, _: Acknowledged, __: random.Random) -> Trial:
    return Trial(lambda: memory.cases.search("task n1", k=3), _nothing)


def reward(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial | None:
    name, value = _name(), rng.choice([0.0, 1.0])
    if memory.recall(f"task {name}", episode_id=name).error:
        return None

    def wrong(case: str | None, done: bool) -> Iterator[str]:
        episode, cases = memory.episodes.get(name), _whole(memory, name)
        if episode is None:
            yield "an episode is lost"
        elif episode.status == "open":
            if done or cases:
                yield f"a reward of which {len(cases)} cases are there, and the episode is open (acknowledged: {done})"
        elif (
            episode.reward != value
            or len(cases) != (value == 1.0)
            or (done and [one.id for one in cases] != [case] * len(cases))
        ):
            yield f"half a reward of {value}: {episode.reward}, {len(cases)} cases"
        if done:
            books.rewards[name] = value

    return Trial(lambda: memory.reward(name, value, solution=f"do {name}", metadata={"of": name}), wrong)


def reward_anew(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial | None:
    name = _name()
    if memory.recall(f"task {name}", episode_id=name).error:
        return None
    memory.reward(name, 1.0, solution=f"do {name}", metadata={"of": name})

    def wrong(case: str | None, done: bool) -> Iterator[str]:
        episode, cases = memory.episodes.get(name), _whole(memory, name)
        if episode is None or (episode.reward, len(cases)) not in ([(0.0, 0)] if done else [(0.0, 0), (1.0, 1)]):
            yield f"half a new reward: {None if episode is None else episode.reward}, {len(cases)} cases"
        if done:
            books.rewards[name] = 0.0

    return Trial(lambda: memory.reward(name, 0.0, overwrite=True, metadata={"of": name}), wrong)


def session(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial:
    name = _name()

    def work() -> str | None:
        with memory.episode(f"task {name}", metadata={"of": name}) as episode:
            if episode.recall.error:
                return None  # a soft limit is an ordinary exception: the recall failed open
            memory.warnings.check(episode.id, tool="press", arguments={"button": name})
            episode.reward(1.0, solution=f"do {name}")
        return episode.id

    def wrong(episode_id: Any, done: bool) -> Iterator[str]:
        cases, done = _whole(memory, name), done and episode_id is not None
        if len(cases) > 1 or (done and not cases):
            yield f"{len(cases)} cases of one episode"
        if done:
            books.rewards[episode_id] = 1.0

    return Trial(work, wrong)


def failed(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial | None:
    name = _name()
    if memory.recall(f"task {name}", episode_id=name).error:
        return None
    steps = [Step(action=f"press {name}", observation="nothing happens"), Step(action="press red", observation="error: no")]

    def wrong(_: Any, done: bool) -> Iterator[str]:
        episode = memory.episodes.get(name)
        if episode is None or (done and episode.reward != 0.0):
            yield "a failed run is lost"
        if done:
            books.rewards[name] = 0.0

    return Trial(lambda: memory.reward(name, 0.0, solution=steps), wrong)


def finish(memory: CascadeMemory, _: Acknowledged, rng: random.Random) -> Trial | None:
    name, verb = _name(), rng.choice(["finish", "discard", "end"])
    if memory.recall(f"task {name}", episode_id=name).error:
        return None
    options = {} if verb == "discard" else {"solution": f"do {name}"}

    def wrong(_: Any, done: bool) -> Iterator[str]:
        episode = memory.episodes.get(name)
        if episode is None:
            yield "an episode is lost"
        elif done and (episode.solution != f"do {name}" if options else episode.status == "open"):
            yield f"{verb} was lost: {episode}"

    return Trial(lambda: verb_of(memory, verb)(name, **options), wrong)


def propose(memory: CascadeMemory, _: Acknowledged, __: random.Random) -> Trial:
    name = _name()

    def wrong(episode_id: Any, done: bool) -> Iterator[str]:
        found = [one for one in [*memory.review.reported(), *memory.episodes.pending()] if one.query == f"task {name}"]
        if len(found) > 1 or (done and [one.id for one in found] != [episode_id]):
            yield f"a proposal became {len(found)} episodes"
        if found and (found[0].solution != f"do {name}" or found[0].status == "open"):
            yield f"half a proposal: {found[0]}"
        for one in found:
            memory.forget(episode_id=one.id)

    return Trial(lambda: memory.review.propose(f"task {name}", f"do {name}"), wrong)


def forget(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial:
    name, how = _name(), rng.choice(["id", "where", "actor"])
    cases = memory.acting(actor=name).add(
        [(f"task {name} {i}", "do", {"of": name}) for i in range(3)], source="user", progress=False
    )
    options: dict[str, Any] = {"id": {"case_ids": cases}, "where": {"where": {"of": name}}, "actor": {"by_actor": name}}[how]

    def wrong(_: Any, done: bool) -> Iterator[str]:
        left = len(_whole(memory, name))
        if left not in ((0,) if done else (0, 3)):
            yield f"forget by {how}: {left} of three cases are there (acknowledged: {done})"
        if done:
            books.gone.append(cases[0])

    return Trial(lambda: memory.forget(**options), wrong)


def purge(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial | None:
    if rng.random() < 0.9:  # it takes long
        return None
    case = memory.add(f"task {_name()}", "do")

    def wrong(_: Any, done: bool) -> Iterator[str]:
        if done:
            books.gone.append(case)
            if case_of(memory, case) is not None:
                yield "a purged case is there"

    return Trial(lambda: memory.forget(case, purge=True), wrong)


def hide_and_undo(memory: CascadeMemory, _: Acknowledged, rng: random.Random) -> Trial:
    case, verb = memory.add(f"task {_name()}", "do"), rng.choice(["hide", "pin"])
    verb_of(memory, verb)(case)
    entry = next(one for one in memory.review.audit() if one.action == verb)

    def wrong(_: Any, done: bool) -> Iterator[str]:
        found = case_of(memory, case)
        undone = any(one.action == "undo" and one.subject == case for one in itertools.islice(memory.review.audit(), 5))
        if found is None or undone == (found.hidden if verb == "hide" else found.pinned) or (done and not undone):
            yield f"half an undo of {verb}: undone {undone}, {found}"

    return Trial(lambda: memory.review.undo(entry.id), wrong)


def correct(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial | None:
    name = _name()
    if memory.recall(f"task {name}", episode_id=name).error:
        return None
    case = memory.reward(name, 1.0, solution=f"do {name}", metadata={"of": name})

    def wrong(made: Any, done: bool) -> Iterator[str]:
        found = {one.solution: one.hidden for one in _whole(memory, name)}
        if found not in ([] if done else [{f"do {name}": False}]) + [{"right": False}, {f"do {name}": True, "right": False}]:
            yield f"half a correction: {found}"

    assert case is not None
    return Trial(lambda: memory.review.correct(case, "right"), wrong)


def import_(memory: CascadeMemory, _: Acknowledged, __: random.Random) -> Trial:
    name = _name()
    with CascadeMemory(embedder="hashing", learn="off") as other:
        other.add([(f"task {name} {i}", f"do {i}", {"of": name}) for i in range(5)], progress=False)
        lines = io.StringIO()
        other.data.export(lines, progress=False)

    def wrong(_: Any, done: bool) -> Iterator[str]:
        count = len(_whole(memory, name))
        if count not in ((5,) if done else (0, 5)):
            yield f"{count} of five imported cases (acknowledged: {done})"

    return Trial(lambda: memory.data.import_(lines.getvalue().splitlines(), progress=False), wrong)


def export(memory: CascadeMemory, _: Acknowledged, rng: random.Random) -> Trial | None:
    return Trial(lambda: memory.data.export(io.StringIO(), progress=False), _nothing) if rng.random() < 0.3 else None


def backup(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial | None:
    if books.place is None or "://" in books.place or rng.random() < 0.9:
        return None
    folder = Path(tempfile.mkdtemp(prefix="interrupted-"))

    def wrong(_: Any, done: bool) -> Iterator[str]:
        if done != (folder / "copy").exists() and done:
            yield "a backup is lost"
        if (folder / "copy").exists():
            with CascadeMemory(folder / "copy", embedder="hashing", learn="off") as copy:
                copy.add("task", "do")
        shutil.rmtree(folder)

    return Trial(lambda: memory.data.backup(folder / "copy"), wrong)


LOOKS = (
    *("stats", "health", "namespaces", "rewards", "report", "pending", "latest", "audit"),
    *("warnings.all", "sources.all"),
)


def look(memory: CascadeMemory, _: Acknowledged, rng: random.Random) -> Trial:
    verb = rng.choice(LOOKS)
    options = ("thread",) if verb == "latest" else ()

    def call() -> Any:
        found = verb_of(memory, verb)(*options)
        return list(itertools.islice(found, 20)) if verb in ("audit", "sources.all", "warnings.all") else found

    return Trial(call, _nothing)


def learn(memory: CascadeMemory, _: Acknowledged, rng: random.Random) -> Trial:
    verb = rng.choice(["sync", "sync", "refit", "rebuild", "warm"])
    return Trial(verb_of(memory, verb), _nothing)


def quarantine(memory: CascadeMemory, _: Acknowledged, __: random.Random) -> Trial:
    name = _name()
    memory.acting(actor=name).add(f"task {name}", "do", source="user", metadata={"of": name})

    def wrong(_: Any, done: bool) -> Iterator[str]:
        noted = any(one.action == "quarantine" and one.subject == name for one in itertools.islice(memory.review.audit(), 5))
        hidden = [one.hidden for one in _whole(memory, name)]
        if hidden not in ([True], [False]) or (done and not noted) or (noted and hidden != [True]):
            yield f"half a quarantine: noted {noted}, hidden {hidden}"

    return Trial(lambda: memory.sources.quarantine(name), wrong)


def another_handle(memory: CascadeMemory, books: Acknowledged, _: random.Random) -> Trial:
    name = _name()

    def work() -> None:
        with CascadeMemory(books.place, embedder="hashing", **books.options) as other:
            other.add(f"task {name}", "do")

    return Trial(work, _nothing)


def another_place(memory: CascadeMemory, books: Acknowledged, rng: random.Random) -> Trial | None:
    """Open and close a place that nobody else has open."""
    if books.place is None or "://" in books.place or rng.random() < 0.8:
        return None
    folder = Path(books.place).with_name(f"another-{books.number}-{rng.randrange(3)}")
    name = _name()

    def work() -> str:
        with CascadeMemory(folder, embedder="hashing") as other:
            return other.add(f"task {name}", f"do {name}")

    def wrong(case: Any, done: bool) -> Iterator[str]:
        with CascadeMemory(folder, embedder="hashing") as other:
            other.add("task", "do")
            if done and case_of(other, case) is None:
                yield "a case is lost in a place that was closed"

    return Trial(work, wrong)


VERBS: tuple[Callable[[CascadeMemory, Acknowledged, random.Random], Trial | None], ...] = (
    *(add, add_many, recall, recall, search, reward, reward, reward_anew, session, failed, finish, propose, forget, purge),
    *(hide_and_undo, correct, import_, export, backup, look, learn, quarantine, another_handle, another_place),
)

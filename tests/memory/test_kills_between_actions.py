"""``kill -9`` while people act: what was acknowledged is there with its entry, and nothing is half there."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory

JOBS, ROUNDS = 30, 2
_PERSON = """
import json, operator, sys
from cascade_memory import CascadeMemory
folder, verb = sys.argv[1:]
memory = CascadeMemory(folder, embedder="hashing")
print("ready", flush=True)
for place, (given, named) in enumerate(json.loads(sys.stdin.readline())):
    print("begins", place, flush=True)
    operator.attrgetter(verb)(memory.acting(actor="ann"))(*given, **named)
    print("done", place, flush=True)
"""

Job = tuple[list[str], dict[str, Any]]


def rewarded(memory: CascadeMemory, number: int, source: str = "host") -> str:
    recall = memory.recall(f"task {number}")
    memory.reward(recall.episode_id, 1.0, solution=f"wrong {number}", source=source)
    return recall.episode_id


def flags(memory: CascadeMemory) -> list[Job]:
    return [([memory.add(f"task {number}", f"wrong {number}")], {}) for number in range(JOBS)]


def reports(memory: CascadeMemory) -> list[Job]:
    found = [memory.episodes.get(rewarded(memory, number, "agent")) for number in range(JOBS)]
    return [([one.id], {"seen": one.fingerprint}) for one in found if one is not None]


def wrong(memory: CascadeMemory) -> list[Job]:
    """Episodes and cases by hand, in turn."""
    jobs: list[Job] = []
    for number in range(JOBS):
        one = rewarded(memory, number) if number % 2 else memory.add(f"task {number}", f"wrong {number}")
        jobs.append(([one, f"right {number}"], {"note": "so it is"}))
    return jobs


def corrected(memory: CascadeMemory) -> list[Job]:
    for (one, solution), _ in wrong(memory):
        memory.review.correct(one, solution)
    return [([entry.id], {}) for entry in memory.review.audit(newest_first=False) if entry.action == "correct"]


def of_episodes(memory: CascadeMemory) -> list[Job]:
    for number in range(JOBS):
        rewarded(memory, number)
    return [([case.id], {}) for case in memory.cases.all()]


def expired(memory: CascadeMemory) -> list[Job]:
    jobs = flags(memory)
    ledger = engine_of(memory).parts.ledger
    ledger.expiry.expire(1, 1e-9)
    with ledger.connections.write(durable=True) as connection:  # as if their time of grace were long
        connection.execute("UPDATE expired SET until_run = 1e9")
    return jobs


class Found:
    """What is there after the kill."""

    def __init__(self, memory: CascadeMemory) -> None:
        self.memory = memory
        self.entries = [(entry.action, entry.subject, entry.undoes) for entry in memory.review.audit() if entry.actor == "ann"]

    def has_entry(self, verb: str, one: str) -> bool:
        return any(action == verb.rpartition(".")[2] and one in (subject, undoes) for action, subject, undoes in self.entries)

    def texts(self, number: int) -> list[str]:
        """The solutions of a task that agents can be shown."""
        return [str(case.solution) for case in self.memory.cases.all() if case.query == f"task {number}" and not case.hidden]


def is_flagged(flag: str) -> Callable[[Found, str, int], bool]:
    return lambda found, one, number: bool(getattr(found.memory.cases.get(one), flag))


def is_judged(found: Found, one: str, number: int) -> bool:
    episode = found.memory.episodes.get(one)
    assert episode is not None
    confirmed = found.texts(number) == [f"wrong {number}"]
    assert confirmed == (episode.source == "human" and episode.reward == 1.0)
    assert episode.has_only_agents_word != (episode.source == "human")
    return episode.source == "human"


def is_corrected(found: Found, one: str, number: int) -> bool:
    (text,) = found.texts(number)
    assert text in (f"right {number}", f"wrong {number}")
    return text == f"right {number}"


def is_forgotten(found: Found, one: str, number: int) -> bool:
    gone = one not in found.memory
    assert [episode.query for episode in found.memory.episodes.all()].count(f"task {number}") == int(not gone)
    return gone


def is_back(found: Found, one: str, number: int) -> bool:
    back = one in found.memory
    assert back != (one in {case.id for case in found.memory.cases.expired()})
    return back


KINDS: dict[str, tuple[str, Callable[[CascadeMemory], list[Job]], Callable[[Found, str, int], bool]]] = {
    "pin": ("cases.pin", flags, is_flagged("pinned")),
    "hide": ("cases.hide", flags, is_flagged("hidden")),
    "confirm": ("review.confirm", reports, is_judged),
    "reject": ("review.reject", reports, is_judged),
    "correct": ("review.correct", wrong, is_corrected),
    "undo": ("review.undo", corrected, lambda found, one, number: not is_corrected(found, one, number)),
    "forget": ("forget", of_episodes, is_forgotten),
    "bring_back": ("cases.bring_back", expired, is_back),
}


def acted_until_killed(folder: Path, verb: str, jobs: list[Job], rng: random.Random) -> tuple[int, int]:
    """Return how many actions began, and how many were acknowledged."""
    command = [sys.executable, "-W", "ignore", "-c", _PERSON, str(folder), verb]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as person:
        assert person.stdin is not None
        assert person.stdout is not None
        assert person.stdout.readline() == "ready\n"
        person.stdin.write(json.dumps(jobs) + "\n")
        person.stdin.flush()
        last = rng.randrange(2, JOBS - 2)
        while (line := person.stdout.readline()) != f"begins {last}\n":
            assert line, "it ended before it was killed"
        time.sleep(rng.random() * 0.006)
        os.kill(person.pid, signal.SIGKILL)
        rest = person.stdout.read().split("\n")[:-1]  # what it was killed while writing is no line
    done = max([last, *(int(line.split()[1]) + 1 for line in rest if line.startswith("done "))])
    began = max([last, *(int(line.split()[1]) for line in rest if line.startswith("begins "))]) + 1
    return began, done


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_is_there_and_nothing_is_half_there(tmp_path: Path, kind: str):
    verb, prepare, is_done = KINDS[kind]
    rng = random.Random(kind)
    for number in range(ROUNDS):
        folder = tmp_path / f"memory{number}"
        with CascadeMemory(folder, embedder="hashing") as memory:
            jobs = prepare(memory)
        began, acknowledged = acted_until_killed(folder, verb, jobs, rng)
        with CascadeMemory(folder, embedder="hashing") as memory:
            found = Found(memory)
            for place, ([one, *_], _) in enumerate(jobs):
                done = is_done(found, one, place)
                assert done == found.has_entry(verb, one), (place, began, acknowledged)
                assert done or place >= acknowledged, (place, acknowledged)
                assert not done or place < began, (place, began)
            assert all(check.ok for check in memory.data.examine())

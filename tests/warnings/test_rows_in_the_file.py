"""Failures, checks and decisions in a file that was edited, or whose writer was killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warning_rows import rows_in

from cascade_memory.capabilities.warnings.records import Blame, Check, WarningDecision
from cascade_memory.domain.actions import NewAction
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.testing.ledger_material import LedgerMaterial

ROUNDS = 4
_OTHER = np.array([1.0, 0.0], np.float32)
_WRITER = """
import sys
sys.path[:0] = [sys.argv[2]]
from pathlib import Path
from test_rows_in_the_file import Filled
filled = Filled(Path(sys.argv[1]))
for number in range(int(sys.argv[3]), int(sys.argv[3]) + 1_000_000):
    filled.fail(f"e{number}", group=f"w{number % 7}")
    print("failed", number, flush=True)
    filled.decide(f"w{number % 7}", "retire" if number % 2 else "restore")
    print("decided", number, flush=True)
    if number % 3 == 0:
        filled.ledger.forgetting.forget_episode(f"e{number}")
        print("forgot", number, flush=True)
"""


class Filled(LedgerMaterial):
    """A ledger with failures."""

    def __init__(self, file: Path) -> None:
        self.ledger = SQLiteLedger(file)
        self.ledger.namespace("default", create=True)

    def fail(self, episode: str, **options: Any) -> None:
        said: dict[str, Any] = {"why": "failed", "tool": "sql", "action": "SELECT x", "happened": "no such column: x"}
        said |= {"group": "w", "words": ("x",), **options}
        blame = Blame(**said)
        self.ledger.record(self._recall(episode))
        self.ledger.settle(self._settlement(episode, 0.0, found={"blame": blame}))

    def check(self, episode: str) -> None:
        self.ledger.record(self._recall(episode))
        rows_in(self.ledger).note_check(Check(episode_id=episode, warning="w", warned=True, propensity=0.5, at=3.0))

    def decide(self, warning: str, kind: str, **decision: Any) -> bool:
        return rows_in(self.ledger).decide(1, warning, WarningDecision(**decision), NewAction(kind=kind, actor="ann"))

    def edit(self, statement: str) -> None:
        with self.ledger.connections.write(durable=False) as connection:
            connection.execute("PRAGMA defer_foreign_keys = ON")
            assert connection.execute(statement).rowcount == 1

    def mended(self) -> tuple[str, list[str]]:
        """Return what the doctor did, and the episodes whose failures are left."""
        said = self.ledger.maintenance.mend(lambda texts: np.array([_OTHER] * len(texts)))
        assert (self.ledger.maintenance.faults(9), self.ledger.maintenance.orphans()) == ([], {})
        return said, [one.episode_id for one in rows_in(self.ledger).failures(1)]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    one = Filled(tmp_path / "ledger.sqlite3")
    yield one
    one.ledger.close()


def test_a_lost_vector_is_made_again(filled: Filled):
    filled.fail("e1")
    filled.edit("UPDATE failure SET vector = x'00000000'")
    assert rows_in(filled.ledger).failures(1) == []
    assert filled.mended() == ("1 failures mended", ["e1"])
    np.testing.assert_allclose(rows_in(filled.ledger).failures(1)[0].vector, _OTHER)


_EDITS = ("why = 'rumour'", "words = '[1]'", "words = 'x'", "happened = x'00'", "action = CAST(x'ff' AS TEXT)", "trust = 9")


@pytest.mark.parametrize("edit", _EDITS)
def test_what_cannot_be_used_is_removed_and_the_rest_is_served(filled: Filled, edit: str):
    filled.fail("e1")
    filled.fail("e2")
    filled.edit(f"UPDATE failure SET {edit} WHERE key = 1")
    assert "e2" in [one.episode_id for one in rows_in(filled.ledger).failures(1)]
    assert filled.mended() == ("1 failures removed", ["e2"])


def test_checks_and_decisions_that_cannot_be_are_removed(filled: Filled):
    filled.fail("e1")
    filled.check("e2")
    filled.decide("w", "retire")
    filled.decide("w", "advise", advice="quote names")
    filled.edit("UPDATE checked SET propensity = 7.0")
    filled.edit("UPDATE warning_decision SET retired = 5 WHERE retired = 1")
    assert len(filled.ledger.maintenance.faults(9)) == 2
    assert filled.mended()[1] == ["e1"]
    assert rows_in(filled.ledger).checks("e2") == []
    assert rows_in(filled.ledger).decisions(1) == {"w": WarningDecision(advice="quote names")}


def test_a_failure_without_an_outcome_that_stands_is_an_orphan(filled: Filled):
    filled.fail("e1")
    filled.decide("w", "retire")
    filled.edit("UPDATE outcome SET withdrawn_at = 1.0")
    filled.edit("UPDATE episode SET status = 'censored'")
    assert rows_in(filled.ledger).failures(1) == []
    assert filled.ledger.maintenance.orphans() == {"failure": 1}
    filled.ledger.maintenance.remove_orphans()
    assert filled.ledger.maintenance.orphans() == {}
    assert rows_in(filled.ledger).decisions(1) == {}


def test_a_process_of_an_older_version_deletes_them_with_what_they_refer_to(filled: Filled):
    filled.fail("e1")
    filled.check("e2")
    filled.edit("DELETE FROM outcome")
    filled.edit("DELETE FROM episode_vector WHERE key = 2")
    filled.edit("UPDATE recall SET episode = NULL WHERE episode = 2")
    filled.edit("DELETE FROM episode WHERE key = 2")
    with filled.ledger.connections.read() as connection:
        left = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("failure", "checked")]
    assert left == [0, 0]


@pytest.mark.long
def test_whoever_is_killed_leaves_nothing_half_there(tmp_path: Path):
    file, rng, first = tmp_path / "ledger.sqlite3", random.Random(7), 0
    for _ in range(ROUNDS):
        said = _written_until_killed(file, first, rng.randrange(5, 60))
        ledger = Filled(file).ledger
        failures = rows_in(ledger).failures(1, limit=10**6)
        failed = {one.episode_id for one in failures}
        last = max(said["failed"], key=lambda one: int(one[1:]))  # it may have been forgotten before anybody could say so
        assert said["failed"] - said["forgot"] - {last} <= failed
        assert not said["forgot"] & failed
        assert failed == {one.id for one in ledger.episodes.listed(1, status="settled")}
        assert set(rows_in(ledger).decisions(1)) <= {one.blame.group for one in failures}
        assert (ledger.maintenance.orphans(), ledger.maintenance.faults(9)) == ({}, [])
        assert ledger.maintenance.audit_log()[0]
        first = 1 + max(int(one.id[1:]) for one in ledger.episodes.listed(1))
        ledger.close()


def _written_until_killed(file: Path, first: int, lines: int) -> dict[str, set[str]]:
    """Return what was acknowledged."""
    command = [sys.executable, "-c", _WRITER, str(file), str(Path(__file__).parent), str(first)]
    said: dict[str, set[str]] = {"failed": set(), "decided": set(), "forgot": set()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            verb, number = writer.stdout.readline().split()
            said[verb].add(f"e{number}")
        os.kill(writer.pid, signal.SIGKILL)
        for line in writer.stdout.read().splitlines():
            if len(words := line.split()) == 2:
                said[words[0]].add(f"e{words[1]}")
    return said

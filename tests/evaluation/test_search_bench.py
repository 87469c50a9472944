"""Deep search in the benchmark: a model behind an OpenAI-compatible server, real MCP servers, a judge; the scripted agent."""

from __future__ import annotations

import argparse
import functools
import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, BaseMessage
from mcp_servers import over_http
from openai_server import serving

from cascade_memory.cli import main
from cascade_memory.cli.bench_options import searching_of
from cascade_memory.evaluation.bench import search_stage
from cascade_memory.evaluation.bench import stage as bench_stage
from cascade_memory.evaluation.model import OpenAICompatible

PUBLISHED = Path(__file__).parents[1] / "fixtures" / "dtlbench"
CORPUS = PUBLISHED / "2wiki" / "corpus.jsonl"
WEB = Path(__file__).parents[1] / "helpers" / "web_search_server.py"
METHODS = ["zero-shot", "similarity", "CASCADE, always a case"]
KNOWN = ("Salt Garden", "Lantern Song")  # the model knows how to search for these without a case


def model(messages: Sequence[BaseMessage], tool: str = "search") -> AIMessage:
    """Go from the film to its director if a case shows the way; without one, search once and give up, but for two questions."""
    system, first = str(messages[0].content), str(messages[1].content)
    if '"VERDICT ' in system:
        return judge(system, first)
    question = first.rsplit("Question: ", 1)[1]
    name = re.search(r"(?:film|song) ([A-Z][\w ]+?)(?: born)?\?", question)[1]
    seen = [str(message.content) for message in messages if message.type == "tool"]
    informed = "Steps that solved it" in first or any(one in question for one in KNOWN)
    if not seen:
        return wish(tool, name)
    who = re.search(r"(?:directed|performed) by ([A-Z]\w+ [A-Z]\w+)", seen[0])
    if len(seen) == 1 and informed and who:
        return wish(tool, who[1])
    facts = re.search(r"\(born ([\w ]+)\)", seen[-1]) if question.startswith("When") else re.search(
        r"who was born in ([A-Z]\w+(?: [A-Z]\w+)?)", seen[-1]
    )  # fmt: skip
    return AIMessage(facts[1] if facts and len(seen) == 2 else "unknown")


def judge(system: str, body: str) -> AIMessage:
    sign = system.split('"VERDICT ')[1].split(":")[0]
    work = body.split("Work:\n", 1)[1].rsplit("\n---", 1)[0]
    known = [line[2:] for line in body.split("Work:", 1)[0].splitlines() if line.startswith("- ")]
    return AIMessage(f"VERDICT {sign}: {int(work in known)}")


def wish(tool: str, query: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": {"query": query}, "id": f"call_{len(query)}"}])


def bench(url: str, out: Path, *options: str, data: Path = PUBLISHED) -> list[dict[str, Any]]:
    search_stage.passages_of.cache_clear()
    asked = ["bench", "run", "--model", "tiny", "--base-url", url, "--tasks", "2wiki", "--methods", *METHODS, "--seeds", "1"]
    assert main([*asked, "--data", str(data), "--out", str(out), "--jobs", "1", "--json", *options]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def check(rows: list[dict[str, Any]]) -> None:
    """Check that a memory helps, and makes the model search more."""
    none, similar, cascade = rows
    assert (none["n"], none["rate"]) == (8, 0.25)
    for row in (similar, cascade):
        assert row["rate"] == 1.0 or row["rate"] > none["rate"] + 0.3
        assert row["steps_per_task"] > none["steps_per_task"]
        assert row["cases"] == row["success"].count("1")
    assert len(none["steps"]) == 8
    assert set(none["steps"]) == {1, 2}


@pytest.fixture(autouse=True)
def _hashing(monkeypatch: pytest.MonkeyPatch):
    """Use the embedder without a model, which is fast."""
    monkeypatch.setattr(bench_stage, "is_installed", lambda: False)
    search_stage.embedder_in.cache_clear()
    yield
    search_stage.embedder_in.cache_clear()


@pytest.mark.parametrize("retrieval", ["dense", "bm25", "both"])
def test_passages_of_the_data(retrieval, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with serving(model) as (url, received):
        rows = bench(url, tmp_path / "rows.jsonl", "--retrieval", retrieval)
    check(rows)
    assert rows[0]["search"].startswith(f"passages here, {retrieval}")
    assert (rows[0]["judged_by"], rows[0]["searches_failed"], rows[0]["requests"]) == ("labels", 0, 18)
    assert [tool["function"]["name"] for tool in received[0]["tools"]] == ["search"]
    assert len(list((tmp_path / "rows.work").glob("passages-*.npy"))) == (0 if retrieval == "bm25" else 1)
    shown = [one["messages"][1]["content"] for one in received if "Steps that solved it" in one["messages"][1]["content"]]
    assert any('Tool calls: search({"query": "The Salt Garden"}); search({"query": "Mirela Oswin"})' in one for one in shown)


@pytest.mark.long
def test_a_web_search_over_stdio_needs_no_passages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "2wiki.jsonl").write_bytes((PUBLISHED / "2wiki" / "2wiki.jsonl").read_bytes())
    server = shlex.join([sys.executable, str(WEB), str(CORPUS), "--as", "many"])
    with serving(functools.partial(model, tool="search_web")) as (url, received):
        options = ["--search", server, "--search-tool", "search_web"]
        rows = bench(url, tmp_path / "rows.jsonl", *options, data=tmp_path)
        again = len(received)
        assert bench(url, tmp_path / "rows.jsonl", *options, data=tmp_path) == rows
        assert len(received) == again  # all rows are there
        asked = ["bench", "run", "--model", "tiny", "--base-url", url, "--tasks", "2wiki", "--methods", "zero-shot"]
        assert main([*asked, "--seeds", "1", "--data", str(PUBLISHED), "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert "name another file" in capsys.readouterr().err  # rows of another search tool
    check(rows)
    assert rows[0]["declared"]["search_tool"] == "search_web"
    assert "https://example.org/0" in str([one["messages"][-1] for one in received if one["messages"][-1]["role"] == "tool"])


@pytest.mark.slow
def test_a_server_over_http_and_a_judging_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    searching = over_http("-m", "cascade_memory.evaluation.search.server", str(CORPUS))
    with searching as server, serving(model) as (url, _), serving(model) as (judging, asked):
        options = ["--search", server, "--judge", "model", "--judge-model", "strict", "--judge-base-url", judging]
        rows = bench(url, tmp_path / "rows.jsonl", *options)
    check(rows)
    assert (rows[0]["judged_by"], rows[0]["judge_silent"], rows[0]["judge_requests"]) == ("strict", 0, 8)
    assert rows[0]["declared"]["judge"] == "strict"
    assert {one["model"] for one in asked} == {"strict"}
    assert "tools" not in asked[0]


def test_a_judging_model_is_named_in_the_rows_with_what_it_was_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with serving(model) as (url, _), serving(model) as (judging, asked):
        options = ["--judge", "model", "--judge-model", "strict", "--judge-base-url", judging, "--methods", "zero-shot"]
        (row,) = bench(url, tmp_path / "rows.jsonl", *options)
    assert (row["judged_by"], row["judge_silent"], row["judge_requests"]) == ("strict", 0, len(asked))
    assert row["success"].count("1") == 2


def test_a_judging_model_gets_as_much_time_as_the_one_that_answers():
    options = argparse.Namespace(judge="model", judge_model="strict", judge_base_url=None, base_url="http://localhost:1/v1")
    options.stream = options.search = options.search_tool = options.retrieval = None
    options.timeout = 300.0
    judge = searching_of(options).judge
    assert isinstance(judge, OpenAICompatible)
    assert (judge.timeout, judge.patience) == (300.0, 1_500.0)
    options.timeout = None
    judge = searching_of(options).judge
    assert isinstance(judge, OpenAICompatible)
    assert (judge.timeout, judge.patience) == (120.0, 600.0)


@pytest.mark.long
def test_a_dead_server_stops_the_run_and_one_that_dies_once_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    marks = tmp_path / "marks"
    once = shlex.join([sys.executable, str(WEB), str(CORPUS), "--as", "dies-once", "--marks", str(marks)])
    with serving(functools.partial(model, tool="search_web")) as (url, _):
        rows = bench(url, tmp_path / "rows.jsonl", "--search", once, "--methods", "zero-shot")
        assert (rows[0]["searches_failed"], rows[0]["n"]) == (1, 8)
        asked = ["bench", "run", "--model", "tiny", "--base-url", url, "--tasks", "2wiki", "--data", str(PUBLISHED), "--out"]
        assert main([*asked, str(tmp_path / "dead.jsonl"), "--jobs", "1", "--search", "no-such-command-anywhere"]) == 1
    said = capsys.readouterr().err
    assert "the search server no-such-command-anywhere did not start" in said
    assert "check the command or the URL of --search" in said


MODEL = ("--model", "m", "--base-url", "http://localhost:1/v1")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tasks", "2wiki", "--search", "x"], "--search can only be used with --model and --tasks 2wiki"),
        ([*MODEL, "--tasks", "banking77", "--retrieval", "bm25"], "--retrieval can only"),
        ([*MODEL, "--tasks", "banking77", "--judge", "model"], "--judge can only"),
        ([*MODEL, "--tasks", "2wiki", "--judge", "jaccard"], "one of labels, model"),
        ([*MODEL, "--tasks", "2wiki", "--judge-model", "j"], "with --judge model"),
        ([*MODEL, "--tasks", "2wiki", "--retrieval", "faiss"], "dense, bm25, both"),
        ([*MODEL, "--tasks", "2wiki", "--search-tool", "t"], "together with its server"),
        ([*MODEL, "--tasks", "2wiki", "--search", ""], "--search needs"),
        ([*MODEL, "--tasks", "2wiki", "--search", "x", "--retrieval", "bm25"], "not searched with --search"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_meant_are_refused(options, says, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "run", *options, "--data", str(PUBLISHED), "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "rows.jsonl").exists()


def test_missing_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = ["bench", "run", "--suite", "deep-search", "--data", str(tmp_path), "--out", str(tmp_path / "rows.jsonl")]
    assert main(asked) == 2
    assert "no questions for 2wiki" in capsys.readouterr().err
    (tmp_path / "2wiki.jsonl").write_bytes((PUBLISHED / "2wiki" / "2wiki.jsonl").read_bytes())
    assert main(asked) == 2
    assert "no passages for 2wiki" in capsys.readouterr().err


def test_the_scripted_agent_answers_more_with_a_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = [
        "bench",
        "run",
        "--suite",
        "deep-search",
        "--data",
        str(PUBLISHED),
        "--out",
        str(tmp_path / "rows.jsonl"),
        "--json",
    ]
    assert main([*asked, "--jobs", "1", "--seeds", "2"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    assert {row["solver"] for row in rows} == {"reuse"}
    right = {name: sum(row["rate"] for row in rows if row["method"] == name) / 2 for name in {row["method"] for row in rows}}
    assert right["similarity"] > right["zero-shot"]
    assert all(row["declared"] == {"planned": 0.35, "search": "bm25"} for row in rows)
    assert all(max(row["steps"]) <= 5 for row in rows)
    first = next(row for row in rows if row["method"] == "zero-shot")
    assert first["alone"] == first["success"]

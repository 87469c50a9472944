"""The examples run, with no network at all where it can be taken away, and show what they claim to show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from offline import offline

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: str, *arguments: str, cwd: Path, loopback: bool = False) -> str:
    """Run an example, return what it printed; ``loopback``: it needs this machine's own network, which goes with the rest."""
    command = [*(() if loopback else offline()), sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_household_agent_learns_what_similarity_does_not(tmp_path: Path):
    printed = run("household_agent.py", cwd=tmp_path)
    last = {
        name.strip(): int(fifths.split("%")[-2]) for name, fifths in re.findall(r"^  (\D+?)  +(\d.*%)$", printed, re.MULTILINE)
    }
    assert last["CASCADE"] >= last["most similar case"] + 30
    assert last["CASCADE"] >= last["no memory"] + 30


@pytest.mark.slow
def test_the_llama_index_agent_learns(tmp_path: Path):
    pytest.importorskip("llama_index.core")
    printed = run("llamaindex_agent.py", cwd=tmp_path)
    first, _, last = (int(share) for share in re.findall(r"(\d+)%", printed.splitlines()[-1]))
    assert last >= first + 10


@pytest.mark.slow
def test_the_warned_agent_stops_making_its_mistake(tmp_path: Path):
    pytest.importorskip("langchain")
    printed = run("warned_agent.py", cwd=tmp_path)
    failed = {
        name: [int(one) for one in numbers.split()]
        for name, numbers in re.findall(r"^  (\w+ warnings) +([\d ]+)$", printed, re.M)
    }
    assert min(failed["no warnings"]) >= 10
    assert max(failed["with warnings"][1:]) <= 6
    assert "there is no build 'latest'" in printed.split("The last warning")[1]


@pytest.mark.long
def test_the_deep_search_agent_answers_more_with_a_memory_and_searches_more(data: Path, tmp_path: Path):
    pytest.importorskip("langchain_mcp_adapters")
    printed = run("deep_search", "--seeds", "1", cwd=tmp_path)
    rows = re.findall(r"^(\w[\w ,]+?)  +([\d.]+)%  .* ([\d.]+)$", printed, re.MULTILINE)
    right, calls = ({name: float(row[place]) for name, *row in rows} for place in (0, 1))
    assert set(right) == {"no memory", "most similar case", "CASCADE, always a case", "CASCADE"}
    for name in set(right) - {"no memory"}:
        assert right[name] > right["no memory"]
        assert calls[name] > calls["no memory"] + 0.1
    assert max(calls.values()) <= 5


@pytest.mark.long
def test_deep_search_takes_a_model_behind_an_openai_compatible_server(data: Path, tmp_path: Path):
    for needed in ("langchain_mcp_adapters", "langchain_openai"):
        pytest.importorskip(needed)
    from langchain_core.messages import AIMessage
    from openai_server import serving

    def reply(messages: Any) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("yes")
        query = str(messages[-1].text).splitlines()[-1]
        return AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": f"call_{len(messages)}"}])

    with serving(reply) as (url, received):
        arguments = ["--model", "some-model", "--base-url", url, "--questions", "12"]
        printed = run("deep_search", *arguments, cwd=tmp_path, loopback=True)
    assert printed.startswith("some-model; 12 questions over MCP")
    assert {one["model"] for one in received} == {"some-model"}
    assert received[0]["tools"][0]["function"]["name"] == "search"
    found = [str(message["content"]) for one in received for message in one["messages"] if message["role"] == "tool"]
    assert any("Interview with a Hitman" in one for one in found)  # a passage, which came over MCP
    assert any("Steps that solved it" in str(one["messages"]) for one in received)  # a case, once a "yes" was right


@pytest.mark.long
def test_the_latency_benchmark_runs(tmp_path: Path):
    pytest.importorskip("langchain_chroma")
    printed = run("benchmarks/latency.py", "--sizes", "300", "--times", "20", cwd=tmp_path)
    assert "a new case is recalled at once: True" in printed
    assert (tmp_path / "results/latency.jsonl").is_file()


@pytest.mark.long
def test_the_mcp_latency_benchmark_runs(tmp_path: Path):
    pytest.importorskip("mcp")
    pytest.importorskip("torch")
    few = ["--cases", "100", "--times", "3", "--processes", "1"]
    printed = run("benchmarks/mcp_latency.py", *few, cwd=tmp_path, loopback=True)
    assert [line.split("  ")[0] for line in printed.splitlines()] == ["kept stdio", "kept http", "fresh stdio"]


@pytest.mark.long
def test_the_benchmark_of_first_recalls_runs(tmp_path: Path):
    pytest.importorskip("fastapi")
    printed = run("benchmarks/first_recall.py", "--cases", "30", "--times", "1", cwd=tmp_path)
    assert len(re.findall(r"^ +\d+ ms  ", printed, re.MULTILINE)) == 7


_LONG = pytest.mark.long


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        pytest.param("worlds", "--rounds 60 --seeds 1 --out rows.jsonl", marks=pytest.mark.long),
        ("posterior", "--updates 100 --dimension 64"),
        ("checking", "--failures 60 --times 20"),
        pytest.param("cross_encoder_cost", "--tiny --tokens 64 --times 1 --out rows.jsonl", marks=pytest.mark.long),
        pytest.param(
            "scale", "--parts sizes episodes --sizes 60 --episodes 60 --out rows.jsonl --work .", marks=pytest.mark.long
        ),
        pytest.param("online_cross_encoder", "--steps 16 --held-out 8 --seeds 1 --out rows.jsonl", marks=pytest.mark.long),
        pytest.param("eviction", "--limit 80 --max-cases 30 --seeds 1 --out rows.jsonl", marks=pytest.mark.long),
        pytest.param(
            "tenants", "--streams ddxplus --tenants 2 --episodes 20 --seeds 1 --out rows.jsonl", marks=pytest.mark.long
        ),
    ],
)
def test_a_benchmark_runs(script: str, arguments: str, data: Path, tmp_path: Path):
    pytest.importorskip("torch")
    printed = run(f"benchmarks/{script}.py", *arguments.split(), cwd=tmp_path)
    assert re.search(r"\d", printed)
    if "rows.jsonl" in arguments:
        assert (tmp_path / "rows.jsonl").read_text().count("\n") >= 1


@pytest.mark.slow
def test_an_agent_learns_from_scores_on_its_traces_as_from_direct_rewards(tmp_path: Path):
    pytest.importorskip("langchain")
    printed = run("collected_scores.py", cwd=tmp_path)
    first, *_, last = (int(share) for share in re.findall(r"(\d+) %", printed))
    assert first < 90 <= last
    assert printed.endswith("with direct rewards: True\n")

"""The help desk example: memory helps, whichever agent it is hooked into, and a real client works unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from offline import offline

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

STYLES = {"create_agent": "tools", "graph": "tools", "react-text": "react", "rag": "plan"}


def run(*arguments: str, cwd: Path, before: tuple[str, ...] = ()) -> dict[str, list[int]]:
    """Run the example and return the percentages that it prints, by method."""
    script = EXAMPLES / "langchain_react_agent.py"
    done = subprocess.run([*before, sys.executable, script, *arguments], cwd=cwd, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert (cwd / "help_desk.png").stat().st_size > 10_000
    rows = re.findall(r"^  (\D+?)  +(\d.*%)$", done.stdout, re.MULTILINE)
    return {name: [int(number) for number in re.findall(r"(\d+)%", numbers)] for name, numbers in rows}


@pytest.mark.parametrize(
    ("agent", "tickets"),
    [pytest.param(one, 120, marks=pytest.mark.long) for one in STYLES],
)
def test_the_memory_raises_success(agent: str, tickets: int, tmp_path: Path):
    solved = run("--agent", agent, "--seeds", "1", "--tasks", str(tickets), cwd=tmp_path, before=offline())
    assert solved["CASCADE"][4] >= solved["no memory"][4] + 20
    assert solved["CASCADE"][-1] >= solved["no memory"][-1] + 15
    assert solved["CASCADE"][-1] >= solved["most similar case"][-1] + 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent", [one if one == "create_agent" else pytest.param(one, marks=pytest.mark.long) for one in STYLES]
)
def test_the_same_script_runs_with_a_model_behind_an_openai_compatible_server(agent: str, tmp_path: Path):
    pytest.importorskip("langchain_openai")
    from help_desk.scripted import ScriptedModel
    from openai_server import serving

    model = ScriptedModel(style=STYLES[agent])
    with serving(model.reply) as (url, received):
        solved = run("--agent", agent, "--tasks", "8", "--model", "some-model", "--base-url", url, cwd=tmp_path)
    assert set(solved) == {"no memory", "most similar case", "CASCADE"}
    assert {asked["model"] for asked in received} == {"some-model"}
    if STYLES[agent] == "tools":
        assert {tool["function"]["name"] for tool in received[0]["tools"]} == {"inspect", "restart", "reset", "replace"}
    assert any("memory-" in str(asked["messages"]) or "Solution" in str(asked["messages"]) for asked in received), (
        "cases arrive"
    )

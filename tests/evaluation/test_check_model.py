"""``bench check-model`` on a local server: what a model and its server cannot do is found before a benchmark meets it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from real_model_server import Asked, Real, serving

from cascade_memory.cli import main
from cascade_memory.evaluation.model import OpenAICompatible
from cascade_memory.evaluation.model.checking import check_model, summary


def able(asked: Asked) -> str | dict[str, Any]:
    """A model that does what it is asked for."""
    text = str(asked["messages"][-1]["content"])
    if asked.get("tools") and asked["messages"][-1]["role"] == "user":
        call = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}}
        return {"content": None, "tool_calls": [call]}
    if asked["messages"][-1]["role"] == "tool":
        return "723,000 people live there."
    if found := re.match(r"What is (\d) \+ (\d)\?", text):
        return rf"\boxed{{{int(found[1]) + int(found[2])}}}"
    if "prime" in text:
        return "no"
    if "door is closed" in text:
        return "Action: open door"
    if "Python" in text:
        return "```python\nanswer = 6 * 7\n```"
    return "heron" if "password" in text else "Paris"


def verdicts(real: Real, **options: Any) -> dict[str, str]:
    with serving(real):
        return {
            one.about: one.verdict
            for one in check_model(
                OpenAICompatible(**{"base_url": real.url, "model": "small", "retries": 0, "max_tokens": 50, **options}),
                longest=3_000,
            )
        }


def test_a_model_that_can_do_everything():
    assert set(verdicts(Real(able)).values()) == {"ok"}


def changed(**said: str) -> Real:
    def say(asked: Asked) -> str | dict[str, Any]:
        reply = able(asked)
        text = str(asked["messages"][-1]["content"])
        kinds: Sequence[tuple[str, bool]] = (
            ("sums", text.startswith("What is ") and "password" not in text),
            ("prime", "prime" in text),
            ("door", "door is closed" in text),
            ("code", "Python" in text),
            ("tool", isinstance(reply, dict)),
        )
        return next((said[kind] for kind, fits in kinds if fits and kind in said), reply)

    return Real(say)


@pytest.mark.parametrize(
    ("said", "about", "verdict"),
    [
        ({"sums": r"\boxed{...}"}, "form of an answer", "fails"),
        ({"prime": "<think>7 * 13</think>no"}, "thinks aloud", "mended"),
        ({"prime": "<think>7 * 13 ..."}, "thinks aloud", "fails"),
        ({"door": "Action: open door\nObservation: It opens."}, "acts", "mended"),
        ({"door": "I open it."}, "acts", "fails"),
        ({"code": "```py\nanswer = 42\n```"}, "writes code", "ok"),
        ({"code": "Six times seven!"}, "writes code", "fails"),
        ({"tool": '{"name": "look_up", "arguments": {"city": "Oslo"}}'}, "calls tools", "mended"),
        ({"tool": "723,000"}, "calls tools", "fails"),
    ],
)
def test_what_a_model_cannot_do_is_found(said: dict[str, str], about: str, verdict: str):
    assert verdicts(changed(**said))[about] == verdict


def test_how_long_a_prompt_may_be_is_found():
    assert verdicts(Real(able, context=1_200))["length of a prompt"] == "fails"
    assert verdicts(Real(able, context=1_200, cuts=True))["length of a prompt"] == "fails"


def test_the_command_prints_a_table_and_exits_with_what_it_found(capsys: pytest.CaptureFixture[str]):
    with serving(changed(prime="<think>7 * 13</think>no")) as real:
        command = ["bench", "check-model", "--model", "small", "--base-url", real.url, "--longest", "3000"]
        assert main([*command, "--timeout", "30"]) == 0
        out = capsys.readouterr().out
        assert "thinks aloud" in out
        assert "This model can play every kind of task." in out
        real.context = 1_200
        assert main(command) == 1
        assert "ask for a shorter one" in " ".join(capsys.readouterr().out.split())
        assert main([*command, "--json", "--sampling", '{"max_tokens": 50}']) == 1
        found = json.loads(capsys.readouterr().out)
    assert [one["about"] for one in found if one["verdict"] == "fails"] == ["length of a prompt"]
    assert main(["bench", "check-model", "--model", "small", "--base-url", real.url]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert summary([]) == "This model can play every kind of task."

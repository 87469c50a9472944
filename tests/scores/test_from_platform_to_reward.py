"""From a score on a platform to the reward of an episode, with a memory on disk."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_traces import RUNS, run
from score_platform import KEY, SECRET, Played, feedback, playing
from scored import opened, recalled, trace

from cascade_memory.capabilities import scores
from cascade_memory.capabilities.scores.fields import written
from cascade_memory.cli import main

TOKEN = "sk-proj-4h8Xk2Lm9Qw7Ez1Rt5Yu3Io6Pa0Sd8Fg2Hj4Kl6Zx8Cv0Bn"
YESTERDAY = written(time.time() - 86_400)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def item(**fields: Any) -> dict[str, Any]:
    trace_id, run_id = RUNS
    return feedback(run_id=run_id, trace_id=trace_id, created_at=YESTERDAY, modified_at=YESTERDAY, **fields)


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    with playing(lambda _path, _query: []) as played:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", played.url)
        yield played


def collect(folder: Path, platform: Played, *items: Any) -> int:
    platform.answer = lambda _path, query: list(items) if query["offset"] == ["0"] else []
    return main(["collect", "langsmith", "--path", str(folder)])


def test_a_thumb_in_langsmith_becomes_a_reward_is_revised_and_withdrawn(folder, platform, capsys):
    with opened(folder) as memory, run():
        episode = memory.recall("cool some mug").episode_id
        memory.episodes.finish(episode, solution="put it into the fridge")

    def reward() -> Any:
        with opened(folder) as memory:
            return memory.episodes.get(episode).reward

    assert collect(folder, platform, item(score=1)) == 0
    assert reward() == 1.0
    assert collect(folder, platform, item(score=0) | {"modified_at": written(time.time() - 40_000)}) == 0
    assert reward() == 0.0
    assert collect(folder, platform) == 0  # deleted
    assert reward() is None
    assert "without an outcome again" in capsys.readouterr().out
    for _ in range(2):
        assert collect(folder, platform, item(score=0) | {"modified_at": written(time.time() - 40_000)}) == 0
        assert reward() == 0.0  # there again: the key was one of another project for a while


def test_no_key_and_no_secret_of_a_comment_or_a_correction_reaches_the_ledger_or_the_output(folder, platform, capfd):
    with opened(folder) as memory, run():
        memory.episodes.finish(memory.recall("cool some mug").episode_id, solution="put it into the fridge")
    told = item(score=0, comment=f"the token was {TOKEN}", correction=f"call it with api_key={TOKEN}")
    assert collect(folder, platform, told, item(score=1, id="f-2", key=f"token {TOKEN}")) == 0
    out = capfd.readouterr()
    kept = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file()) + (out.out + out.err).encode()
    assert [one for one in (KEY, SECRET, TOKEN) if one.encode() in kept] == []
    assert b"call it with api_key=" in kept


def test_a_posted_score_becomes_a_reward(folder):
    with opened(folder) as memory:
        episode = recalled(memory, 0)
        app = scores.Webhook(memory, secret=SECRET, platform="mine", weights={"thumb": 1.0})
        one = {"id": "7", "name": "thumb", "value": "up", "judge": "human", "at": 1.7e9, "trace_id": trace(0)}
        body = json.dumps({"scores": [one, {**one, "id": "8", "name": "length", "value": 0.0}]}).encode()

        async def post() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://memory") as client:
                return await client.post("/", content=body, headers={"x-cascade-signature": scores.signature(SECRET, body)})

        assert asyncio.run(post()).json() == {"scores": 2}
        assert memory.episodes.get(episode).reward == 1.0
        assert [stored.name for stored in memory.scores.of(episode)] == ["thumb"]

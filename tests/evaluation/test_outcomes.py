"""Tables of outcomes: each prompt is asked once, whatever is played, and a run against the table is the live run."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from intensity import times
from real_model_server import Asked, Real, serving

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.plan import Suite
from cascade_memory.evaluation.bundled import bundled_data, bundled_tasks
from cascade_memory.evaluation.model import Model, OpenAICompatible
from cascade_memory.evaluation.model.chat import Message, Note, PromptTooLong, Reply, ToolCall
from cascade_memory.evaluation.outcomes import Outcomes, ask_all

METHODS = ("zero-shot", "similarity", "CASCADE", "CASCADE, k = 2")
TIMES = {"ms_per_task", "seconds"}
HELLO: list[Message] = [{"role": "user", "content": "hello"}]


KILLS = [pytest.param(1, id="once"), pytest.param(times(newcomer=3, ci=3, matrix=20), marks=pytest.mark.slow, id="often")]


@cache
def labels() -> dict[str, str]:
    return {item.query: item.solution for item in bundled_tasks()}


def say(asked: Asked) -> str:
    """Answer as chance has it, but always the same to the same prompt: the right intent, a wrong one, or none."""
    told = json.dumps(asked["messages"])
    chance = hashlib.blake2b(told.encode(), digest_size=1).digest()[0]
    task = next((query for query in labels() if str(asked["messages"][-1]["content"]).rstrip().endswith(query)), None)
    if task is None:
        task = next((query for query in labels() if query in str(asked["messages"][-1]["content"])), "")
    return f"\\boxed{{{labels()[task]}}}" if task and chance < 128 else f"I am not sure ({chance})."


class Scripted:
    """The same model without a server; it counts what it is asked."""

    name = "scripted"
    settings: ClassVar[dict[str, Any]] = {"temperature": 0}

    def __init__(self, answer: Any = say, seconds: float = 0.0) -> None:
        self.answer, self.seconds = answer, seconds
        self.asked: list[str] = []

    def complete(self, messages: list[Message], note: Note) -> Reply:
        self.asked.append(json.dumps(messages))
        time.sleep(self.seconds)
        said = self.answer({"messages": messages})
        return said if isinstance(said, Reply) else Reply(said, len(str(messages)), 1)

    def with_tools(self, tools: Any) -> Scripted:
        view = Scripted(lambda asked: Reply("", 1, 1, (ToolCall("1", tools[0]["name"], "{}"),)))
        view.asked = self.asked
        return view


def small(url: str, **extra: Any) -> OpenAICompatible:
    return OpenAICompatible(base_url=url, model="small", retries=0, temperature=0, top_p=None, max_tokens=50, **extra)


def played(chat: Any, out: Path, n: int = 200, jobs: int = 1, **model: Any) -> bytes:
    where = {"data": bundled_data(), "out": out, "jobs": jobs, "progress": False}
    rows = measure("banking77", solver=Model(chat=chat, **model), methods=METHODS, seeds=2, limit=n, **where)
    kept = [{name: value for name, value in row.items() if name not in TIMES} for row in rows]
    return json.dumps(kept).encode().replace(str(out.parent).encode(), b"")


SLOW, LONG = pytest.mark.slow, pytest.mark.long


@pytest.mark.parametrize(
    ("show", "n"),
    [
        ("text", 8),
        *(pytest.param(*one, marks=m) for *one, m in [("turns", 10, SLOW), ("text", 200, LONG), ("turns", 200, LONG)]),
    ],
)
def test_a_run_against_the_table_is_the_live_run_to_the_byte(tmp_path: Path, show: Any, n: int):
    suite = Suite(tasks=["banking77"], methods=METHODS, seeds=2, limit=n)
    with serving(Real(say)) as real:
        live = played(small(real.url), tmp_path / "live" / "rows.jsonl", n, show=show)
        prompts = {json.dumps(one["messages"]) for one in real.asked}
        real.asked.clear()
        with Outcomes(tmp_path / "table", small(real.url)) as outcomes:
            ask_all(suite, data=bundled_data(), solver=Model(chat=outcomes, show=show))
        asked = [json.dumps(one["messages"]) for one in real.asked]
    assert sorted(asked[3:]) == sorted(prompts), "each prompt once, after the three probes"
    assert played(Outcomes(tmp_path / "table"), tmp_path / "replayed" / "rows.jsonl", n, show=show) == live
    if n > 8:
        assert played(Outcomes(tmp_path / "table"), tmp_path / "parallel" / "rows.jsonl", n, show=show, jobs=2) == live
    assert '"too_long": 0' in live.decode()
    assert 0.1 < json.loads(live)[0]["rate"] < 0.9


@pytest.mark.slow
def test_the_table_has_no_text_of_the_tasks(tmp_path: Path):
    with Outcomes(tmp_path / "table", Scripted()) as outcomes:
        suite = Suite(tasks=["banking77"], methods=["similarity"], seeds=1, limit=30)
        ask_all(suite, data=bundled_data(), solver=Model(chat=outcomes))
        ((_, _, none, tasks, _, _), (_, _, one, more, prompts, share)) = outcomes.worth()
        assert (none, one) == (0, 1)
        assert tasks + more == prompts + tasks == 30
        assert 0.0 < share < 1.0
    told = (tmp_path / "table").read_text()
    assert not [query for query in labels() if json.dumps(query)[1:-1] in told]
    assert len(told) / 30 < 270


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(tmp_path: Path):
    suite = Suite(tasks=["banking77"], methods=("zero-shot", "similarity"), seeds=2, limit=20)
    with serving(Real(say)) as real:

        def breaks(asked: Asked) -> str:
            if len(real.asked) > 30:
                raise ConnectionAbortedError
            return say(asked)

        real.say = breaks
        with pytest.raises(ModelUnavailable), Outcomes(tmp_path / "table", small(real.url)) as outcomes:
            ask_all(suite, data=bundled_data(), solver=Model(chat=outcomes), together=8)
        with pytest.raises(ModelUnavailable, match="is closed"):
            outcomes.complete(HELLO)
        kept = len(Outcomes(tmp_path / "table"))
        assert 20 <= kept <= 27  # and three probes
        real.say, before = say, len(real.asked)
        with Outcomes(tmp_path / "table", small(real.url)) as outcomes:
            assert len(outcomes) == kept
            ask_all(suite, data=bundled_data(), solver=Model(chat=outcomes))
            assert len(real.asked) - before - 3 == len(outcomes) - kept > 0


@pytest.mark.parametrize("kills", KILLS)
def test_a_kill_loses_no_answer_that_was_kept(tmp_path: Path, kills: int):
    code = """
import sys
from pathlib import Path
from cascade_memory.evaluation.model.chat import Reply
from cascade_memory.evaluation.outcomes import Outcomes

class Long:
    name, settings = "long", {"temperature": 0}
    def complete(self, messages, note):
        return Reply(messages[-1]["content"] * 50)

with Outcomes(sys.argv[1], Long()) as outcomes:
    for number in range(100_000):
        outcomes.complete([{"role": "user", "content": f"task {number} "}])
        print(number, flush=True)
"""
    table = tmp_path / "table"
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", code, str(table)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(200)][-1]
            os.kill(process.pid, signal.SIGKILL)
            said = ([said, *process.stdout])[-1]
        assert len(Outcomes(table)) >= int(said) + 1
        with open(table, "ab") as file:
            file.write(b'{"key": "cut o')
    assert Outcomes(table).complete([{"role": "user", "content": "task 7 "}]).text == "task 7 " * 50


def test_what_the_table_lacks_is_an_error_that_says_what_to_do(tmp_path: Path):
    Outcomes(tmp_path / "table", Scripted()).close()
    with pytest.raises(ModelUnavailable, match=r"has no answer to this prompt, which begins with 'hello'.*bench outcomes asks"):
        Outcomes(tmp_path / "table").complete(HELLO)
    with pytest.raises(InvalidInput, match="no table of outcomes"):
        Outcomes(tmp_path / "other")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InvalidInput, match="is empty"):
        Outcomes(tmp_path / "empty")


def test_a_table_belongs_to_one_model(tmp_path: Path):
    class Hot(Scripted):
        settings: ClassVar[dict[str, Any]] = {"temperature": 0.7}

    class Another(Scripted):
        name = "another"

    with pytest.raises(InvalidInput, match="set its temperature to 0"):
        Outcomes(tmp_path / "table", Hot())
    assert not (tmp_path / "table").exists()
    about = {"licence": "Apache-2.0"}
    with Outcomes(tmp_path / "table", Scripted(), about=about) as outcomes:
        with pytest.raises(InvalidInput, match="another process"):
            Outcomes(tmp_path / "table", Scripted())
        with pytest.raises(TypeError, match="belongs to one process"):
            pickle.dumps(outcomes)
    assert pickle.loads(pickle.dumps(Outcomes(tmp_path / "table"))).about == about  # noqa: S301 - our own bytes
    with pytest.raises(InvalidInput, match=r"has the answers of scripted.*not of another"):
        Outcomes(tmp_path / "table", Another())
    with pytest.raises(InvalidInput, match="answers three short prompts otherwise"):
        Outcomes(tmp_path / "table", Scripted(lambda _: "other weights"))
    Outcomes(tmp_path / "table", Scripted()).close()  # the lock is free again


def test_many_ask_at_once_and_each_prompt_is_sent_once(tmp_path: Path):
    chat = Scripted(lambda asked: asked["messages"][-1]["content"].upper(), seconds=0.02)
    with Outcomes(tmp_path / "table", chat) as outcomes, ThreadPoolExecutor(16) as pool:
        wanted = [f"prompt {number % 10}" for number in range(160)]
        found = list(pool.map(lambda one: outcomes.complete([{"role": "user", "content": one}]).text, wanted))
    assert found == [one.upper() for one in wanted]
    assert len(chat.asked) == len(set(chat.asked)) == 10 + 3


def test_who_waits_for_another_s_question_hears_of_its_failure_and_the_next_one_asks_again(tmp_path: Path):
    answers: list[Any] = []
    entered = threading.Event()

    def fails(asked: Asked) -> str:
        if asked["messages"] == HELLO and not answers:
            entered.set()
            time.sleep(0.2)
            answers.append("next time")
            raise ModelUnavailable("the server is down")
        return "fine"

    with Outcomes(tmp_path / "table", Scripted(fails)) as outcomes, ThreadPoolExecutor(2) as pool:
        first = pool.submit(outcomes.complete, HELLO)
        entered.wait(10)
        second = pool.submit(outcomes.complete, HELLO)
        for one in (first, second):
            with contextlib.suppress(ModelUnavailable):
                assert one.result().text == "fine"
        assert outcomes.complete(HELLO).text == "fine"


def test_refusals_and_tool_calls_are_kept_as_well(tmp_path: Path):
    def refuses(asked: Asked) -> str:
        if "long" in str(asked["messages"]):
            raise PromptTooLong("2048 tokens at most")
        return "short"

    long: list[Message] = [{"role": "user", "content": "long " * 1000}]
    chat = Scripted(refuses)
    with Outcomes(tmp_path / "table", chat) as outcomes:
        for _ in range(2):
            with pytest.raises(PromptTooLong, match="2048"):
                outcomes.complete(long)
        assert len(chat.asked) == 3 + 1
        called = outcomes.with_tools([{"name": "find"}]).complete(HELLO)
        assert called.calls == (ToolCall("1", "find", "{}"),)
        assert outcomes.complete(HELLO).text == "short"  # without the tool it is another row
    assert "2048" not in (tmp_path / "table").read_text(), "a server may repeat the prompt in what it says"
    again = Outcomes(tmp_path / "table")
    tried: list[Any] = []
    with pytest.raises(PromptTooLong, match="refused as too long"):
        again.complete(long, tried.append)
    assert [(one.too_long, one.reply) for one in tried] == [(True, None)]
    assert again.with_tools([{"name": "find"}]).complete(HELLO, tried.append) == called
    assert tried[-1].reply == called
    with pytest.raises(ModelUnavailable):
        again.with_tools([{"name": "lose"}]).complete(HELLO)


def test_a_packed_table_is_read_and_not_written(tmp_path: Path):
    with Outcomes(tmp_path / "table", Scripted(lambda _: "hi")) as outcomes:
        outcomes.complete(HELLO)
    packed = tmp_path / "table.gz"
    packed.write_bytes(gzip.compress((tmp_path / "table").read_bytes()))
    assert Outcomes(packed).complete(HELLO).text == "hi"
    model = Scripted(lambda _: "hi")
    with pytest.raises(InvalidInput, match="is packed, so nothing can be added"):
        Outcomes(packed, model)
    assert not model.asked
    assert Outcomes(packed).complete(HELLO).text == "hi"


HEAD = b'{"outcomes": 1, "model": "m", "settings": {"temperature": 0}, "about": {}, "probe": "p"}\n'
DAMAGED = {
    "no JSON": b"hello\n",
    "no whole line": b"my only copy of something",
    "rows of a benchmark": b'{"task": "rca", "method": "CASCADE"}\n',
    "no head": b'{"key": "k", "reply": "r", "tokens": [1, 1]}\n',
    "another format": HEAD.replace(b": 1,", b": 2,"),
    "a head with numbers": HEAD.replace(b'"m"', b"7"),
    "settings in a list": HEAD.replace(b'{"temperature": 0}', b"[]"),
    "a list": HEAD + b"[1, 2]\n",
    "a number": HEAD + b"3\n",
    "nested too deeply": HEAD + b"[" * 100_000 + b"\n",
    "a reply that is no text": HEAD + b'{"key": "k", "reply": 3, "tokens": [1, 1]}\n',
    "tokens that are no numbers": HEAD + b'{"key": "k", "reply": "r", "tokens": ["1", true]}\n',
    "negative tokens": HEAD + b'{"key": "k", "reply": "r", "tokens": [-1, 1]}\n',
    "three tokens": HEAD + b'{"key": "k", "reply": "r", "tokens": [1, 1, 1]}\n',
    "calls that are none": HEAD + b'{"key": "k", "reply": "r", "tokens": [1, 1], "calls": [["a"]]}\n',
    "a verdict that is none": HEAD + b'{"task": "t", "query": "q", "shown": [], "success": 1}\n',
    "shown that is a text": HEAD + b'{"task": "t", "query": "q", "shown": [1], "success": true}\n',
    "an end that is none": HEAD + b"and then",
    "binary": HEAD + bytes(range(256)) + b"\n",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_file_that_is_no_table_is_refused_and_stays_as_it_is(tmp_path: Path, damage: str):
    table = tmp_path / "table"
    table.write_bytes(DAMAGED[damage])
    for chat in (None, Scripted()):
        with pytest.raises(InvalidInput, match="holds something other than a table of outcomes"):
            Outcomes(table, chat)
    assert table.read_bytes() == DAMAGED[damage]
    packed = tmp_path / "table.gz"
    packed.write_bytes(gzip.compress(DAMAGED[damage]))
    with pytest.raises(InvalidInput, match="holds something other"):
        Outcomes(packed)


@pytest.mark.parametrize("cut", [3, 30, -5])
def test_a_packed_file_that_is_damaged_is_refused(tmp_path: Path, cut: int):
    packed = tmp_path / "table.gz"
    packed.write_bytes(gzip.compress(HEAD * 20)[:cut])
    with pytest.raises(InvalidInput, match="holds something other"):
        Outcomes(packed)
    packed.write_bytes(HEAD)
    with pytest.raises(InvalidInput, match="holds something other"):
        Outcomes(packed)


def test_a_packed_file_that_never_ends_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.evaluation.outcomes.table.MOST_BYTES", 10_000)
    packed = tmp_path / "table.gz"
    packed.write_bytes(gzip.compress(HEAD + b" " * 100_000))
    with pytest.raises(InvalidInput, match="a table has at most 10,000 bytes"):
        Outcomes(packed)


@pytest.mark.slow
def test_the_command_makes_a_table_and_another_one_plays_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table, rows = tmp_path / "table", tmp_path / "rows.jsonl"
    what = ["--tasks", "banking77", "--methods", "zero-shot", "CASCADE", "--limit", "10", "--data", str(bundled_data())]
    make = ["bench", "outcomes", "--out", str(table), *what, "--seeds", "2"]
    with serving(Real(say)) as real:
        server = ["--model", "small", "--base-url", real.url]
        assert main([*make, *server, "--about", '{"licence": "Apache-2.0"}']) == 0
        printed = capsys.readouterr()
        assert "small: what was met" in printed.out
        assert f"answers in {table}. To play them" in printed.out
        assert "4 of 4 runs played" in printed.err
        asked = len(real.asked)
        assert main([*make, *server, "--json"]) == 0
        assert len(real.asked) == asked + 3, "only the probes are asked again"
        assert json.loads(capsys.readouterr().out)["answers"] == asked - 3
        assert real.asked[0]["max_tokens"] == 256
        assert "top_p" not in real.asked[0]
    head = json.loads(table.read_text().splitlines()[0])
    assert head["about"] == {"server": real.url, "licence": "Apache-2.0"}
    assert main(["bench", "run", "--outcomes", str(table), *what, "--seeds", "2", "--out", str(rows), "--jobs", "1"]) == 0
    assert "model small" in capsys.readouterr().out
    more = ["bench", "run", "--outcomes", str(table), "--tasks", "banking77", "--methods", "similarity", "--limit", "10"]
    assert main([*more, "--seeds", "1", "--out", str(rows), "--jobs", "1", "--data", str(bundled_data())]) == 1
    assert "has no answer to this prompt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--methods", "CASCADE"], "name the model"),
        (["--methods", "CASCADE", "--model", "m"], "name the model"),
        (["--methods", "CASCADE", "--model", "m", "--base-url", "http://h/v1", "--folder", "f"], "exclude each other"),
        (["--methods", "cascade", "--model", "m"], "there is no method 'cascade'"),
        (["--methods", "CASCADE", "--folder", "nowhere/at/all"], "there is no folder"),
        (["--methods", "CASCADE", "--model", "m", "--tasks", "banking78"], "banking78"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    out = ["--out", str(tmp_path / "table"), "--data", str(bundled_data()), "--tasks", "banking77"]
    assert main(["bench", "outcomes", *out, *options]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "table").exists()


def test_a_table_excludes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    both = ["bench", "run", "--outcomes", "table", "--model", "m", "--base-url", "http://localhost:1/v1"]
    assert main([*both, "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert "choose one of them" in capsys.readouterr().err

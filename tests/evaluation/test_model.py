"""A real client against a real server that fails in every way: the rows are those of a server that does not."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from faulty_server import KEY, SLOW, serving

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.judging.labels import exact, jaccard
from cascade_memory.evaluation.judging.model_judge import ModelJudge
from cascade_memory.evaluation.model import AnyChatModel, Asking, Model, OpenAICompatible, Prices, asking
from cascade_memory.evaluation.tasks.task import FileTask, Item

LABELS = {"card": "order a card", "rate": "exchange rate", "loan": "ask for a loan"}
TASK = FileTask(name="desk", file="desk.jsonl", judge=exact, instruction=r"Name the intent in \boxed{}.")
PASSING = ["rate limit", "error", "overloaded", "slow", "malformed", "empty", "no content", "dropped", "cut off"]
ASIDE = {"ms_per_task", "seconds", "request_log"}  # what may differ between two runs of the same


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    rows = [{"task": f"{word} number {n}?", "label": label} for n in range(4) for word, label in LABELS.items()]
    (tmp_path / "desk.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return tmp_path


def say(prompt: str) -> str:
    """A model that knows loans, and otherwise repeats the solution of the first case that it is shown."""
    query = prompt.splitlines()[-1]
    if query.startswith("loan"):
        return rf"Thus \boxed{{{LABELS['loan']}}}."
    after = prompt.split("Solution:\n")
    return rf"\boxed{{{after[1].splitlines()[0]}}}" if len(after) > 1 else rf"\boxed{{{LABELS['card']}}}"


def rows_of(desk: Path, chat: Any, out: str = "rows.jsonl", **options: Any) -> list[dict[str, Any]]:
    methods = ["zero-shot", "similarity", "ICRL"]
    solver = Model(chat=chat, prices=Prices(prompt=1.0, completion=10.0))
    wanted: dict[str, Any] = {"data": desk, "solver": solver, "out": desk / out, "seeds": 1, "methods": methods, **options}
    return measure(TASK, progress=False, **wanted)


def client(url: str, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(**{"base_url": url, "model": "scripted", "timeout": SLOW / 2, "retries": 3, **options})


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in ASIDE} for row in rows]


def test_a_row_of_a_model(desk: Path):
    with serving(say) as server:
        rows = rows_of(desk, client(server.url, extra={"top_k": 20}, timeout=60))  # a busy machine is slow
    alone, similar, _ = rows
    assert (alone["solver"], alone["n"], alone["rate"]) == ("scripted", 12, 8 / 12)
    sampling = {"temperature": 0.1, "top_p": 0.8, "max_tokens": 2048, "top_k": 20}
    assert {name: alone["declared"][name] for name in sampling} == sampling
    assert all({name: asked[name] for name in sampling} == sampling for asked in server.asked)
    assert (alone["requests"], alone["completion_tokens"]) == (12, 36)
    assert alone["tokens"] == alone["prompt_tokens"] + 36
    assert alone["cost"] == pytest.approx((alone["prompt_tokens"] + 360) / 1e6)
    for row in rows:
        logged = [json.loads(line) for line in Path(row["request_log"]).read_text().splitlines()]
        assert sum(one["prompt_tokens"] for one in logged) == row["prompt_tokens"]
        assert [one["error"] for one in logged] == [None] * 12
    assert similar["shown"].count("1") > 0
    for shown, fitting, covered in zip(similar["shown"], similar["fitting"], similar["covered"], strict=True):
        assert fitting <= shown
        assert fitting <= covered
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_only_labels_say_what_was_covered(desk: Path):
    listed = dataclasses.replace(TASK, judge=jaccard)
    with serving(say) as server:
        solver = Model(chat=client(server.url, timeout=60))
        (row,) = measure(
            listed, data=desk, solver=solver, out=desk / "r.jsonl", seeds=1, methods=["similarity"], progress=False
        )
    assert (row["covered"], row["fitting"]) == ("", "")
    assert "1" in row["success"]


def test_what_is_shown_is_fenced_and_failures_say_so(desk: Path):
    with serving(say) as server:
        rows_of(desk, client(server.url))
    with_cases = [one["messages"] for one in server.asked if "--- memory-" in one["messages"][-1]["content"]]
    assert with_cases
    for system, user in with_cases:
        assert system["content"] == TASK.instruction
        assert "follow no instruction" in user["content"]
        assert user["content"].count("--- memory-") >= 2
    failures = [user["content"] for _, user in with_cases if "Answer that was wrong:" in user["content"]]
    assert failures  # ICRL shows them
    assert not any(content.startswith("Solved cases") for content in failures)
    assert any("(This" not in user["content"] for _, user in with_cases)


def test_a_reply_that_no_memory_takes_is_cleaned_and_the_run_goes_on(desk: Path):
    with serving(lambda prompt: say(prompt).replace("loan", "lo\x00an\x08 \ud800")) as server:
        rows = rows_of(desk, client(server.url))
    assert [row["n"] for row in rows] == [12, 12, 12]


def test_a_reward_out_of_bounds_is_an_error(desk: Path):
    generous = FileTask(name="desk", file="desk.jsonl", judge=seven)
    with serving(say) as server, pytest.raises(InvalidInput, match="rewards a reply with 7"):
        measure(
            generous, data=desk, solver=Model(chat=client(server.url)), out=desk / "rows.jsonl", methods=["similarity"], seeds=1
        )


def seven(reply: str, label: str) -> float:
    return 7.0


def verdict(prompt: str) -> str:
    right, work = re.findall(r"(?:A right answer|Work):\n(.*)", prompt)
    return f"VERDICT {prompt.split('--- data-')[1][:12]}: {0.9 if right in work else 0.2}"


class Judged:
    """A task with a model as its judge."""

    name, instruction, max_steps = "judged", "Name the intent.", 1

    def __init__(self, url: str) -> None:
        chat = OpenAICompatible(base_url=url, model="judge")
        self.judge = ModelJudge(Asking(chat, prices=Prices(prompt=1.0, completion=1.0)))

    def items(self, data: Path) -> list[Item]:
        return TASK.items(data)

    def reward(self, reply: str, item: Item) -> float:
        return self.judge(item.query, reply, right=item.label)


@pytest.mark.slow
def test_a_judge_that_asks_a_model_is_logged_and_counted_too(desk: Path):
    with serving(say) as server, serving(verdict, lambda n: "unknown" if n > 7 else None) as judging:
        wanted: dict[str, Any] = {"data": desk, "out": desk / "rows.jsonl", "methods": ["zero-shot"], "seeds": 1}
        solver = Model(chat=client(server.url))
        with pytest.raises(ModelUnavailable):
            measure(Judged(judging.url), solver=solver, progress=False, **wanted)
        judging.fault = lambda n: None
        asked = len(judging.asked)
        (row,) = measure(Judged(judging.url), solver=solver, progress=False, **wanted)
        assert len(judging.asked) - asked == 12 - 7  # what was judged before the server failed is not judged, or paid, again
    assert row["rate"] == 8 / 12  # a verdict of 0.9 passes
    assert (row["requests"], row["judge_requests"]) == (12, 12)
    assert row["judge_cost"] == pytest.approx(row["judge_tokens"] / 1e6)
    assert len(Path(row["judge_request_log"]).read_text().splitlines()) == 13  # with the one that failed


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    rows = [{"task": f"{word} number {n}?", "label": label} for n in range(4) for word, label in LABELS.items()]
    (folder / "desk.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    with serving(say) as server:
        return timeless(rows_of(folder, client(server.url)))


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_changes_no_row(fault: str, desk: Path, undisturbed: list[dict[str, Any]]):
    with serving(say, lambda n: fault if n % 9 in (2, 3) else None) as server:
        rows = rows_of(desk, client(server.url))
    assert timeless(rows) == undisturbed
    logged = [json.loads(line) for row in rows for line in Path(row["request_log"]).read_text().splitlines()]
    failed = [one for one in logged if one["error"]]
    assert len(server.asked) == len(logged) == 36 + len(failed)
    assert len(failed) >= 6
    assert {one["try"] for one in failed} >= {1, 2}  # where requests overlap, a third one may be hit as well


@pytest.mark.slow
def test_langchain_openai_against_the_same_server(desk: Path, undisturbed: list[dict[str, Any]]):
    openai = pytest.importorskip("langchain_openai")
    with serving(say, lambda n: "rate limit" if n == 2 else "dropped" if n == 5 else None) as server:
        chat = openai.ChatOpenAI(base_url=server.url, model="scripted", temperature=0.1, timeout=5, max_retries=3)
        rows = rows_of(desk, AnyChatModel(chat))
        for name in ("solver", "success", "shown", "fitting", "prompt_tokens", "completion_tokens", "cost"):
            assert [row[name] for row in rows] == [row[name] for row in undisturbed]
        assert rows[0]["declared"]["temperature"] == 0.1
        server.fault = lambda n: "unknown"
        with pytest.raises(ModelUnavailable, match="no such model"):
            AnyChatModel(chat).complete([{"role": "user", "content": "hello"}])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("unknown", "check the base URL"),
        ("refused", "top_k is not known; the server refuses the request"),
        ("quota", "no quota left: pay first"),
        ("redirect http://elsewhere.example/v1", "redirects to http://elsewhere.example/v1"),
    ],
)
def test_what_does_not_pass_is_not_asked_again(fault: str, said: str):
    with serving(say, lambda n: fault) as server, pytest.raises(ModelUnavailable, match=said):
        client(server.url).complete([{"role": "user", "content": "hello"}])
    assert len(server.asked) == 1


def test_a_key_is_told_to_nobody(desk: Path, monkeypatch: pytest.MonkeyPatch):
    secret = "sk-secret-of-mine"
    with serving(say) as other, serving(say, lambda n: f"redirect {other.url}/chat/completions") as server:
        with pytest.raises(ModelUnavailable, match="redirects to"):
            client(server.url).complete([{"role": "user", "content": "hello"}])
        server.fault = lambda n: None
        monkeypatch.setenv("HTTP_PROXY", other.url)
        monkeypatch.setenv("ALL_PROXY", other.url)
        client(server.url).complete([{"role": "user", "content": "hello"}])
        assert other.asked == []
        model = client(server.url, api_key=secret)
        with pytest.raises(ModelUnavailable, match=r"HTTP 401: not Bearer \(the key\); set OPENAI_API_KEY") as caught:
            rows_of(desk, model)
    assert secret not in repr(model) + repr(caught.value)
    texts = [path.read_text() for path in desk.rglob("*.jsonl")]
    assert any("HTTP 401" in text for text in texts)
    assert not any(secret in text for text in texts)
    with pytest.raises(InvalidInput, match="characters that no key has") as caught:
        client(server.url, api_key="sk-a\nb").complete([])
    assert "sk-a" not in str(caught.value)


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with serving(say) as server:
        assert client(server.url).complete([{"role": "user", "content": "loan?"}]).text.startswith("Thus")
    assert server.keys == [None]


@pytest.mark.parametrize(("fault", "patience"), [("long wait", 60.0), ("trickle", 0.8), ("slow", 0.8)])
def test_waiting_has_an_end(fault: str, patience: float):
    began = time.monotonic()
    with serving(say, lambda n: fault) as server, pytest.raises(ModelUnavailable):
        client(server.url, patience=patience).complete([{"role": "user", "content": "hello"}])
    assert time.monotonic() - began < 3.0


@pytest.mark.slow
def test_a_server_that_goes_down_stops_the_run_which_then_goes_on(desk: Path, undisturbed: list[dict[str, Any]]):
    with serving(say) as server:
        server.fault = lambda n: "dropped" if n > 20 else None
        with pytest.raises(ModelUnavailable, match=r"is it running\? \(4 tries\)\. finished rows are in .*run it again"):
            rows_of(desk, client(server.url))
        kept = (desk / "rows.jsonl").read_text().splitlines()
        assert [json.loads(line)["method"] for line in kept] == ["zero-shot"]
        (half,) = (path for path in (desk / "rows.work").rglob("*.jsonl") if "similarity" in path.name)
        with half.open("a") as file:
            file.write('{"key": "cut o')  # killed while it wrote
        server.fault = lambda n: None
        before = len(server.asked)
        rows = rows_of(desk, client(server.url))
    assert timeless(rows) == undisturbed
    assert len(server.asked) - before == 36 - 20  # nothing is asked, or paid, twice


def test_rows_made_otherwise_are_no_answer(desk: Path):
    with serving(say) as server:
        rows_of(desk, client(server.url), methods=["zero-shot"])
        with pytest.raises(InvalidInput, match=r"rows\.jsonl has rows of these runs .* name another file"):
            rows_of(desk, client(server.url, temperature=0.7), methods=["zero-shot"])
        with (desk / "desk.jsonl").open("a") as file:
            file.write('\n{"task": "more?", "label": "more"}')
        with pytest.raises(InvalidInput, match="name another file"):
            rows_of(desk, client(server.url), methods=["zero-shot"])


def test_a_model_cannot_pass_for_a_solver_without_one():
    with pytest.raises(InvalidInput, match="the name 'simulated' is that of a solver without a model"):
        Model(chat=OpenAICompatible(base_url="http://localhost/v1", model="simulated"))


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http://", "https://user:pw@host/v1", "http://h/v1?x=1"])
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(InvalidInput, match="a base URL looks like"):
        OpenAICompatible(base_url=url, model="m")


@pytest.mark.long
def test_the_command(desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(desk)
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    (desk / "desk.jsonl").rename(desk / "banking77.jsonl")
    with serving(say, lambda n: "unknown" if n > 12 else None) as server:
        where = ["--model", "scripted", "--base-url", server.url, "--out", "rows.jsonl"]
        more = ["--sampling", '{"top_k": 20, "presence_penalty": null}', "--prices", "0.5", "2", "--seeds", "1"]
        chosen = ["--task", "banking77", "--methods", "zero-shot", "similarity", "--data", str(desk), "--limit", "9"]
        assert main(["bench", "run", *chosen, *where, *more, "--jobs", "2"]) == 1
        assert "check the base URL" in capsys.readouterr().err
        server.fault = lambda n: None
        before = len(server.asked)
        assert main(["bench", "run", *chosen, *where, *more, "--jobs", "1"]) == 0
        assert len(server.asked) - before == 18 - 12
        out = capsys.readouterr().out
        assert "model scripted" in out
        assert "SIMULATED" not in out
        assert "18 requests" in out
        assert "cost" in out
        assert {asked["model"] for asked in server.asked} == {"scripted"}
        assert all(asked["top_k"] == 20 and "presence_penalty" not in asked for asked in server.asked)
    for wrong, said in [
        (["--model", "m"], "--model needs --base-url"),
        (["--base-url", "http://h"], "--base-url can only be used with --model"),
        (["--alone", "0.5"], "--alone can only be used with --stream"),
        (["--model", "m", "--base-url", "http://h", "--task", "chess", "--data", "."], "no task 'chess'"),
        (["--model", "m", "--base-url", "http://h", "--task", "rca", "--data", "."], "no data for rca"),
    ]:
        assert main(["bench", "run", *wrong]) == 2
        assert said in capsys.readouterr().err

"""Who calls: every client has a token of its own, and its name is recorded with what it does."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import TASK, call, served, stdio

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.clients import ASKING, Clients, tokens_in
from cascade_memory.mcp_server.guard import Guard
from cascade_memory.mcp_server.serve import Listening
from cascade_memory.mcp_server.verbs import Verbs

ANN, BOB, OLD = "anns-token-of-some-length", "bobs-token-of-some-length", "anns-older-token-of-hers"
TOKENS = {ANN: "ann", BOB: "bob", OLD: "ann"}


def bearer(token: str) -> bytes:
    return f"Bearer {token}".encode()


def test_a_file_names_the_client_of_each_token():
    text = f"# agents\n\nann {ANN}\n  bob\t{BOB}  \nann {OLD}\n"
    assert tokens_in(text, "tokens") == TOKENS
    assert tokens_in(f"{ANN}\n", "tokens") == {ANN: None}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"ann of the lab {ANN}", "line 1 of tokens has 5 words"),
        (f"ann {ANN}\nbob {ANN}", "line 2 of tokens has a token that an earlier line has"),
        ("\n# nothing\n", "there is no token in tokens"),
        ("", "there is no token in tokens"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(text, why):
    with pytest.raises(InvalidInput, match=why) as refused:
        tokens_in(text, "tokens")
    assert ANN not in str(refused.value)


@pytest.mark.parametrize("tokens", ["short", {"short": "ann"}, {ANN: "a" * 201}, {ANN: "\x07"}, {ANN: ""}])
def test_tokens_that_can_be_guessed_and_names_that_cannot_be_recorded_are_refused(tokens):
    with pytest.raises(InvalidInput):
        Listening(token=tokens)


def test_each_token_is_its_clients_and_nobody_elses():
    clients = Clients(TOKENS)
    assert [clients.name_of(bearer(token)) for token in (ANN, BOB, OLD, "nobody's")] == ["ann", "bob", "ann", None]
    for header in (
        b"",
        b"Bearer",
        b"Bearer ",
        bearer(ANN)[:-1],
        bearer(ANN) + b"x",
        f"Basic {ANN}".encode(),
        bearer(f"{ANN} {BOB}"),
    ):
        assert not clients.knows(header)
    assert Clients(None).knows(b"")
    assert not Clients({}).knows(b"")


def asked(guard: Guard, **headers: str) -> int:
    """Send one request through a guard; return the status of its answer."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: Any = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "client": ("127.0.0.1", 1)}
    asyncio.run(guard(scope, receive, send))
    return int(sent[0]["status"])


def guarded(tokens: Any, **options: Any) -> tuple[Guard, list[str | None]]:
    """A guard, and the names of the clients whose requests it let through."""
    names: list[str | None] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        names.append(ASKING.get())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    return Guard(app, **{"token": tokens, "per_minute": 0, "alive": lambda: None, **options}), names


def test_the_guard_says_who_calls_and_forgets_it_afterwards():
    guard, names = guarded(TOKENS)
    for token in (ANN, "nobody's", BOB):
        asked(guard, authorization=f"Bearer {token}", x_client="mallory")
    assert names == ["ann", "bob"]
    assert ASKING.get() is None
    alone, nameless = guarded(ANN)
    asked(alone, authorization=f"Bearer {ANN}")
    assert nameless == [None]


def test_clients_behind_one_proxy_have_a_rate_each():
    guard, _ = guarded(TOKENS, per_minute=1)
    statuses = [asked(guard, authorization=f"Bearer {token}") for token in (ANN, ANN, BOB, OLD)]
    assert statuses == [200, 429, 200, 429]


@pytest.mark.slow
def test_what_a_client_does_has_its_name(folder):
    with CascadeMemory(folder, learn="inline") as memory:
        mine = Verbs(memory, trusted=True, actor="ann")
        episode_id = mine.recall_cases(TASK)["episode_id"]
        case_id = mine.report_outcome(episode_id, 1, "fridge, then table")["case_id"]
        added = mine.add_case("heat an egg", "microwave")["case_id"]
        proposed = Verbs(memory, actor="bob").add_case("boil an egg", "pan")["episode_id"]
        found = memory.episodes.get(episode_id)
        assert (found.actor, found.channel) == ("ann", "mcp")
        assert [(memory.cases.get(one).actor, memory.cases.get(one).channel) for one in (case_id, added)] == [
            ("ann", "mcp")
        ] * 2
        assert (memory.episodes.get(proposed).actor, memory.episodes.get(proposed).channel) == ("bob", "mcp")
        code = mine.forget_cases([case_id])["code"]
        mine.forget_cases([case_id], code)
        forgotten = next(entry for entry in memory.review.audit() if entry.action == "forget")
        assert forgotten.actor == "ann"


@pytest.mark.parametrize("trusted", [False, True])
def test_nobody_reports_on_what_another_client_has_opened(trusted: bool):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        ann, bob, nameless = (Verbs(memory, trusted=trusted, actor=name) for name in ("ann", "bob", None))
        for owner, others in ((ann, (bob, nameless)), (nameless, (ann, bob))):
            episode_id = owner.recall_cases(TASK)["episode_id"]
            for other in others:
                with pytest.raises(InvalidInput) as unknown:
                    other.report_outcome("nowhere", 0.0)
                for ask in (
                    lambda of=other, one=episode_id: of.report_outcome(one, 0.0),
                    lambda of=other, one=episode_id: of.check_action(one, "t"),
                ):
                    with pytest.raises(InvalidInput) as refused:
                        ask()
                    assert str(refused.value).replace(episode_id, "nowhere") == str(unknown.value)
            assert memory.episodes.get(episode_id).status == "open"
            told = owner.report_outcome(episode_id, 1.0, "fridge")
            assert told["status"] == ("learned" if trusted else "waits for confirmation")
            assert memory.episodes.get(episode_id).reward == 1.0


def test_a_client_reports_on_what_the_host_has_opened_for_it_or_for_nobody_named():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        ann = Verbs(memory, actor="ann")
        for name in (None, "ann"):
            told = ann.report_outcome(memory.acting(actor=name).recall(TASK).episode_id, 1.0, "fridge")
            assert told["status"] == "waits for confirmation"
        with pytest.raises(InvalidInput, match="there is no episode"):
            ann.report_outcome(memory.acting(actor="bob").recall(TASK).episode_id, 1.0)


def test_whom_the_server_trusts_confirms_what_another_client_has_reported():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        episode_id = Verbs(memory, actor="bob").add_case("boil an egg", "pan")["episode_id"]
        seen, ann = memory.episodes.get(episode_id).fingerprint, Verbs(memory, trusted=True, actor="ann")
        with pytest.raises(InvalidInput, match="there is no episode"):
            ann.report_outcome(episode_id, 1.0, "oven")
        assert ann.report_outcome(episode_id, 1.0, confirms=seen)["status"] == "learned"


@pytest.mark.long
async def test_on_http_every_request_has_the_name_of_its_token(folder, tmp_path: Path):
    """Also when two clients ask at the same moment, each several times."""
    file = tmp_path / "tokens"
    file.write_text("".join(f"{name} {token}\n" for token, name in TOKENS.items()))
    with served(folder, "--token-file", str(file)) as (base, _):

        def recall(token: str, task: str) -> str:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            body["params"] = {"name": "recall_cases", "arguments": {"query": task}}  # type: ignore[assignment]
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            headers["Authorization"] = f"Bearer {token}"
            request = urllib.request.Request(f"{base}/mcp", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())["result"]["structuredContent"]["episode_id"]

        tasks = [(token, f"task {number}") for number in range(4) for token in (ANN, BOB, OLD)]
        episodes = await asyncio.gather(*(asyncio.to_thread(recall, token, task) for token, task in tasks))
        with pytest.raises(urllib.error.HTTPError) as refused:
            recall("a-token-of-nobody-at-all", "task")
        assert refused.value.code == 401
    with CascadeMemory(folder) as memory:
        names = [memory.episodes.get(episode).actor for episode in episodes]
    assert names == [TOKENS[token] for token, _ in tasks]


@pytest.mark.long
async def test_on_standard_input_a_name_is_given_when_it_starts(folder):
    async with stdio(folder, "--actor", "desk") as session:
        episode_id = (await call(session, "recall_cases", query=TASK))["episode_id"]
    with CascadeMemory(folder) as memory:
        assert memory.episodes.get(episode_id).actor == "desk"


def test_a_name_or_a_token_that_cannot_be_is_refused_at_the_start(folder, tmp_path: Path, capsys):
    (tmp_path / "tokens").write_text(f"ann {ANN}\nbob {ANN}\n")
    serve = ["serve", "mcp", "--path", str(folder)]
    assert main([*serve, "--actor", "x" * 201]) == 2
    assert main([*serve, "--transport", "http", "--token-file", str(tmp_path / "tokens")]) == 2
    assert "each client needs its own" in capsys.readouterr().err


# -- tickets over MCP ----------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_a_report_brings_the_ticket_of_its_recall(folder):
    async with stdio(folder, "--tickets") as session:
        mine, other = [await call(session, "recall_cases", query=TASK) for _ in range(2)]
        report = {"episode_id": mine["episode_id"], "reward": 1, "solution": "fridge, then table"}
        for wrong in ({}, {"ticket": ""}, {"ticket": other["ticket"]}, {"ticket": mine["ticket"][:-1]}):
            with pytest.raises(RuntimeError):
                await call(session, "report_outcome", **report, **wrong)
        told = await call(session, "report_outcome", **report, ticket=mine["ticket"])
        assert told["status"] == "waits for confirmation"
        again = await call(session, "report_outcome", **report, ticket=mine["ticket"])
        assert again["status"] == "was reported before; nothing was changed"
        with pytest.raises(RuntimeError, match="redeemed before"):
            await call(session, "report_outcome", **{**report, "reward": 0}, ticket=mine["ticket"])
        prompt = await session.get_prompt("solve_with_cases", {"task": TASK})
        assert 'ticket "' in prompt.messages[0].content.text


@pytest.mark.long
async def test_whom_the_server_trusts_needs_one_as_well(folder):
    async with stdio(folder, "--tickets", "--trust-agent-rewards") as session:
        found = await call(session, "recall_cases", query=TASK)
        report = {"episode_id": found["episode_id"], "reward": 1, "solution": "fridge, then table"}
        with pytest.raises(RuntimeError, match="needs the ticket"):
            await call(session, "report_outcome", **report, ticket="")
        told = await call(session, "report_outcome", **report, ticket=found["ticket"])
        assert told["status"] == "learned"
        described = {one.name: one for one in (await session.list_tools()).tools}
        assert "ticket" in str(described["report_outcome"])


@pytest.mark.long
async def test_without_tickets_no_tool_speaks_of_them(folder):
    async with stdio(folder) as session:
        assert "ticket" not in await call(session, "recall_cases", query=TASK)
        report = next(one for one in (await session.list_tools()).tools if one.name == "report_outcome")
        assert "ticket" not in str(report)


# -- forgetting in two steps ---------------------------------------------------------------------------------------------


@pytest.fixture
def memory(folder: Path):
    with CascadeMemory(folder, k=3, ranking=Ranking(abstain=False), learn="inline") as memory:
        yield memory


@pytest.mark.slow
def test_the_first_step_deletes_nothing_and_says_what_would_go(memory):
    verbs = Verbs(memory)
    (case,) = verbs.recall_cases(TASK)["cases"]
    preview = verbs.forget_cases([case["id"]])
    assert preview["status"] == "preview"
    assert preview["would_forget"]["cases"] == 1
    assert preview["cases"] == [{"id": case["id"], "task": "heat some cup and put it in cabinet"}]
    assert memory.stats().cases == 1
    assert verbs.forget_cases([case["id"]], preview["code"])["forgotten"]["cases"] == 1
    assert memory.stats().cases == 0

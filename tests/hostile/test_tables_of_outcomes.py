"""Tables of outcomes under attack: stopped while answers are under way, forged, packed without an end, changed by others."""

from __future__ import annotations

import copy
import gzip
import json
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.plan import Suite
from cascade_memory.evaluation.model import Model
from cascade_memory.evaluation.model.chat import Message, Reply, ToolCall
from cascade_memory.evaluation.outcomes import Outcomes, ask_all

TABLES = Path(__file__).parents[2] / "examples" / "benchmarks" / "outcomes"
PUBLISHED = Path(__file__).parents[1] / "fixtures" / "dtlbench"


def ask(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


class Parrot:
    """Repeats what it is told; what begins with "wait", once it may."""

    name = "parrot"
    settings: ClassVar[dict[str, Any]] = {"temperature": 0}

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.may = threading.Event()

    def complete(self, messages: list[Message], note: object) -> Reply:
        told = str(messages[-1]["content"])
        if told.startswith("wait"):
            self.asked.release()
            assert self.may.wait(10)
        return Reply(told, 1, 1)

    def with_tools(self, tools: Any) -> Parrot:
        return self


class Searcher(Parrot):
    """Searches once, and repeats a part of what it finds."""

    def complete(self, messages: list[Message], note: object) -> Reply:
        found = [one["content"] for one in messages if one["role"] == "tool"]
        if found:
            return Reply(str(found[0])[:60], 1, 1)
        return Reply("", 1, 1, (ToolCall("call", "search", json.dumps({"query": str(messages[-1]["content"])[-60:]})),))


def test_an_answer_that_comes_after_the_end_is_not_written_over_another_s(tmp_path: Path):
    path, late = tmp_path / "table", Parrot()
    first = Outcomes(path, late)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first.complete, ask("wait for it"))
        assert late.asked.acquire(timeout=10)
        first.close()
        with Outcomes(path, Parrot()) as second:
            for number in range(20):
                second.complete(ask(f"number {number}"))
        whole = path.read_bytes()
        late.may.set()
        with pytest.raises(ModelUnavailable, match="closed"):
            waiting.result(10)
    assert path.read_bytes() == whole
    assert len(Outcomes(path)) == 20


@pytest.mark.slow
def test_a_table_of_deep_search_is_filled_and_played(tmp_path: Path):
    suite = Suite(tasks=("2wiki",), methods=("zero-shot", "similarity"), seeds=2, limit=5)
    with Outcomes(tmp_path / "table", Searcher()) as outcomes:
        ask_all(suite, data=PUBLISHED, solver=Model(chat=outcomes), together=2)
        assert {row[0] for row in outcomes.worth()} == {"2wiki"}
        assert outcomes.complete(ask("still open")).calls
    rows = [
        measure(
            "2wiki", data=PUBLISHED, solver=Model(chat=chat), out=tmp_path / name / "rows.jsonl",
            methods=("zero-shot", "similarity"), seeds=2, limit=5, progress=False,
        )
        for name, chat in (("live", Searcher()), ("again", Outcomes(tmp_path / "table")))
    ]  # fmt: skip
    live, again = ([(row["success"], row["searches"], row["tokens"]) for row in some] for some in rows)
    assert live == again


def test_a_view_with_tools_keeps_them_in_another_process(tmp_path: Path):
    tools = [{"type": "function", "function": {"name": "search"}}]
    with Outcomes(tmp_path / "table", Parrot()) as outcomes:
        outcomes.with_tools(tools).complete(ask("hello"))
    view = copy.copy(Outcomes(tmp_path / "table").with_tools(tools))  # as for another process: by __reduce__
    assert view.complete(ask("hello")).text == "hello"


@pytest.mark.parametrize("ends", [b"\n", b"{", b" "])
def test_a_packed_table_without_an_end_takes_no_memory(tmp_path: Path, ends: bytes):
    with Outcomes(tmp_path / "table", Parrot()):
        pass
    (tmp_path / "bomb.gz").write_bytes(gzip.compress((tmp_path / "table").read_bytes() + ends * 200_000_000, 1))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="something other than a table of outcomes: line 2"):
        Outcomes(tmp_path / "bomb.gz")
    assert tracemalloc.get_traced_memory()[1] < 4 * 32 * 1024**2
    tracemalloc.stop()


def test_two_tables_in_one_file_are_refused(tmp_path: Path):
    for name in "ab":
        with Outcomes(tmp_path / name, Parrot()) as outcomes:
            outcomes.complete(ask(name))
    both = tmp_path / "both"
    both.write_bytes((tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes())
    with pytest.raises(InvalidInput, match=r"line 3.*no other one, is the head"):
        Outcomes(both)
    twice = (tmp_path / "a").read_bytes()
    both.write_bytes(twice + twice.splitlines(keepends=True)[-1])
    with pytest.raises(InvalidInput, match=r"line 3.*an earlier answer to the same prompt"):
        Outcomes(both)


def test_the_tables_of_this_project_can_be_opened_and_name_the_model_s_licence():
    found = {path.name: Outcomes(path) for path in TABLES.glob("*.gz")}
    assert {name.split("-")[-1] for name in found} == {
        f"{task}.outcomes.gz" for task in ("banking77", "lfd", "rca", "sentifin")
    }
    for name, outcomes in found.items():
        assert name.startswith(outcomes.name)
        assert outcomes.about["licence"] == "Apache-2.0"
        assert {show for _, show, *_ in outcomes.worth()} == ({"text", "turns"} if "rca" in name else {"turns"})


def test_verdicts_tell_turns_from_text(tmp_path: Path):
    said = [
        {"task": "rca", "query": "a", "shown": ["c"], "success": False},
        {"task": "rca", "query": "a", "shown": ["c"], "success": True, "show": "turns"},
    ]
    with Outcomes(tmp_path / "table", Parrot()):
        pass
    with open(tmp_path / "table", "a") as file:
        file.writelines(json.dumps(one) + "\n" for one in said)
    assert Outcomes(tmp_path / "table").worth() == [("rca", "text", 1, 1, 1, 0.0), ("rca", "turns", 1, 1, 1, 1.0)]


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_table_that_somebody_else_changes_gets_no_gap(tmp_path: Path, how: str):
    path = tmp_path / "table"
    with Outcomes(path, Parrot()) as outcomes:
        outcomes.complete(ask("hello"))
        if how == "deleted":
            path.unlink()
        else:
            path.write_bytes(b"")
        with pytest.raises(OSError, match="No such file" if how == "deleted" else "somebody else has changed it"):
            outcomes.complete(ask("again"))
    assert not path.exists() or path.read_bytes() == b""


def test_a_link_is_refused_before_the_model_is_asked(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    class Silent(Parrot):
        def complete(self, messages: list[Message], note: object) -> Reply:
            raise AssertionError("asked")

    with pytest.raises(InvalidInput, match=r"is a link.*name another file"):
        Outcomes(tmp_path / "link", Silent())


def test_answers_without_a_table_are_refused(tmp_path: Path):
    suite = Suite(tasks=("2wiki",), methods=("zero-shot",), seeds=1, limit=1)
    with pytest.raises(InvalidInput, match="the answers need a table"):
        ask_all(suite, data=PUBLISHED, solver=Model(chat=Parrot()))

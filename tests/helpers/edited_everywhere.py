"""A memory with rows in every table, odd values for each of their columns, and everything that reads them."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from failed_once import WARNING, check_once, fail_once
from hostile_files import opened
from in_traces import TRACE, span
from inside import engine_of
from inspecting import Browser

from cascade_memory import Trust
from cascade_memory.capabilities.scores import Score
from cascade_memory.ledger import running
from cascade_memory.memory.memory import Memory

ODD: tuple[Any, ...] = (
    None, 0, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, -0.5, 1e300, 9e999, -9e999, "", "x", "\x00", "\N{GRINNING FACE}", "{",
    "[]", "{}", "null", "NaN", "1e999", "9" * 5_000, "[" * 50_000, '["x"]', '{"key": 1e999, "seq": null}', '[1e999, "x", []]',
    '["hashing", 1e999]',
    '{"x": [1]}', '{"x": -1e999, "kept": "x"}', '{"episode": [], "metadata": "{", "kind": 7}',
    b"", b"\x00", b"\xff\x80\xc3", b"\x00" * 8,
    b"\xff" * 7, b"\x00\x00\xc0\x7f" * 4, '{"steps": [{"action": 5}]}', "trajectory", "a" * 70_000,
)  # fmt: skip
OTHER = "5" * 32  # a trace
NOT_UTF8 = object()  # a text that is not UTF-8


def everything(path: Path, patch: Any) -> None:
    """Make a folder with rows in every table, and close it."""
    memory = opened(path, trust=Trust(tickets=True))
    ledger = engine_of(memory).parts.ledger
    memory.acting(actor="old").add([("old task", "old fix", {"user": "u0"}), ("older task", "older fix", {"user": "u1"})])
    moment = running.clock() + 500.0
    patch.setattr(running, "clock", lambda: moment)
    assert ledger.expiry.expire(1, 100.0).expired == 2
    memory.acting(actor="bob").add([(f"known {i}", f"fix {i}", {"user": f"u{i}", "n": i, "good": True}) for i in range(3)])
    for i in range(6):
        recall = memory.acting(actor="ann").recall(f"task {i} of kind {i % 2}", thread_id="t1", metadata={"user": "u1"})
        memory.reward(
            recall.episode_id, float(i % 3 != 0), solution=f"solution {i % 2}", metadata={"user": "u1"}, ticket=recall.ticket
        )
    fail_once(memory.acting(actor="ann"))
    check_once(memory)
    agent = memory.acting(actor="eve").recall("what an agent did")
    memory.reward(agent.episode_id, 1.0, solution="as it says", source="agent", ticket=agent.ticket)
    memory.episodes.finish(memory.recall("noted").episode_id, solution="what was done")
    first, second = list(memory.cases.all())[:2]
    memory.acting(actor="ann").cases.pin(first.id)
    memory.acting(actor="ann").cases.hide(second.id)
    memory.acting(actor="ann").sources.quarantine("eve", note="she lies")
    with span():
        rejected = memory.acting(actor="bob").recall("to reject")
    memory.episodes.finish(rejected.episode_id, solution="a draft")
    pending = memory.episodes.get(rejected.episode_id)
    assert pending is not None
    memory.acting(actor="ann").review.reject(rejected.episode_id, seen=pending.fingerprint)
    with span(OTHER):
        memory.recall("to score")
    one = Score(platform="mine", id="1", name="right", value=0.5, judge="human", by="ann", at=1.7e9, trace_id=OTHER)
    memory.scores.collect([one, replace(one, id="2", correction="what is right")])
    memory.data.refit()
    memory.close()


def tables(file: Path) -> dict[str, list[str]]:
    """Return the columns of each table."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


def edit(file: Path, table: str, column: str, value: Any, row: int | None) -> bool:
    """Set a column of the ``row``-th row, or of all, as an editor can: without constraints. Say whether that was possible."""
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.execute("PRAGMA writable_schema = ON")
        before = connection.execute("SELECT sql FROM sqlite_master WHERE name = ? AND type = 'table'", (table,)).fetchone()
        loose = before[0].replace("NOT NULL", "")
        if "WITHOUT ROWID" not in loose:
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ? AND type = 'table'", (loose, table))
            connection.execute("PRAGMA writable_schema = RESET")
        connection.execute("PRAGMA foreign_keys = OFF")
        put = "CAST(x'6cff80' AS TEXT)" if value is NOT_UTF8 else "?"
        among = _chosen(connection, table, row)
        done = connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = {put} {among}", () if value is NOT_UTF8 else (value,)
        ).rowcount
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ? AND type = 'table'", (*before, table))
        return done > 0
    except (sqlite3.Error, OverflowError):
        return False
    finally:
        connection.close()


def _chosen(connection: sqlite3.Connection, table: str, row: int | None) -> str:
    if row is None:
        return ""
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    if table == "meta":
        keys = [key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key")]
        return f"WHERE key = '{keys[row % len(keys)]}'"
    if "WITHOUT ROWID" in connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]:
        return ""
    return f"WHERE rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {row % max(count, 1)})"


# -- reading -------------------------------------------------------------------------------------------------------------


def shown(found: Any) -> None:
    """Look at an answer as people and programs do."""
    for one in found if isinstance(found, (list, tuple)) else [found]:
        repr(one)
        if hasattr(one, "as_dict"):
            json.dumps(one.as_dict())
        if hasattr(one, "_repr_html_"):
            one._repr_html_()


class Ids:
    """The ids of some cases and episodes, as they were before anybody edited them."""

    def __init__(self, file: Path) -> None:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            self.cases = [one for (one,) in connection.execute("SELECT id FROM cases LIMIT 2")]
            self.episodes = [one for (one,) in connection.execute("SELECT id FROM episode ORDER BY key DESC LIMIT 4")]


def verbs(memory: Memory, ids: Ids, place: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every verb that only reads, by name."""
    yield from _lists(memory)
    yield from _single(memory, ids)
    yield from _wholes(memory, place)


def _lists(memory: Memory) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "cases", lambda: list(memory.cases.all())
    yield "cases(where)", lambda: list(memory.cases.all(where={"user": "u1"}))
    yield "episodes", lambda: list(memory.episodes.all())
    yield "episodes(settled)", lambda: list(memory.episodes.all(status="settled"))
    yield "find_secrets", memory.data.find_secrets
    yield "sources", memory.sources.all
    yield "diff", lambda: memory.sources.diff("7d")
    yield "diff(actor)", lambda: memory.sources.diff("7d", by_actor="ann").by_source()
    yield "standings", memory.sources.standings
    yield "scores", lambda: memory.scores.known("mine")
    yield "newest_score", lambda: memory.scores.newest("mine")
    yield "traces", lambda: memory.traces.episodes(TRACE)
    yield "models", memory.models.all
    yield "warnings", memory.warnings.all
    yield "warnings(near)", lambda: memory.warnings.all(near="asks for a column")
    yield "get_warning", lambda: memory.warnings.get(WARNING)
    yield "latest", lambda: memory.episodes.latest("t1")
    yield "pending", memory.episodes.pending
    yield "reported", memory.review.reported
    yield "expired", memory.cases.expired
    yield "expired(evicted)", lambda: memory.cases.expired(why="evicted")
    yield "to_judge", lambda: list(memory.review.to_judge())
    yield "audit", lambda: list(memory.review.audit())
    for sort in ("newest", "oldest", "shown", "successes", "use"):
        yield f"page_of_cases({sort})", lambda sort=sort: memory.cases.page(sort=sort, limit=5)
    yield "page_of_cases(search)", lambda: memory.cases.page(search="fix")
    yield "page_of_cases(where)", lambda: memory.cases.page(where={"n": {"$gte": 1}})
    yield "page_of_cases(pinned)", lambda: memory.cases.page(state="pinned")
    yield "order_of_cases", lambda: memory.cases.order("use")
    yield "page_of_episodes", memory.episodes.page
    yield "page_of_audit", memory.review.page
    yield "judged", memory.episodes.judged


def _single(memory: Memory, ids: Ids) -> Iterator[tuple[str, Callable[[], Any]]]:
    for one in ids.cases:
        yield "get", lambda one=one: memory.cases.get(one)
        yield "shown_in", lambda one=one: memory.cases.shown_in(one)
        yield "outcomes(case)", lambda one=one: memory.episodes.outcomes(case_id=one)
        yield "neighbours", lambda one=one: memory.cases.neighbours(one)
    for one in ids.episodes:
        yield "get_episode", lambda one=one: memory.episodes.get(one)
        yield "decisions", lambda one=one: memory.episodes.decisions(one)
        yield "outcomes", lambda one=one: memory.episodes.outcomes(episode_id=one)
        yield "knows", lambda one=one: memory.episodes.knows(one)
        yield "scores_of", lambda one=one: memory.scores.of(one)
        yield "traces_of", lambda one=one: memory.traces.of(one)


def _wholes(memory: Memory, place: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "stats", memory.stats
    yield "stats(everywhere)", lambda: memory.stats(everywhere=True)
    yield "namespaces", memory.data.namespaces
    yield "health", memory.health
    yield "rewards", memory.episodes.rewards
    yield "report", memory.report
    yield "report(everywhere)", lambda: memory.report(everywhere=True)
    yield "export", lambda: memory.data.export(io.StringIO(), progress=False)
    yield "backup", lambda: memory.data.backup(place / "backup")
    yield "search", lambda: memory.cases.search("task 1 of kind 1").error and None
    yield "recall", lambda: memory.recall("task 1 of kind 1").render()
    yield "repr", lambda: (repr(memory), memory._repr_html_())
    yield "examine", memory.data.examine


PAGES = (
    "cases", "cases?sort=shown", "cases?sort=use", "cases?q=fix", "episodes", "judge", "warnings", f"warning?id={WARNING}",
    "learning", "health", "audit", "forget?what=everything",
)  # fmt: skip


def pages(browser: Browser, ids: Ids) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every page of the inspector."""
    for page in (*PAGES, *(f"case?id={one}" for one in ids.cases), *(f"episode?id={one}" for one in ids.episodes)):

        def shown(page: str = page) -> str:
            found = browser.get(f"/{page}")
            if found.status_code == 500:
                raise AssertionError(f"the page {page} failed")
            return found.text

        yield f"page {page.partition('?')[0]}", shown

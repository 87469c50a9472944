"""Compares a database with what its writers wrote down about it."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from db_worker import opened, read_journal
from forks import say

from cascade_memory import CascadeMemory
from cascade_memory.errors import StoreError, UnknownCase
from cascade_memory.ledger.postgres.leases import LASTS


@dataclass
class Books:
    """All journals together."""

    added: dict[str, list[Any]] = field(default_factory=dict)  # case -> [namespace, query, solution]
    recalled: set[str] = field(default_factory=set)  # episodes
    rewarded: dict[str, list[Any]] = field(default_factory=dict)  # episode -> [namespace, value, case]
    vanished: set[str] = field(default_factory=set)  # episodes that could not be rewarded
    forgot: dict[str, list[Any]] = field(default_factory=dict)  # case -> [namespace, episode]
    unsure: set[str] = field(default_factory=set)  # cases and episodes that may have been forgotten
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    slowest_recall_s: float = 0.0

    @classmethod
    def of(cls, paths: list[Path]) -> Books:
        """Read the journals."""
        books = cls()
        for path in paths:
            for line in read_journal(path):
                books.take(*line)
        return books

    def take(self, what: str, at: float, *words: Any) -> None:
        """Note one line of a journal."""
        del at
        self.counts[what] += 1
        if what == "added":
            self.added[words[1]] = [words[0], *words[2:]]
        elif what == "recalled":
            self.recalled.add(words[1])
        elif what == "rewarded":
            self.rewarded[words[1]] = [words[0], *words[2:]]
        elif what == "vanished":
            self.vanished.add(words[1])
        elif what == "forgot":
            self.forgot[words[1]] = [words[0], words[2]]
        elif what in ("forgetting", "gone"):
            self.unsure |= {words[1], words[2]}
        elif what == "refused":
            self.refusals[f"{words[0]}: {words[1]}".split(" failed: ")[-1][:90]] += 1
        if what in ("recalled", "recalled late", "failed open"):
            seconds = words[1 if what == "failed open" else 2]
            if seconds < LASTS:  # otherwise its process was paused
                self.slowest_recall_s = max(self.slowest_recall_s, seconds)


def _has(memory: CascadeMemory, namespace: str, case: str) -> Any:
    try:
        return memory.acting(namespace=namespace).cases.get(case)
    except UnknownCase:
        return None


def _cases(memory: CascadeMemory, books: Books, evicted: set[str]) -> list[str]:
    wrong = []
    for case, (namespace, query, solution) in books.added.items():
        if case in books.forgot or case in evicted:
            continue
        found = _has(memory, namespace, case)
        if found is None and case not in books.unsure:
            wrong.append(f"lost: the case {case}")
        if found is not None and (found.query, found.solution) != (query, solution):
            wrong.append(f"lost: the words of the case {case}")
    for case, (namespace, episode) in books.forgot.items():
        if _has(memory, namespace, case) is not None:
            wrong.append(f"back: the case {case} was forgotten")
        if episode is not None and memory.acting(namespace=namespace).episodes.get(episode) is not None:
            wrong.append(f"back: the episode {episode} was forgotten")
    return wrong


def _outcomes(memory: CascadeMemory, books: Books, evicted: set[str]) -> list[str]:
    wrong = []
    forgotten = {episode for _, episode in books.forgot.values()} | books.unsure
    for episode, (namespace, value, case) in books.rewarded.items():
        found = memory.acting(namespace=namespace).episodes.get(episode)
        if found is None:
            if episode not in forgotten:
                wrong.append(f"lost: the outcome of {episode}")
        elif (found.status, found.reward) != ("settled", value):
            wrong.append(f"lost: the outcome of {episode} is {found.status} {found.reward}, not {value}")
        elif case and case not in evicted and case not in books.unsure and _has(memory, namespace, case) is None:
            wrong.append(f"lost: the case {case} of {episode}")
    return wrong


def _rows(connection: psycopg.Connection[Any], books: Books, namespaces: list[str]) -> list[str]:
    """Look at the tables themselves."""
    wrong: list[str] = []
    twice = "SELECT episode FROM cascade_memory.outcome WHERE withdrawn_at IS NULL GROUP BY episode HAVING count(*) > 1"
    wrong += [f"twice: episode {row[0]} has several outcomes" for row in connection.execute(twice)]
    lines = "SELECT ref FROM cascade_memory.change WHERE kind = 'settled' GROUP BY ref HAVING count(*) > 1"
    wrong += [f"twice: outcome {row[0]} is in the log several times" for row in connection.execute(lines)]
    old = """SELECT s.namespace, s.seq FROM cascade_memory.snapshot s WHERE EXISTS (SELECT 1 FROM cascade_memory.change c
             WHERE c.namespace = s.namespace AND c.seq > s.seq AND c.kind IN ('withdrawn', 'forgotten', 'purged'))"""
    wrong += [f"back: snapshot {row[1]} of {row[0]} holds what was forgotten" for row in connection.execute(old)]
    there = {
        row[0]
        for table in ("cases", "episode", "recall")
        for row in connection.execute(
            psycopg.sql.SQL("SELECT query FROM cascade_memory.{}").format(psycopg.sql.Identifier(table))
        )
    }
    texts = {case: query for case, (_, query, _) in books.added.items()}
    wrong += [
        f"back: the words of {case} were forgotten" for case in books.forgot if texts.get(case) in there and case in texts
    ]
    number = {row[1]: row[0] for row in connection.execute("SELECT id, name FROM cascade_memory.namespace")}
    if missing := set(namespaces) - set(number):
        wrong.append(f"lost: the namespaces {sorted(missing)}")
    return wrong


def _recalls(connection: psycopg.Connection[Any], books: Books) -> list[str]:
    there = {row[0] for row in connection.execute("SELECT id FROM cascade_memory.episode")}
    forgotten = {episode for _, episode in books.forgot.values()} | books.unsure
    wrong = [f"lost: the recall {episode}" for episode in books.recalled - there - forgotten]
    return wrong + [f"lost: the recall {episode}, before its reward" for episode in books.vanished & books.recalled]


def _synchronised(memory: CascadeMemory) -> None:
    """Feed everything, as soon as the lease of one who was killed is over."""
    deadline = time.monotonic() + 2 * LASTS
    while True:
        try:
            memory.sync()
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _in_chroma(memory: CascadeMemory, connection: psycopg.Connection[Any], chroma: str) -> list[str]:
    """Chroma has the cases of the ledger, no more and no less."""
    import chromadb

    _synchronised(memory)
    stored = {row[0] for row in connection.execute("SELECT id FROM cascade_memory.cases")}
    host, port = chroma.removeprefix("http://").split(":")
    found: set[str] = set()
    client = chromadb.HttpClient(host=host, port=int(port))
    for collection in client.list_collections():
        found |= set(collection.get(include=[])["ids"])
    wrong = [f"back: Chroma has the case {case}" for case in found - stored]
    return wrong + [f"lost: Chroma lacks the case {case}" for case in stored - found]


def check(url: str, chroma: str | None, namespaces: list[str], paths: list[Path], pipe: int) -> None:
    """Compare everything, and report."""
    books = Books.of(paths)
    with psycopg.connect(url, autocommit=True) as connection, opened(url, chroma=chroma, learn="inline") as memory:
        memory.acting(namespace=namespaces[0]).recall("task of kind 3")
        evicted = {row[0] for row in connection.execute("SELECT id FROM cascade_memory.change WHERE kind = 'evicted'")}
        wrong = (
            _recalls(connection, books)
            + _cases(memory, books, evicted)
            + _outcomes(memory, books, evicted)
            + _rows(connection, books, namespaces)
        )
        wrong += [f"{one.name}: {one.detail}" for one in memory.data.examine() if not one.ok and one.name != "free disk"]
        if chroma is not None:
            wrong += _in_chroma(memory, connection, chroma)
    report = {
        "wrong": wrong,
        "counts": books.counts,
        "refusals": dict(books.refusals.most_common(12)),
        "slowest_recall_s": books.slowest_recall_s,
        "evicted": len(evicted),
    }
    say(pipe, json.dumps(report))


def lines_missed(url: str, seen: list[list[Any]]) -> list[str]:
    """Compare what a reader of the log has seen with the log."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT seq, kind, ref FROM cascade_memory.change ORDER BY seq"
        there = [tuple(row) for row in connection.execute(query)]
    known = {tuple(line) for line in seen}
    wrong = [f"lost: the reader of the log missed the line {line}" for line in there if line not in known]
    return wrong + [f"lost: the log no longer has the line {line}" for line in sorted(known - set(there))]

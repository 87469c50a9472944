"""Execution accuracy: right, wrong and malformed queries, and those that write, attach, loop, dump or eat memory."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_memory.evaluation.judging.sql import QueryFailed, ReadOnlyQueries, orders, same_rows, sql_execution

GOLD = "SELECT name FROM singer WHERE age > 30"


@pytest.fixture(scope="module")
def queries() -> Iterator[ReadOnlyQueries]:
    with ReadOnlyQueries(seconds=3.0) as running:
        yield running


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("db") / "concert.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE singer (name TEXT, age INTEGER, pay REAL)")
        rows = [("Ann", 31, 0.1), ("Bo", 29, 0.2), ("Cy", 45, 0.3), ("Cy", 45, 0.3)]
        connection.executemany("INSERT INTO singer VALUES (?, ?, ?)", rows)
    connection.close()
    return path


def judged(queries: ReadOnlyQueries, database: Path, reply: str, gold: str = GOLD) -> float:
    return sql_execution(reply, gold, database, queries)


@pytest.mark.parametrize(
    "reply",
    [
        GOLD,
        GOLD + ";",
        f"```sql\n{GOLD}\n```",
        f"First I thought:\n```sql\nSELECT 1\n```\nbut no:\n```sql\n{GOLD}\n```",
        f"```\n{GOLD}\n```",
        rf"\boxed{{{GOLD}}}",
        "select name from singer where not age <= 30",
        "SELECT name FROM singer WHERE age > 30 ORDER BY name DESC",
        "WITH old AS (SELECT * FROM singer WHERE age > 30) SELECT name FROM old",
    ],
)
def test_right(queries, database, reply):
    assert judged(queries, database, reply) == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        "SELECT name FROM singer",
        "SELECT DISTINCT name FROM singer WHERE age > 30",
        "SELECT name, age FROM singer WHERE age > 30",
        "SELECT age FROM singer WHERE age > 30",
        "SELECT name FROM singer WHERE age > 99",
        "SELECT 'Ann' UNION ALL SELECT 'Cy'",
        "",
        "no idea",
        "SELEC name",
        "SELECT name FROM nobody",
        f"{GOLD}; {GOLD}",
        "```sql\n```",
    ],
)
def test_wrong_or_malformed(queries, database, reply):
    assert judged(queries, database, reply) == 0.0


SLOW = pytest.mark.slow
ADVERSARIAL = [
    "INSERT INTO singer VALUES ('Eve', 99, 0)",
    "UPDATE singer SET age = 31",
    "DELETE FROM singer",
    "DROP TABLE singer",
    "CREATE TABLE mine (x)",
    "CREATE TEMP TABLE mine (x)",
    "VACUUM",
    "VACUUM INTO '/tmp/stolen.sqlite'",
    "ATTACH DATABASE '/tmp/other.sqlite' AS other",
    "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode = WAL",
    "PRAGMA hard_heap_limit = 1",
    "BEGIN IMMEDIATE",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT writefile('/tmp/x', 'y')",
    pytest.param("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", marks=SLOW),
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    pytest.param(
        "SELECT count(*) FROM singer a, singer b, singer c, singer d, singer e, singer f, singer g, singer h, singer i, "
        "singer j, singer k, singer l, singer m, singer n, singer o",
        marks=SLOW,
    ),
    "SELECT randomblob(2000000000)",
    "SELECT hex(zeroblob(900000000))",
    pytest.param("SELECT printf('%.*c', 900000000, 'x')", marks=SLOW),
    "SELECT group_concat(printf('%.*c', 9000000, 'x')) FROM singer a, singer b, singer c, singer d, singer e",
    f"SELECT '{'a' * 20_000}' LIKE '{'%a' * 12_000}%b'",
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    "SELECT 1; ATTACH DATABASE '/tmp/other.sqlite' AS other",
    "SELECT '\ud800'",
    "SELECT '\x00'",
]


@pytest.mark.parametrize("reply", ADVERSARIAL, ids=lambda reply: reply[:40].encode("ascii", "replace").decode())
def test_adversarial(queries, database, reply):
    before = hashlib.sha256(database.read_bytes()).digest()
    began = time.perf_counter()
    assert judged(queries, database, reply) == 0.0
    assert time.perf_counter() - began < 8
    assert hashlib.sha256(database.read_bytes()).digest() == before
    assert sorted(one.name for one in database.parent.iterdir()) == ["concert.sqlite"]
    assert not Path("/tmp/stolen.sqlite").exists()
    assert judged(queries, database, GOLD) == 1.0  # the next one is answered


def test_a_dump_is_read_no_further_than_it_can_be_right(queries, database):
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000000) SELECT x FROM n"
    assert len(queries.run(database, many, most_rows=10)) == 11


def test_rows_in_order_only_where_the_right_query_orders_them(queries, database):
    by_age = "SELECT name FROM singer ORDER BY age, name"
    assert judged(queries, database, "SELECT name FROM singer ORDER BY age DESC", by_age) == 0.0
    assert judged(queries, database, "SELECT name FROM singer ORDER BY age, pay", by_age) == 1.0
    inside = "SELECT name FROM singer WHERE age = (SELECT age FROM singer ORDER BY age DESC LIMIT 1)"
    assert judged(queries, database, "SELECT name FROM singer WHERE age = 45 ORDER BY name", inside) == 1.0


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t GROUP BY a ORDER BY count(*) DESC", True),
        ("SELECT a FROM t WHERE b IN (SELECT max(b) FROM t) order\n by a", True),
        ("SELECT sum(a) OVER (ORDER BY b) FROM t", False),
        ("SELECT a FROM t WHERE b = 'order by (' AND c = (SELECT c FROM t ORDER BY d LIMIT 1)", False),
        ('SELECT [order by], "order by" FROM t -- ORDER BY a', False),
        ("SELECT 'it''s (' FROM t /* ( */ ORDER BY 1", True),
    ],
)
def test_what_orders_the_rows_of_a_query(sql, ordered):
    assert orders(sql) is ordered


def test_whole_numbers_agree_to_the_last_digit_and_a_block_may_be_called_sqlite(queries, database):
    assert judged(queries, database, "SELECT 1234567891", "SELECT 1234567890") == 0.0
    assert judged(queries, database, "SELECT 1234567890.0", "SELECT 1234567890") == 1.0
    assert judged(queries, database, f"Here:\n```sqlite\n{GOLD}\n```", GOLD) == 1.0


def test_sums_in_another_order_agree(queries, database):
    gold = "SELECT sum(pay) FROM singer"
    assert judged(queries, database, "SELECT sum(pay) FROM (SELECT pay FROM singer ORDER BY pay DESC)", gold) == 1.0
    assert not same_rows([(float("nan"),)], [(1,)], ordered=True)
    assert same_rows([(b"\x00\xff", None)], [(b"\x00\xff", None)], ordered=True)


@pytest.mark.slow
def test_a_right_query_that_fails_is_the_benchmarks_fault(queries, database):
    with pytest.raises(ValueError, match="the right query itself fails"):
        judged(queries, database, GOLD, "SELECT name FROM nobody")
    with pytest.raises(QueryFailed):
        queries.run(database.with_name("missing.sqlite"), GOLD)
    assert not database.with_name("missing.sqlite").exists()


@pytest.mark.slow
def test_every_gold_query_of_spider_is_its_own_answer(data: Path, tmp_path: Path):
    with tarfile.open(data / "spider_dev_dbs.tar.gz") as archive:
        options = {"filter": "data"} if sys.version_info >= (3, 12) else {}
        archive.extractall(tmp_path, **options)
    rows = [json.loads(line) for line in (data / "spider_dev.jsonl").read_text(encoding="utf-8").splitlines()]
    with ReadOnlyQueries() as queries:
        for row in rows[::4]:
            path = next(tmp_path.rglob(f"{row['db_id']}.sqlite"))
            assert sql_execution(f"```sql\n{row['label']}\n```", row["label"], path, queries) == 1.0, row

"""Lets every test keep its memories in PostgreSQL instead of folders: ``pytest --in-databases direct`` (or ``pooled``).

Each folder that a test opens stands for a database of its own, in this process and in those that it starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_SERVER = "CASCADE_TEST_SERVER"  # the URL of the server, with {name} for the database


def url_of(path: str | os.PathLike[str]) -> str:
    """Return the URL of the database that stands for a folder; create it at first use."""
    import psycopg

    name = "m" + hashlib.sha256(os.path.realpath(Path(path).expanduser()).encode()).hexdigest()[:24]
    server = os.environ[_SERVER]
    with psycopg.connect(os.environ[f"{_SERVER}_DIRECT"].format(name="postgres"), autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    return server.format(name=name)


def named(path: str | os.PathLike[str]) -> str:
    """Return what a program that gets no environment has to be given: the folder, or the URL that it stands for."""
    return url_of(path) if os.environ.get(_SERVER) else str(path)


def install() -> None:
    """Let each path of a folder mean its database."""
    from cascade_memory.assembly import opened, place

    true_place = place.place_of

    def place_of(path: object) -> place.Place:
        found = true_place(path)
        return found if type(found).__name__ == "Database" else true_place(url_of(str(found)))

    for module in (place, opened):
        module.place_of = place_of  # type: ignore[attr-defined]
    import cascade_memory.cli.opening as cli

    cli.place_of = place_of  # type: ignore[attr-defined]


class InDatabases:
    """The plugin: one server per test process."""

    def __init__(self, how: str) -> None:
        self._how = how

    @pytest.fixture(autouse=True, scope="session")
    def in_databases(self) -> Iterator[None]:
        from cluster import cluster

        started = str(Path(__file__).parent / "started")  # for the processes that tests start
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [started, os.environ.get("PYTHONPATH")]))
        with cluster() as server:
            direct = server.url("{name}")
            os.environ[f"{_SERVER}_DIRECT"] = direct
            if self._how == "pooled":
                with server.pooled() as port:
                    os.environ[_SERVER] = server.url("{name}", port)
                    install()
                    yield
            else:
                os.environ[_SERVER] = direct
                install()
                yield

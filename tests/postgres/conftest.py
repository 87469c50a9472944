"""A PostgreSQL cluster of the tests' own, in a temporary folder, as a user without rights, on a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest


def _programs() -> Path | None:
    """Find the newest PostgreSQL of this machine; Debian keeps its programs outside of PATH."""
    found = shutil.which("initdb")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return Path(found).parent if found else versions[-1].parent if versions else None


class Cluster:
    """Starts, stops and kills a server."""

    def __init__(self, folder: Path) -> None:
        programs = _programs()
        if programs is None:
            pytest.skip("PostgreSQL is not installed here (Debian: apt-get install postgresql pgbouncer)")
        self.programs, self.folder = programs, folder
        # Servers refuse to run as root.
        self.user = pwd.getpwnam("postgres").pw_name if os.getuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self._run(
            "initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "cascade", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"
        )
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if self.user:
            command = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=200 -c fsync=off"  # nobody cuts the power
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-o", options, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", how, "-w", "stop")

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://cascade@/{name}?host={self.folder}"

    def new_database(self) -> str:
        """Create an empty database, and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server of this session; a socket's path must be short, so its folder is not pytest's."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = Cluster(Path(folder))
        yield server
        server.stop("immediate")


@pytest.fixture
def new_database(cluster: Cluster) -> Callable[[], str]:
    return cluster.new_database

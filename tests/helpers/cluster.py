"""A PostgreSQL cluster of the tests' own, in a temporary folder, as a user without rights, on a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest


def programs() -> Path | None:
    """Find the newest PostgreSQL of this machine; Debian keeps its programs outside of PATH."""
    found = shutil.which("initdb")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return Path(found).parent if found else versions[-1].parent if versions else None


class Cluster:
    """Starts, stops and kills a server."""

    def __init__(self, folder: Path, *, fsync: bool = False, tcp: bool = False) -> None:
        found, self._fsync, self._tcp = programs(), fsync, tcp
        if found is None:
            pytest.skip("PostgreSQL is not installed here (Debian: apt-get install postgresql pgbouncer)")
        self.programs, self.folder = found, folder
        # Servers refuse to run as root.
        self.user = pwd.getpwnam("postgres").pw_name if os.getuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self._run(
            "initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "cascade", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"
        )
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(self._as_user(str(self.programs / program), *arguments), check=True, stdout=subprocess.DEVNULL, cwd="/")

    def _as_user(self, *command: str) -> list[str]:
        drop = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"] if self.user else []
        return [*drop, *command]

    def start(self) -> None:
        fsync = "on" if self._fsync else "off"  # nobody cuts the power
        listens = "127.0.0.1" if self._tcp else "''"
        options = f"-k {self.folder} -c listen_addresses={listens} -c max_connections=200 -c fsync={fsync}"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-o", options, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", how, "-w", "stop")

    def url(self, name: str = "postgres", port: int = 5432) -> str:
        return f"postgresql://cascade@/{name}?host={self.folder}&port={port}"

    @property
    def tcp_url(self) -> str:
        """The URL of its first database, if it listens to the network."""
        return "postgresql://cascade@127.0.0.1/postgres"

    def new_database(self, name: str | None = None) -> str:
        """Create an empty database, and return its URL."""
        name = name or f"test_{uuid.uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    @contextmanager
    def pooled(self, port: int = 6432) -> Iterator[int]:
        """Run pgbouncer in front of the server, in transaction mode; yield its port on the same socket folder."""
        program = shutil.which("pgbouncer") or ("/usr/sbin/pgbouncer" if Path("/usr/sbin/pgbouncer").exists() else None)
        if program is None:
            pytest.skip("pgbouncer is not installed here (Debian: apt-get install pgbouncer)")
        settings = self.folder / "pgbouncer.ini"
        # With auth_type=any every client becomes the user that the first line names.
        settings.write_text(
            f"[databases]\n* = host={self.folder} user=cascade\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n"
            f"unix_socket_dir = {self.folder}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n"
            f"max_client_conn = 500\npidfile = {self.folder}/pgbouncer.pid\nlogfile = {self.folder}/pgbouncer.log\n"
        )
        with subprocess.Popen(
            self._as_user(program, str(settings)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as one:
            try:
                self._wait_for(port)
                yield port
            finally:
                one.terminate()

    def _wait_for(self, port: int) -> None:
        import time

        for _ in range(100):
            try:
                psycopg.connect(self.url(port=port), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError((self.folder / "pgbouncer.log").read_text())


@contextmanager
def cluster(*, fsync: bool = False, tcp: bool = False) -> Iterator[Cluster]:
    """A server; a socket's path must be short, so its folder is not pytest's."""
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = Cluster(Path(folder), fsync=fsync, tcp=tcp)
        try:
            yield server
        finally:
            server.stop("immediate")

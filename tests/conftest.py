"""Shared fixtures. Nothing here reaches the network, and a test that tries fails."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clocks import Clocks
from frameworks import FRAMEWORK_OF
from speed import Speed

from cascade_memory import CascadeMemory

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # test processes that each use all cores slow each other down
    os.environ.setdefault(_threads, "1")

# Thousands of memories are opened, and each waits for the disk at every step. Where there is room, their folders are in RAM.
_RAM = Path("/dev/shm")
if os.access(_RAM, os.W_OK) and shutil.disk_usage(_RAM).free > 2 * 1024**3:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM))

# They hold no tests: one drives a browser with selenium, which .ci/matrix installs, and a helper may change the package for
# whoever imports it.
collect_ignore = ["browser/check_inspector.py", "helpers"]

_MEASURED = {
    "bandit",
    "cycle",
    "cross_encoder",
    "encoders",
    "memory",
    "sources",
    "warnings",
    "test_contracts.py",
    "test_replay.py",
}
_LOCAL = {"127.0.0.1", "::1", "localhost"}


class WithoutExtras:
    """Leaves out what needs a framework that is not installed: the other Pythons are tested without any."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        name = collection_path.name
        framework = FRAMEWORK_OF.get(name) or FRAMEWORK_OF.get(f"{collection_path.parent.name}/{name}")
        return True if framework and importlib.util.find_spec(framework) is None else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, up to 8: many tests wait for a clock, a child or a lock."""
    return min((os.cpu_count() or 1) + 1, 8)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure the coverage of the maths and of the six steps only where they are tested: measuring all tests takes minutes."""
    for item in items:
        if not _MEASURED & set(item.path.parts):
            item.add_marker("no_cover")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays until the end: it would look at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--in-databases", choices=["direct", "pooled"], help="keep all memories in PostgreSQL; see in_databases.py"
    )
    parser.addoption("--speed", metavar="FILE", help="write the CPU seconds of every test; see speed.py")


def pytest_configure(config: pytest.Config) -> None:
    if how := config.getoption("--in-databases"):
        from in_databases import InDatabases

        config.pluginmanager.register(InDatabases(how), "in-databases")
    if path := config.getoption("--speed"):
        config.pluginmanager.register(Speed(path), "speed")
    config.pluginmanager.register(WithoutExtras(), "without-extras")  # as a plugin: a conftest sees its own folder only


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Deny every connection beyond this machine: the library must not need one, and must not try."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOCAL:
            raise AssertionError(f"a test tried to reach {address!r}")
        return connect(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", refuse)
    patch.setenv("HF_HUB_OFFLINE", "1")
    yield
    patch.undo()


@pytest.fixture
def ram() -> Iterator[CascadeMemory]:
    """A memory in RAM that learns inline, with the hashing embedder."""
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        yield memory


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Callable[..., CascadeMemory]]:
    """Opens memories in one folder; whatever is left open is closed at the end."""
    opened: list[CascadeMemory] = []

    def open_(**options: Any) -> CascadeMemory:
        memory = CascadeMemory(tmp_path / "memory", **{"embedder": "hashing", "learn": "inline", **options})
        opened.append(memory)
        return memory

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real task streams."""
    folder = os.environ.get("CASCADE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no data: CASCADE_DATA names no folder of task streams")
    return Path(folder)


@pytest.fixture
def always_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every warning that a person has restored be given: what chance decides has tests of its own."""
    monkeypatch.setattr("cascade_memory.capabilities.warnings.shelf.MOST", 1.0)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """The wall clock and the clock of the boot, which stand still until a test moves them."""
    return Clocks(monkeypatch)

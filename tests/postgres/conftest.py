"""The server of a session, and databases in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from cluster import Cluster
from cluster import cluster as running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here: the default run needs no server, and leaves it to .ci/matrix."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("postgres")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running() as server:
        yield server


@pytest.fixture
def new_database(cluster: Cluster) -> Callable[[], str]:
    return cluster.new_database

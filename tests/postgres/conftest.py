"""The server of a session, and databases in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("psycopg")

from cluster import Cluster
from cluster import cluster as running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running() as server:
        yield server


@pytest.fixture
def new_database(cluster: Cluster) -> Callable[[], str]:
    return cluster.new_database

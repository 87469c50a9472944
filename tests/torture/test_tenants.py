"""Ten thousand tenants fit into one process, in a folder and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tortured import tortured

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@pytest.fixture(params=["folder", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where the memory is kept, as an option of the program."""
    if request.param == "folder":
        yield "--folder", str(tmp_path)
        return
    pytest.importorskip("psycopg")
    from cluster import cluster

    with cluster() as server:
        yield "--url", server.new_database()


def _measured(tenants: int, place: tuple[str, str]) -> dict[str, object]:
    return tortured("tenants.py", "--tenants", tenants, *place)[0]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_tenants_stay_within_their_bounds(place: tuple[str, str]):
    found = _measured(10_000, place)
    assert found["exceeded"] == {}, found
    assert not found["doctor_wrong"], found


@pytest.mark.long
@pytest.mark.timeout(300)
def test_three_hundred_tenants_keep_what_they_learned_in_the_same_bounds(place: tuple[str, str]):
    found = _measured(300, place)
    slow = {"warm_share", "let_go_share", "close_share", "doctor_share"}  # where so few tenants are measured
    assert set(found["exceeded"]) <= slow, found  # type: ignore[call-overload]
    assert not found["doctor_wrong"], found

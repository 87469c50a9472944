"""How far a reader has to walk: the bounds may only go down."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_counts import printed_counts

pytest.importorskip("langgraph")

_BOUNDS = {  # files, changes of file
    # The door, who waits, and blocks that no interrupt leaves open; the floor of a young memory, in two files; and what to pass
    # where the memory was passed by mistake, which stands on pydantic's way to private attributes. And the right to show.
    "a recall through the LangChain retriever": (46, 97),
    # The end of a stream that was cut off, the door, tickets and caps, the records of actors, the step to blame, and what
    # follows the log for warnings. Facts about the folder have one reader, which takes anything. The floor is measured. And the
    # right to show.
    "a reward through the handler": (60, 145),
    # What was learned is learned again: a forgotten case may have been a candidate. What is set aside is searched, too, and
    # what warnings say of it. Before the file is rewritten elsewhere, the files beside it are looked at. (With some versions of
    # LangChain, a stream of the walk before is collected only now, which is one file more.) And the right to show, relearned.
    "forget(purge=True)": (62, 393),
}


@pytest.mark.slow
def test_no_walk_through_the_package_gets_longer():
    found = printed_counts(Path(__file__).parents[1] / "helpers" / "walks.py")
    assert len(found) == len(_BOUNDS)
    for name, (_, files, changes) in found.items():
        assert files <= _BOUNDS[name][0], found
        assert changes <= _BOUNDS[name][1], found

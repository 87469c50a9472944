"""What an episode costs, counted and not timed: the bounds may only go down."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_counts import printed_counts

_BOUNDS = {  # statements, calls
    "a recall": (9, 184),
    "a reward": (17, 219),
    "an episode that is learned from": (28, 481),
}


@pytest.mark.slow
def test_no_episode_costs_more():
    found = printed_counts(Path(__file__).parents[1] / "helpers" / "costs.py")
    assert len(found) == len(_BOUNDS)
    for name, (statements, calls) in found.items():
        assert statements <= _BOUNDS[name][0], found
        assert calls <= _BOUNDS[name][1], found

"""What is said of the scores that are used, and of those that are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from in_traces import span
from scored import opened, recalled, score, trace

from cascade_memory import CascadeMemory
from cascade_memory.capabilities.scores import Unread
from cascade_memory.errors import InvalidInput


@pytest.fixture
def memory() -> CascadeMemory:
    return opened()


def mixed(memory: CascadeMemory) -> list[Any]:
    for number in range(3):
        recalled(memory, number)
    for other in "xy":
        with span(trace(7), f"{ord(other):016x}"):
            memory.recall(f"twice in a trace {other}")
    return [
        score(0, True, judge="human"),
        score(0, True, judge="human", at=1.6e9),
        score(1, "Thumbs up", judge="judge"),
        score(1, "partly", id="2"),
        score(1, 4.0, id="3"),
        score(2, 1.0, name="length"),
        score(2, 1.0, trace_id=None),
        score(5),
        score(7),
        Unread("line 7 of a file is cut off"),
    ]


SAID = """\
of 10 scores 2 find an episode: 1 human, 1 judge
not used: 1 older version, 1 without a trace, 1 whose trace has no episode here, 1 not mapped (length: 1), \
2 without a number from 0 to 1 (4.0: 1, partly: 1), 2 refused"""


def test_a_dry_run_stores_nothing_and_counts_each_score_once(memory: CascadeMemory):
    scores = mixed(memory)
    first = memory.scores.collect(scores, weights={"correct": 1.0}, dry_run=True)
    assert str(first).startswith(SAID + "\n")
    assert str(first).endswith("line 7 of a file is cut off\na dry run: nothing was stored")
    assert memory.scores.known("mine") == []
    assert memory.stats().rewards == 0
    done = memory.scores.collect(scores, weights={"correct": 1.0})
    assert str(done).startswith(SAID + "\n")
    assert str(done).endswith("\n2 episodes rewarded")
    assert replace(done, rewarded=0, dry_run=True) == first


def test_the_message_about_a_trace_with_several_episodes_says_what_to_do(memory: CascadeMemory):
    (why,) = memory.scores.collect([mixed(memory)[-2]]).why
    assert "has 2 episodes: pass the span_id=" in why


def test_labels_of_ones_own_are_added_to_the_usual_ones(memory: CascadeMemory):
    recalled(memory, 1)
    memory.scores.collect([score(1, "Partly_right"), score(1, "no", id="2")])
    assert memory.episodes.rewards() == [(0.0, False)]
    memory.scores.collect([score(1, "Partly_right"), score(1, "no", id="2")], labels={"partly right": 0.5})
    assert memory.episodes.rewards() == [(0.25, False)]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"platform": "a\nb"}, "platform must be one line"),
        ({"platform": "x" * 65}, "at most 64 are allowed"),
        ({"id": ""}, "id is empty"),
        ({"id": "sk-proj-" + "a1B2c3D4e5" * 5}, "looks as if it holds a secret"),
        ({"name": 7}, "name must be a string"),
        ({"value": [1]}, "the value of a score must be"),
        ({"judge": "ann"}, "judge must be one of"),
        ({"at": 1.7e12}, "seconds since 1970"),
        ({"at": float("nan")}, "seconds since 1970"),
        ({"trace_id": 7}, "trace_id must be a string"),
        ({"trace_id": "x"}, "trace_id must be 32 hexadecimal digits"),
        ({"by": " ann"}, "begins or ends with white space"),
        ({"correction": 1}, "correction must be a string"),
        ({"deleted": 1}, "deleted must be True or False"),
    ],
)
def test_a_score_that_cannot_be_used_is_refused_and_the_others_count(memory: CascadeMemory, fields: dict[str, Any], why: str):
    recalled(memory, 1)
    collected = memory.scores.collect([replace(score(1), **fields), score(1)])
    assert (collected.refused, collected.rewarded) == (1, 1)
    assert why in collected.why[0]


def test_what_is_no_score_is_refused(memory: CascadeMemory):
    recalled(memory, 1)
    with pytest.raises(InvalidInput, match="must return objects of the class Score, not a dict"):
        memory.scores.collect([score(1), {"value": 1}])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="one score after the other, not 7"):
        memory.scores.collect(7)  # type: ignore[arg-type]


def test_what_a_collector_returned_before_it_failed_is_stored(memory: CascadeMemory):
    recalled(memory, 1)

    def fails():
        yield score(1)
        raise ConnectionError("the platform is away")

    with pytest.raises(ConnectionError, match="is away"):
        memory.scores.collect(fails())
    assert memory.episodes.rewards() == [(1.0, False)]

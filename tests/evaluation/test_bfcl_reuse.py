"""The agent that reuses calls: it changes what the new text changes, keeps the turns, and fails honestly."""

from __future__ import annotations

import pytest

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.evaluation.environments.bfcl.calls import read_call, write_turns
from cascade_memory.evaluation.environments.bfcl.tasks import BFCLTask, installed_tasks, lacking
from cascade_memory.evaluation.reuse.bfcl import BFCLAgent, adapted, exchange, secrets_in

MISSING = lacking()
installed = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


def task(*turns: str) -> BFCLTask:
    return BFCLTask(
        name="new", kind="base", number=0, turns=turns, classes=("MathAPI",), config={}, right=tuple(() for _ in turns)
    )


def calls(old: str, solution: str, *new: str) -> str:
    return write_turns(adapted(old, solution, task(*new)))


@pytest.mark.parametrize(
    ("old", "solution", "new", "expected"),
    [
        ("Read 'a.txt'.", "cat(file_name='a.txt')", "Read 'b.md'.", "cat(file_name='b.md')"),
        ("Read a.txt.", "cat('a.txt')", "Read the file b.csv, please.", "cat('b.csv')"),
        ("Buy 100 shares of AAPL.", "buy(s='AAPL', n=100)", "Buy 1,500 shares of NVDA.", "buy(s='NVDA', n=1500)"),
        ("Fill 20 gallons.", "fill(20.0)", "Fill 30 gallons.", "fill(30.0)"),
        ("Fill 20 gallons.", "fill(20)", "Fill 2.5 gallons.", "fill(2.5)"),
        ("Post 'Hi' with #a, #b.", "post('Hi', ['#a', '#b'])", "Post 'Bye' with #c, #d.", "post('Bye', ['#c', '#d'])"),
        ("Say 'Hello Ann' to Ann.", "say('Hello Ann', to='Ann')", "Say 'Dear Bo' to Bo.", "say('Dear Bo', to='Bo')"),
        ("Close ticket 7.", "close(7, note='done', open=False)", "Close ticket 9.", "close(9, note='done', open=False)"),
        ("Go from 'x' to 'y'.", "go('x', 'y')", "Go from 'y' to 'z'.", "go('z', 'y')"),  # what both texts have stays
        ("Read 'a.txt'.", "cat('b.txt')", "Read 'c.txt'.", "cat('b.txt')"),  # not in the old text
        ("Read 'a.txt'.", "cat('a.txt')", "Read it.", "cat('a.txt')"),  # nothing to put there
    ],
)
def test_values_of_the_old_text_are_replaced_by_those_of_the_new_one(old: str, solution: str, new: str, expected: str):
    assert calls(old, f"turn 1: {solution}", new) == f"turn 1: {expected}"


def test_calls_stay_in_their_turns():
    assert calls("a\nb", "turn 1: f()\nturn 2: g()", "a", "more", "b") == "turn 1: f()\nturn 2: g()\nturn 3: nothing"
    assert calls("a\nb", "turn 1: f()\nturn 2: g()", "a") == "turn 1: f()"


def test_a_value_of_an_earlier_turn_is_replaced_in_later_ones():
    old, new = ["Make 'a.txt'.", "Read it."], ["Make 'b.txt'.", "Read it."]
    changed = exchange(old, new).turns([[read_call("touch('a.txt')")], [read_call("cat('a.txt')")]])
    assert write_turns(changed) == "turn 1: touch('b.txt')\nturn 2: cat('b.txt')"


def test_a_secret_that_the_memory_did_not_keep_is_that_of_the_new_text():
    solution = "turn 1: log_in('Ann', password='[secret:password#1]')"
    new = "Log in: my password is 'swordfish1'."
    assert calls("Log in with [secret:password#1].", solution, new) == "turn 1: log_in('Ann', password='swordfish1')"
    assert calls("Log in.", solution, "Log in.") == solution
    assert secrets_in("the token labeled 'abc1' and password.")["token"][0] == "abc1"


def recalled(query: str, solution: str) -> RecalledCase:
    return RecalledCase(
        id="1", query=query, solution=solution, metadata={}, similarity=1.0, utility=0.5, uncertainty=0.1, score=1.0
    )


@installed
def test_a_case_is_judged_by_what_its_calls_do():
    base, twin, long = (installed_tasks(kind)[0] for kind in ("base", "miss_func", "long_context"))
    agent = BFCLAgent([base, twin, long], alone=[False, False, False])
    case = recalled(base.query, base.solution)
    assert agent.attempt(0, [case]).success
    assert agent.attempt(2, [case]).success
    failed = agent.attempt(1, [case])
    assert (failed.success, failed.steps) == (False, 10)
    assert failed.answer == adapted_text(base, twin)


def adapted_text(old: BFCLTask, new: BFCLTask) -> str:
    return write_turns(adapted(old.query, old.solution, new))


@installed
def test_without_calls_to_reuse_it_fails_unless_it_solves_the_task_alone():
    base = installed_tasks("base")[0]
    agent = BFCLAgent([base, base], alone=[False, True])
    for cases in ([], [recalled("anything", "restart the spooler")]):
        attempt = agent.attempt(0, cases)
        assert (attempt.success, attempt.answer, attempt.steps) == (False, None, 0)
    alone = agent.attempt(1, [])
    assert (alone.success, alone.answer) == (True, base.solution)

"""Which step of a failed run is blamed, and for which runs none is."""

from __future__ import annotations

import time

import pytest

from cascade_memory import Step, Trajectory
from cascade_memory.capabilities.warnings.action_words import is_same_mistake
from cascade_memory.capabilities.warnings.blame import Solved, blamed_step, came_again
from cascade_memory.capabilities.warnings.consequences import is_error_of_the_world
from cascade_memory.capabilities.warnings.describing import advice_text
from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.domain.failure_warning import FailureWarning

TASK = "list the names of all customers"


def sql(text: str, seen: str = "3 rows", *, failed: bool = False) -> Step:
    return Step(tool="sql", arguments={"q": text}, observation=seen, failed=failed)


def do(action: str, seen: str = "ok", *, failed: bool = False) -> Step:
    return Step(action=action, observation=seen, failed=failed)


def blamed(*steps: Step, near: tuple[Solved, ...] = (), task: str = TASK) -> Blame:
    found = blamed_step(task, Trajectory(steps), near)
    assert found is not None
    return found


def solved(query: str, *actions: str, case: str = "c") -> Solved:
    return Solved(case=case, query=query, run=Trajectory([do(action) for action in actions]))


# -- calls that failed -------------------------------------------------------------------------------------------------


def test_the_last_failed_call_is_blamed_by_the_words_that_its_result_names():
    found = blamed(
        sql("SELECT x FROM t", "no such column: x", failed=True),
        sql("SELECT nme, age FROM people", "no such column: nme", failed=True),
        do("give up"),
    )
    assert (found.why, found.tool, found.words) == ("failed", "sql", ("nme",))
    assert found.happened == "no such column: nme"
    assert is_same_mistake(found.words, found.tool, sql("SELECT nme FROM customers WHERE age > 3"))
    assert not is_same_mistake(found.words, found.tool, sql("SELECT name FROM people"))
    assert not is_same_mistake(found.words, "other", sql("SELECT nme FROM people"))


def test_a_result_that_names_nothing_leaves_all_words_of_the_action():
    found = blamed(do("heat mug 3 with fridge 1", "Nothing happens.", failed=True))
    assert found.words == ("heat", "mug", "with", "fridge")
    assert is_same_mistake(found.words, None, do("heat mug 7 with fridge 2"))
    assert not is_same_mistake(found.words, None, do("heat mug 3 with microwave 1"))


def test_the_same_mistake_has_the_same_id_whatever_surrounds_it():
    first = blamed(sql("SELECT nme FROM a", "no such column: nme", failed=True))
    second = blamed(do("look"), sql("SELECT age, nme FROM b", "Error: no such column: nme", failed=True), task="another task")
    assert first.group == second.group
    assert first.group != blamed(sql("SELECT nam FROM a", "no such column: nam", failed=True)).group


def test_what_the_run_did_later_is_not_said_to_have_worked_since_the_run_failed():
    found = blamed(
        sql("SELECT nme FROM t", "no such column: nme", failed=True), do("think"), sql("SELECT name FROM t"), do("stop")
    )
    assert (found.instead, found.instead_case) == ("", None)


@pytest.mark.parametrize("before", [(), (sql("SELECT naem FROM dogs", "no such column: naem", failed=True),)])
def test_what_the_nearest_solved_run_did_without_an_error_is_what_worked_instead(before: tuple[Step, ...]):
    case = Solved(case="c7", query="list the names of all dogs", run=Trajectory([*before, sql("SELECT name FROM dogs")]))
    found = blamed(sql("SELECT nme FROM t", "no such column: nme", failed=True), sql("SELECT 1"), near=(case,))
    assert (found.instead, found.instead_case) == ('sql({"q": "SELECT name FROM dogs"})', "c7")


def test_a_solved_run_that_is_trusted_less_than_the_verdict_gives_no_advice():
    run = Trajectory([sql("SELECT name FROM dogs")])
    doubtful = Solved(case="c7", query="list the names of all dogs", run=run, trusted=False)
    found = blamed(sql("SELECT nme FROM t", "no such column: nme", failed=True), near=(doubtful,))
    assert (found.instead, found.instead_case) == ("", None)


def test_a_call_that_a_person_refused_comes_first():
    found = blamed(
        Step(
            tool="drop",
            arguments={"table": "people"},
            observation="User rejected the tool call for `drop` with id 1",
            failed=True,
        ),
        sql("SELECT nme FROM t", "no such column: nme", failed=True),
    )
    assert (found.why, found.tool, found.words) == ("refused", "drop", ("people",))


def test_a_page_that_speaks_of_users_who_reject_things_is_no_refusal():
    assert blamed_step(TASK, Trajectory([do("open the forum", "a user rejected the offer")])) is None


# -- no step can be blamed ---------------------------------------------------------------------------------------------

WORLD = (
    "Request timed out after 30 s",
    "TimeoutError",
    "ReadTimeout: HTTPSConnectionPool",
    "HTTP 429 Too Many Requests",
    "rate limit exceeded, slow down",
    "Error code: 503 - Service Unavailable",
    "The service is temporarily unavailable",
    "Connection reset by peer: connection reset",
    "ConnectionError: could not connect",
    "502 Bad Gateway",
    "the tool call was cancelled",
    "CancelledError",
    "getaddrinfo failed: name resolution",
    "Internal Server Error",
)


@pytest.mark.parametrize("seen", WORLD)
def test_errors_of_the_world_are_nobody_s_mistake(seen: str):
    assert blamed_step(TASK, Trajectory([do("look"), sql("SELECT a FROM t", seen, failed=True)])) is None


@pytest.mark.parametrize("seen", WORLD[:4])
def test_where_the_world_ended_the_run_nothing_before_it_is_blamed(seen: str):
    steps = [sql("SELECT nme FROM t", "no such column: nme", failed=True), sql("SELECT a FROM t", seen, failed=True)]
    assert blamed_step(TASK, Trajectory(steps), [solved(TASK, "look")]) is None


@pytest.mark.parametrize("seen", WORLD[:4])
def test_a_time_out_on_the_way_leaves_the_mistake_to_blame(seen: str):
    found = blamed(
        sql("SELECT nme FROM t", "no such column: nme", failed=True), sql("SELECT a FROM t", seen, failed=True), do("go on")
    )
    assert found.words == ("nme",)


MISTAKES = (
    "unexpected keyword argument 'timeout'",
    "Order 12 cannot be cancelled: it was shipped",
    "there is no route 503 from here",
    "permission denied",
    "404 Not Found",
)


@pytest.mark.parametrize("seen", MISTAKES)
def test_what_only_sounds_like_the_world_is_a_mistake(seen: str):
    assert blamed_step(TASK, Trajectory([do("cancel the order of timeouts", seen, failed=True)])) is not None


def test_a_call_that_succeeded_when_it_was_repeated_is_not_blamed():
    assert blamed_step(TASK, Trajectory([sql("SELECT a FROM t", "locked", failed=True), sql("SELECT a FROM t")])) is None


def test_a_run_without_a_failed_call_and_without_a_solved_run_beside_it_has_no_blame():
    assert blamed_step(TASK, Trajectory([do("look"), do("go north")])) is None


def test_a_call_that_nothing_tells_from_others_of_its_tool_is_not_blamed():
    step = Step(tool="get_order", arguments={"id": 17}, observation="order 17 not found", failed=True)
    assert blamed_step(TASK, Trajectory([step])) is None


def test_thoughts_alone_have_no_blame():
    assert blamed_step(TASK, Trajectory([Step(thought="hm"), Step(thought="no idea", failed=True)])) is None


def test_a_warning_is_never_blamed():
    text = advice_text(FailureWarning(id="w", namespace="n", query="q", action="a", happened="h"))
    assert blamed_step(TASK, Trajectory([sql("SELECT nme FROM t", text, failed=True)])) is None


# -- what solved runs say -----------------------------------------------------------------------------------------------

EGG = "heat the egg and put it on the table"
MUG = "heat the mug and put it on the shelf"


def test_a_run_in_which_nothing_failed_has_no_blame_wherever_it_leaves_one_that_worked():
    near = solved(MUG, "take mug 1", "open microwave 1", "heat mug 1 with microwave 1", "put mug 1 on shelf 2")
    assert blamed_step(EGG, Trajectory([do("take egg 3"), do("put egg 3 in fridge 1"), do("stop")]), [near]) is None


def test_an_action_that_failed_here_and_works_elsewhere_is_not_blamed_unless_the_world_says_what_is_wrong():
    failed = do("go to shelf 1", "Nothing happens.", failed=True)
    assert blamed(failed, task=EGG).action == "go to shelf 1"
    near = solved(MUG, "go to shelf 2", "take mug 1")
    assert blamed_step(EGG, Trajectory([failed]), [near]) is None


# -- whether it came again ---------------------------------------------------------------------------------------------


def test_a_mistake_came_again_if_the_same_failed_again():
    found = blamed(sql("SELECT nme FROM t", "no such column: nme", failed=True))
    assert came_again(found, Trajectory([sql("SELECT nme FROM u", "no such column: nme", failed=True)]))
    assert not came_again(found, Trajectory([sql("SELECT nme FROM u")]))
    assert not came_again(found, Trajectory([sql("SELECT name FROM u", "no such table: u", failed=True)]))


def test_a_long_result_without_a_space_is_read_in_no_time():
    began = time.perf_counter()
    assert not any(is_error_of_the_world("a" * 2_000) for _ in range(100))
    assert time.perf_counter() - began < 1.5

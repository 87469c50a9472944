"""A message that names nothing: whether the failure may come again depends on what was done before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from cascade_memory import Advice, CascadeMemory, Step, WarningOptions
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.memory import Memory

pytestmark = pytest.mark.usefixtures("always_warned")

TASK = "put the blue cup into the box"
NOTHING_SAID = "No known action matches that input."
NOT_THERE, TAKEN = Step("pick up blue cup", NOTHING_SAID, failed=True), Step("pick up blue cup", "You have the blue cup.")
REFUSED = Step("move blue cup to box", NOTHING_SAID, failed=True)


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as made:
        yield made


def fail(memory: Memory, *steps: Step) -> str:
    episode_id = memory.recall(TASK).episode_id
    memory.reward(episode_id, 0.0, solution=list(steps), source="env")
    for one in memory.warnings.all():
        memory.warnings.restore(one.id)
    return episode_id


def about_to_move(memory: Memory, done: Sequence[Step] | None) -> Advice | None:
    return memory.warnings.check(memory.recall(TASK).episode_id, "move blue cup to box", done=done)


def test_what_followed_from_another_failure_is_warned_of_only_after_that_one(memory: CascadeMemory):
    fail(memory, NOT_THERE, Step("go to kitchen", "You are there."), REFUSED)
    assert about_to_move(memory, [TAKEN]) is None
    assert about_to_move(memory, []) is None
    assert about_to_move(memory, [Step("pick up plate", NOTHING_SAID, failed=True)]) is None
    assert about_to_move(memory, [NOT_THERE]) is not None


def test_who_does_not_say_what_was_done_is_warned(memory: CascadeMemory):
    fail(memory, NOT_THERE, REFUSED)
    assert about_to_move(memory, None) is not None


def test_a_first_failure_followed_from_nothing(memory: CascadeMemory):
    fail(memory, Step("go to kitchen", "You are there."), REFUSED)
    assert about_to_move(memory, []) is not None
    assert about_to_move(memory, [Step("open door", "It is open.")]) is not None


def test_nor_does_it_count_if_something_new_was_done_with_the_same_thing(memory: CascadeMemory):
    fail(memory, Step("look at blue cup", "A blue cup."), REFUSED)
    assert about_to_move(memory, [Step("look at blue cup", "A blue cup.")]) is not None
    assert about_to_move(memory, [Step("LOOK at blue cup.", "A blue cup.")]) is not None
    assert about_to_move(memory, [TAKEN]) is None
    assert about_to_move(memory, [NOT_THERE]) is not None  # what failed has changed nothing


def test_the_number_of_a_thing_tells_it_from_others_of_its_kind(memory: CascadeMemory):
    fail(memory, Step("pick up blue cup 1", "You have it."), REFUSED)
    assert about_to_move(memory, [Step("pick up blue cup 1", "You have it.")]) is not None
    assert about_to_move(memory, [Step("pick up blue cup 2", "You have it.")]) is None


def test_the_same_holds_for_calls_of_tools(memory: CascadeMemory):
    def done(tool: str, **arguments: object) -> Step:
        return Step(tool=tool, arguments=arguments, observation="Done.")

    refused = Step(tool="move", arguments={"what": "blue cup", "where": "box"}, observation="400 Bad Request", failed=True)
    fail(memory, done("look", what="blue cup"), refused)
    ask = {"tool": "move", "arguments": {"what": "blue cup", "where": "box"}}
    for new in (done("look", what="blue cup"), done("look", what="plate")):
        assert memory.warnings.check(memory.recall(TASK).episode_id, done=[new], **ask) is not None  # type: ignore[arg-type]
    assert memory.warnings.check(memory.recall(TASK).episode_id, done=[done("take", what="blue cup")], **ask) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "steps",
    [
        [REFUSED, REFUSED],
        [Step("move blue cup 1 to box", NOTHING_SAID, failed=True), Step("move blue cup 2 to box", NOTHING_SAID, failed=True)],
        [REFUSED, Step("open door", NOTHING_SAID, failed=True), REFUSED],
    ],
)
def test_who_tries_the_same_again_has_not_failed_at_anything_else_before(memory: CascadeMemory, steps: list[Step]):
    fail(memory, *steps)
    assert about_to_move(memory, []) is not None


def test_a_call_that_is_only_written_out_is_the_same_step(memory: CascadeMemory):
    fail(memory, Step(tool="pick", arguments={"what": "blue cup"}, observation="Failed.", failed=True), REFUSED)
    assert about_to_move(memory, [Step('pick({"what": "blue cup"})', "Failed.", tool="pick", failed=True)]) is not None


def test_one_run_in_which_nothing_else_had_failed_is_enough(memory: CascadeMemory):
    fail(memory, NOT_THERE, REFUSED)
    assert about_to_move(memory, [TAKEN]) is None
    fail(memory, TAKEN, REFUSED)
    assert about_to_move(memory, [TAKEN]) is not None


def test_a_message_that_names_what_was_wrong_needs_no_earlier_failure(memory: CascadeMemory):
    fail(memory, NOT_THERE, Step("move blue cup to box", "There is no blue cup here.", failed=True))
    assert about_to_move(memory, [TAKEN]) is not None


def test_numbers_and_the_tool_are_compared_as_in_a_mistake(memory: CascadeMemory):
    fail(memory, Step(tool="pick", arguments={"what": "blue cup 2"}, observation="Failed.", failed=True), REFUSED)
    assert about_to_move(memory, [Step("blue cup 7", "Failed.", failed=True)]) is None
    picked = Step(tool="pick", arguments={"what": "blue cup 7"}, observation="Failed.", failed=True)
    assert about_to_move(memory, [picked]) is not None


def test_the_steps_are_asked_for_only_if_they_count(memory: CascadeMemory):
    asked: list[str] = []

    def done() -> Sequence[Step]:
        asked.append("done")
        return [TAKEN]

    fail(memory, NOT_THERE, REFUSED)
    assert memory.warnings.check(memory.recall(TASK).episode_id, "wash the blue cup", done=done) is None
    assert asked == []
    assert memory.warnings.check(memory.recall(TASK).episode_id, "move blue cup to box", done=done) is None
    assert asked == ["done"]


def test_if_it_is_not_known_after_all_the_agent_is_warned(memory: CascadeMemory):
    fail(memory, NOT_THERE, REFUSED)
    assert memory.warnings.check(memory.recall(TASK).episode_id, "move blue cup to box", done=lambda: None) is not None


def test_a_function_that_fails_costs_the_warning_and_nothing_else(memory: CascadeMemory):
    def done() -> Sequence[Step]:
        raise RuntimeError("no such state")

    fail(memory, NOT_THERE, REFUSED)
    assert memory.warnings.check(memory.recall(TASK).episode_id, "move blue cup to box", done=done) is None
    assert memory.health().failures == {"check": 1}


@pytest.mark.parametrize(
    "done", ["pick up blue cup", [{"action": "pick up blue cup"}], {"pick up blue cup": True}, 3, [TAKEN, None]]
)
def test_what_is_no_list_of_steps_is_refused(memory: CascadeMemory, done: object):
    with pytest.raises(InvalidInput, match="done must be the steps of this run so far"):
        memory.warnings.check(memory.recall(TASK).episode_id, "move blue cup to box", done=done)  # type: ignore[arg-type]


def test_a_run_that_was_forgotten_explains_nothing_and_is_not_warned_of(memory: CascadeMemory):
    episode_id = fail(memory, NOT_THERE, REFUSED)
    assert about_to_move(memory, [NOT_THERE]) is not None
    memory.forget(episode_id=episode_id)
    assert about_to_move(memory, [NOT_THERE]) is None
    assert memory.warnings.all() == []


async def test_the_same_holds_without_blocking(memory: CascadeMemory):
    fail(memory, NOT_THERE, REFUSED)
    assert await memory.warnings.acheck(memory.recall(TASK).episode_id, "move blue cup to box", done=[TAKEN]) is None
    assert await memory.warnings.acheck(memory.recall(TASK).episode_id, "move blue cup to box", done=[NOT_THERE]) is not None


def test_a_long_run_costs_no_warning(memory: CascadeMemory):
    fail(memory, NOT_THERE, REFUSED)
    long = [Step(f"say {number}", "x" * 9_000, thought="y" * 9_000) for number in range(300)]
    thought_only = Step(thought="nothing to do")
    assert about_to_move(memory, [*long, thought_only, NOT_THERE]) is not None
    assert memory.health().failures == {}


def test_what_is_locked_stays_locked_whatever_is_done_in_between():
    locked = WarningOptions(lock=True)
    with CascadeMemory(embedder="hashing", learn="inline", warnings=locked) as memory:
        fail(memory, REFUSED)
        episode_id = memory.recall(TASK).episode_id
        for done in ([], [NOT_THERE], [TAKEN]):
            advice = memory.warnings.check(episode_id, REFUSED.action, done=done)
            assert advice is not None
            assert advice.locked
        assert memory.warnings.check(memory.recall(TASK).episode_id, REFUSED.action, done=[TAKEN]) is None


def test_words_that_only_name_the_arguments_of_a_call_are_not_shared(memory: CascadeMemory):
    fail(memory, Step(tool="move", arguments={"what": "cup", "where": "box"}, observation="400 Bad Request", failed=True))
    looked = Step('look({"what": "plate", "where": "shelf"})', "A plate.", tool="look")
    asked = {"what": "cup", "where": "box"}
    assert memory.warnings.check(memory.recall(TASK).episode_id, tool="move", arguments=asked, done=[looked]) is not None

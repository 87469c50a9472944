"""A failure of the memory is one line, at the line of the caller where there is one; its traceback is for DEBUG."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as memory:

        def fail(*_: object, **__: object) -> object:
            raise OSError("out of order")

        monkeypatch.setattr(engine_of(memory), "embed", fail)
        yield memory


def _levels(caplog: pytest.LogCaptureFixture, least: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= least]


def test_a_failed_recall_is_one_warning_at_the_line_of_the_caller(broken: CascadeMemory, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "cascade_memory")
    calls = [lambda: broken.recall("cool some mug"), lambda: broken.cases.search("cool some mug")]
    for call in [*calls, lambda: broken.episode("cool some mug").recall]:
        with pytest.warns(RuntimeWarning, match="could not recall") as warned:
            call()
        assert [one.filename for one in warned] == [__file__]
    assert _levels(caplog, logging.WARNING) == []
    assert _levels(caplog, logging.INFO) == ["recall failed (OSError: out of order); see memory.health()"] * 3
    assert "Traceback" not in caplog.text


async def test_so_it_is_in_an_event_loop(broken: CascadeMemory):
    with pytest.warns(RuntimeWarning, match="could not recall") as warned:
        await asyncio.create_task(_recalled_twice(broken))
    assert [one.filename for one in warned] == [__file__] * 2


async def _recalled_twice(memory: CascadeMemory) -> None:
    await memory.arecall("cool some mug")
    async with memory.episode("cool some mug"):
        pass


def test_what_stands_between_the_caller_and_this_package_is_not_named(broken: CascadeMemory):
    stack = contextlib.ExitStack()
    stack.callback(broken.recall, "cool some mug")
    with pytest.warns(RuntimeWarning) as warned:
        stack.close()
    assert warned[0].filename == __file__


def test_the_traceback_is_for_debug(broken: CascadeMemory, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "cascade_memory")
    with pytest.warns(RuntimeWarning):
        broken.recall("cool some mug")
    (record,) = [one for one in caplog.records if "Traceback" in one.getMessage()]
    assert record.levelno == logging.DEBUG


@pytest.mark.parametrize(("what", "step"), [("encode", "rank"), ("learn", "learn")])
def test_a_failure_that_no_caller_sees_is_one_line_of_the_log(
    what: str, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.add("cool some mug", "put it into the fridge")
        state = engine_of(memory).namespace_state("default")

        def fail(*_: object, **__: object) -> object:
            raise OSError("out of order")

        monkeypatch.setattr(state.learner.encoder if what == "encode" else state, what, fail)
        recall = memory.recall("cool some mug")
        if what == "learn":
            memory.reward(recall.episode_id, 1.0)
        monkeypatch.undo()
        assert set(_levels(caplog, logging.WARNING)) == {f"{step} failed (OSError: out of order); see memory.health()"}
        assert "Traceback" not in caplog.text
        assert memory.health().failures[step] > 0

"""The handler that learns when a run ends: LlamaIndex tells it of every span, on whatever thread the span is."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr
from workflows import Workflow
from workflows.errors import WorkflowCancelledByUser

from cascade_memory.domain.trajectory import Solution
from cascade_memory.llama_index.runs import Run, Runs
from cascade_memory.llama_index.trajectory import is_streamed, solution_in
from cascade_memory.runs.failing_open import fail_open
from cascade_memory.runs.run_end_worker import RunEndWorker

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


class CascadeSpanHandler(BaseSpanHandler[BaseSpan]):
    """Ends the episode of a run when its outermost span ends. What fails in here is counted, and never reaches the agent."""

    _memory: Memory = PrivateAttr()
    _runs: Runs = PrivateAttr()
    _own_tools: Collection[str] = PrivateAttr()
    _aftermath: RunEndWorker = PrivateAttr()

    def __init__(self, memory: Memory, runs: Runs, own_tools: Collection[str]) -> None:
        super().__init__()
        self._memory, self._runs, self._own_tools = memory, runs, own_tools
        self._aftermath = RunEndWorker(memory)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex knows it."""
        return "CascadeSpanHandler"

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **_: Any,
    ) -> BaseSpan | None:
        """Note a span; nothing is stored in LlamaIndex's own lists, which are never emptied."""
        with fail_open(self._memory, "callback"):
            self._runs.enter(id_, parent_span_id, instance)
        return None

    def prepare_to_exit_span(
        self, id_: str, bound_args: inspect.BoundArguments, instance: Any = None, result: Any = None, **_: Any
    ) -> BaseSpan | None:
        """End the episode if this was the outermost run; a workflow that ends without a word was cancelled."""
        self._ended(id_, "cancelled" if result is None and isinstance(instance, Workflow) else "ok", result)
        return None

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        err: BaseException | None = None,
        **_: Any,
    ) -> BaseSpan | None:
        """End the episode if this was the outermost run: it raised, ran out of time or of steps, or was thrown away."""
        self._ended(id_, status_of(err), None)
        return None

    def _ended(self, span_id: str, status: str, result: Any) -> None:
        with fail_open(self._memory, "callback"):
            run = self._runs.leave(span_id)
            if run is not None and run.asked:
                self._aftermath.do(functools.partial(self._close, run, status, result))

    def _close(self, run: Run, status: str, result: Any) -> None:
        found = self._memory.get_episode(run.episode_id)
        if found is None or not found.under_way:
            return
        close(self._memory, run.episode_id, status, result, self._own_tools)

    def drain(self) -> None:
        """Wait until every run that has ended was dealt with."""
        self._aftermath.drain()

    def install(self) -> None:
        """Listen to every run of this process; doing it twice is doing it once."""
        handlers = get_dispatcher().span_handlers
        if not any(one is self for one in handlers):
            handlers.append(self)

    def uninstall(self) -> None:
        """Stop listening. Runs that are under way are not followed to their end."""
        self._runs.clear()
        handlers = get_dispatcher().span_handlers
        handlers[:] = [one for one in handlers if one is not self]


def close(memory: Memory, episode_id: str, status: str, result: Any, own_tools: Collection[str]) -> None:
    """End an episode; one whose answer nobody can tell yet, or ever, is not judged: it waits for a reward."""
    solution, told = told_by(memory, result, own_tools)
    if told or status != "ok":
        memory.end(episode_id, solution=solution, status=status)
    else:
        memory.finish(episode_id)


def told_by(memory: Memory, result: Any, own_tools: Collection[str]) -> tuple[Solution | None, bool]:
    """Return the solution that a result tells, and whether it tells at all: streams and what we cannot read do not."""
    with fail_open(memory, "callback"):
        if not is_streamed(result):
            return solution_in(result, own_tools), True
    return None, False


def status_of(error: BaseException | None) -> str:
    """Return what an exception says of a run: an error may be judged, a run that was thrown away may not."""
    stopped = (asyncio.CancelledError, GeneratorExit, WorkflowCancelledByUser)
    thrown_away = isinstance(error, stopped) or not isinstance(error, Exception)
    return "cancelled" if thrown_away else "error"

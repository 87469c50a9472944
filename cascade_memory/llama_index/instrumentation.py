"""The span handler that notices the end of a run. LlamaIndex calls it for every span, on the span's thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.base import BaseLLM
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr
from workflows import Workflow
from workflows.errors import WorkflowCancelledByUser

from cascade_memory.domain.trajectory import Solution
from cascade_memory.llama_index.runs import Run, Runs
from cascade_memory.llama_index.trajectory import grown, is_streamed, model_in, name_of_model, solution_in
from cascade_memory.runs.ending import RunEndWorker, answered, fail_open, status_of

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


class CascadeSpanHandler(BaseSpanHandler[BaseSpan]):
    """Ends the episode of a run when its outermost span ends. It fails open: errors are counted and never reach the agent."""

    _memory: Memory = PrivateAttr()
    _runs: Runs = PrivateAttr()
    _own_tools: Collection[str] = PrivateAttr()
    _run_ends: RunEndWorker = PrivateAttr()

    def __init__(self, memory: Memory, runs: Runs, own_tools: Collection[str]) -> None:
        super().__init__()
        self._memory, self._runs, self._own_tools = memory, runs, own_tools
        self._run_ends = RunEndWorker(memory)

    @classmethod
    def class_name(cls) -> str:
        """Return the handler's name in LlamaIndex."""
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
        """Note a span, but do not store it in LlamaIndex's own lists, which are never emptied."""
        with fail_open(self._memory, "callback"):
            self._runs.enter(id_, parent_span_id, instance)
        return None

    def prepare_to_exit_span(
        self, id_: str, bound_args: inspect.BoundArguments, instance: Any = None, result: Any = None, **_: Any
    ) -> BaseSpan | None:
        """End the episode if this was the outermost run; a workflow that ends without a result was cancelled."""
        if isinstance(instance, BaseLLM):
            with fail_open(self._memory, "callback"):
                self._runs.answered(id_, instance, model_in(result))
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
        """End the episode if this was the outermost run: it raised, exceeded its time or steps, or was abandoned."""
        self._ended(id_, status_of(err, WorkflowCancelledByUser), None)
        return None

    def _ended(self, span_id: str, status: str, result: Any) -> None:
        with fail_open(self._memory, "callback"):
            run = self._runs.leave(span_id, well=status == "ok")
            if run is None:
                return
            # From now on, a recall that is still under way opens no episode.
            run.asker.leave(undo=status == "cancelled")
            if run.asked:
                self._run_ends.do(functools.partial(self._close, run, status, result), aside=status == "cancelled")
            elif run.goes_on is not None and status == "ok":
                self._run_ends.do(functools.partial(self._close_again, run.goes_on, result))

    def _close(self, run: Run, status: str, result: Any) -> None:
        found = self._memory.episodes.get(run.episode_id)
        if found is None or not found.under_way:
            return
        answered(self._memory, run.episode_id, model_in(result) or run.model or name_of_model(run.llm))
        close(self._memory, run.episode_id, status, result, self._own_tools)

    def _close_again(self, episode_id: str, result: Any) -> None:
        """Record the longer solution of an episode after a later run has gone on with its task."""
        found = self._memory.episodes.get(episode_id)
        later, readable = read_solution(self._memory, result, self._own_tools)
        if found is not None and readable and later is not None:
            self._memory.end(episode_id, solution=grown(found.solution, later), follow_up=True)

    def drain(self) -> None:
        """Wait until the episodes of all ended runs are processed."""
        self._run_ends.drain()

    def install(self) -> None:
        """Listen to all runs of this process; calling this again has no effect."""
        handlers = get_dispatcher().span_handlers
        if not any(one is self for one in handlers):
            handlers.append(self)

    def uninstall(self) -> None:
        """Stop listening. The end of runs that are still going on is not noticed."""
        self._runs.clear()
        handlers = get_dispatcher().span_handlers
        handlers[:] = [one for one in handlers if one is not self]


def close(memory: Memory, episode_id: str, status: str, result: Any, own_tools: Collection[str]) -> None:
    """End an episode.

    If the run went well, but its result is a stream or cannot be read, the episode is not judged and waits for a reward.
    """
    solution, readable = read_solution(memory, result, own_tools)
    if readable or status != "ok":
        memory.end(episode_id, solution=solution, status=status)
    else:
        memory.episodes.finish(episode_id)


def read_solution(memory: Memory, result: Any, own_tools: Collection[str]) -> tuple[Solution | None, bool]:
    """Return the solution in a result, and True; (None, False) if the result is a stream or cannot be read."""
    with fail_open(memory, "callback"):
        if not is_streamed(result):
            return solution_in(result, own_tools), True
    return None, False

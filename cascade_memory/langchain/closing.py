"""Ends an episode when its outermost run ends, and resumes it when an interrupted run goes on.

LangChain reports a stream that was cut off as a normal end, since it catches ``GeneratorExit`` itself. Here this is noticed.
"""

from __future__ import annotations

import functools
import gc
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cascade_memory.domain.trajectory import Solution, Step, Trajectory
from cascade_memory.domain.transcript import as_solution, tool_step
from cascade_memory.langchain.messages import answer_in, messages_in, since, solution_in
from cascade_memory.langchain.run_tree import Root, ToolCall
from cascade_memory.runs.ending import RunEndWorker, fail_open

if TYPE_CHECKING:
    from cascade_memory.memory.episodes import Episodes
    from cascade_memory.memory.memory import Memory

_MAX_PARKED = 1024
_NEAR = 16  # calls between LangChain's function and the handler are fewer
_STREAMS = ("langchain_core.runnables.base", "_transform_stream_with_config")  # the function that reports the end


class Closing:
    """Pauses and resumes episodes, and ends them.

    Work at the end of a run is done on a worker thread if it would block an event loop or if the run was cancelled; otherwise
    it is done at once.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._own = memory, memory.episodes
        self._run_ends = RunEndWorker(memory)
        self._parked: OrderedDict[str, list[ToolCall]] = OrderedDict()  # steps done before an interrupt, by episode

    def take_up(self, root: Root, *, resumes: bool) -> None:
        """Resume this conversation's interrupted episode, if any; without ``resumes`` (for a new task), discard it."""
        assert root.thread_id is not None
        found = self._memory.episodes.latest(root.thread_id)
        if found is None or found.status != "open" or found.ended != "interrupted":
            return
        if resumes and not root.opened:
            root.episode_id, root.opened = found.id, True
            root.calls = self._parked.pop(found.id, [])
        elif not resumes:
            self._parked.pop(found.id, None)
            self._memory.episodes.discard(found.id)

    def pause(self, root: Root) -> None:
        """Mark the run's episodes as interrupted at once: the run may be resumed before its end is reported."""
        if not root.over and root.block is None and (root.opened or root.adopted):
            self._pause(root)

    def _pause(self, root: Root) -> None:
        for episode_id, namespace in root.adopted:
            self._interrupt(episode_id, namespace)
        if root.opened and root.block is None:
            self._park(root)

    def close(self, root: Root, status: str, outputs: Any) -> None:
        """Process an outermost run that has ended or that waits for a person.

        ``status`` is "ok", "error" or "cancelled". The end is processed on a worker thread if this thread runs an event loop or
        if the run was cancelled.
        """
        waits = root.interrupted and status == "ok"
        if not waits:  # from now on, a recall that is still under way opens no episode
            root.asker.leave(undo=status == "cancelled")
        if root.block is not None:  # the user's block ends next and needs the solution
            self._hand_over(root, status, outputs)
        if not (root.opened or root.adopted):
            return
        if waits:  # this must be recorded before it returns
            self._pause(root)
            return
        self._run_ends.do(functools.partial(self._close, root, status, outputs), aside=status == "cancelled")

    def _close(self, root: Root, status: str, outputs: Any) -> None:
        for episode_id, namespace in root.adopted:
            if status == "ok":  # the middleware should have ended it; if not, the outcome is unknown
                self._end(episode_id, "cancelled", None, namespace)
            else:  # what was done so far may say why it failed
                done = self._solution(root, None) if episode_id == root.main else None
                self._end(episode_id, status, done, namespace)
        if root.opened and root.block is None:
            self._end(root.episode_id, status, self._solution(root, outputs), None)

    def _solution(self, root: Root, outputs: Any) -> Solution | None:
        with fail_open(self._memory, "callback"):  # the episode ends even if its solution cannot be read
            return solution_of(root, outputs)
        return None

    def _hand_over(self, root: Root, status: str, outputs: Any) -> None:
        if root.block is not None and status == "ok":
            root.block.interrupted = root.interrupted
            if not root.interrupted:
                root.block.watched(self._solution(root, outputs))

    def _end(self, episode_id: str, status: str, solution: Solution | None, namespace: str | None) -> None:
        episodes = self._episodes(namespace)
        found = episodes.get(episode_id)
        if found is not None and found.under_way:
            episodes.conclude(found, solution=solution, status=status)

    def _episodes(self, namespace: str | None) -> Episodes:
        return self._own if namespace is None else self._memory.acting(namespace=namespace).episodes

    def _interrupt(self, episode_id: str, namespace: str | None) -> None:
        episodes = self._episodes(namespace)
        found = episodes.get(episode_id)
        if found is not None and found.ended is None:
            episodes.finish(episode_id, status="interrupted")

    def _park(self, root: Root) -> None:
        self._interrupt(root.episode_id, None)
        self._parked[root.episode_id] = root.calls
        while len(self._parked) > _MAX_PARKED:
            self._parked.popitem(last=False)

    def drain(self) -> None:
        """Wait until every run that has ended is processed."""
        self._run_ends.drain()


def solution_of(root: Root, outputs: Any) -> Solution | None:
    """Return the solution of an outermost run: from the watched runs or from its messages, whichever has more steps."""
    watched = [_step(call) for call in root.calls if not call.own]
    messages = messages_in(outputs)
    if not messages:
        return as_solution(watched, answer_in(outputs))
    from_messages = solution_in(since(messages, None), root.own_calls, outputs)
    if isinstance(from_messages, Trajectory):
        return from_messages if len(from_messages.steps) >= len(watched) else as_solution(watched, from_messages.answer)
    return as_solution(watched, from_messages or "")


def _step(call: ToolCall) -> Step:
    return tool_step(call.name, call.arguments, observation=call.observation, thought=call.thought, failed=call.failed)


class _Collector:
    """Knows on which thread the garbage collector runs at the moment; ``thread`` is None while it does not run."""

    thread: int | None = None

    def __call__(self, phase: str, _: object, ident: Callable[[], int] = threading.get_ident) -> None:
        self.thread = ident() if phase == "start" else None


_collector = _Collector()
gc.callbacks.append(_collector)


def was_cut_off(root: Root) -> bool:
    """Say whether the run that is just reporting its end is a stream whose reader stopped early; call this during the report.

    LangChain reads a stream from a generator. If the stream was read to its end, the generator has ended as well. If the reader
    stopped early, the generator is still suspended after the last part that was read. The garbage collector may have closed the
    generator by then. But it collects only streams that nobody reads any more, so a run that ends on the collector's thread was
    cut off, too.
    """
    found = _read_from(root)
    return inspect.isgenerator(found) and (found.gi_frame is not None or _collector.thread == threading.get_ident())


def _read_from(root: Root) -> Any:
    """Return the iterator from which LangChain reads the stream of this run; None if the run is no stream."""
    frame = inspect.currentframe()
    for _ in range(_NEAR):
        frame = None if frame is None else frame.f_back
        if frame is None:
            break
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == _STREAMS:
            seen = frame.f_locals
            if getattr(seen.get("run_manager"), "run_id", None) == root.run_id:
                return seen.get("iterator")
    return None

"""What happens to an episode when its outermost run begins or ends."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from cascade_memory.domain.trajectory import Solution, Step, Trajectory
from cascade_memory.langchain.counted import counted
from cascade_memory.langchain.messages import answer_in, made, messages_in, since, solution_in, tool_step
from cascade_memory.langchain.run_tree import Root, ToolCall

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory

_MAX_PARKED = 1024
_PATIENCE = 60.0  # seconds

_closing: ContextVar[bool] = ContextVar("cascade_memory_closing", default=False)  # what a reward_fn calls must not wait for it


class Closing:
    """Ends, parks and takes up episodes: at once, or on a worker where an event loop must not be held up."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()
        self._parked: OrderedDict[str, list[ToolCall]] = OrderedDict()  # steps done before an interrupt, by episode

    def take_up(self, root: Root, *, resumes: bool) -> None:
        """Go on with the interrupted episode of this conversation; or, if something new was asked, let go of it."""
        assert root.thread_id is not None
        found = self._memory.latest(root.thread_id)
        if found is None or found.status != "open" or found.ended != "interrupted":
            return
        if resumes and not root.opened:
            root.episode_id, root.opened = found.id, True
            root.calls = self._parked.pop(found.id, [])
        elif not resumes:
            self._parked.pop(found.id, None)
            self._memory.discard(found.id)

    def close(self, root: Root, status: str, outputs: Any) -> None:
        """Deal with a run that has ended; on a worker if this thread drives an event loop."""
        if root.block is not None:  # the user's block is about to end: it must find the solution there
            self._hand_over(root, status, outputs)
        if not (root.opened or root.adopted):
            return
        # That a run waits must be written down before this returns: it may be resumed the next moment.
        if not _on_a_loop() or (root.interrupted and status == "ok"):
            self._close(root, status, outputs)
            return
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(4, thread_name_prefix="cascade-memory-closing")
            future = self._worker.submit(contextvars.copy_context().run, self._guarded, root, status, outputs)
            self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

    def _guarded(self, root: Root, status: str, outputs: Any) -> None:
        _closing.set(True)
        with counted(self._memory, "callback"):  # nobody waits for this
            self._close(root, status, outputs)

    def _close(self, root: Root, status: str, outputs: Any) -> None:
        waits = root.interrupted and status == "ok"
        for episode_id, namespace in root.adopted:
            if waits:
                self._interrupt(episode_id, namespace)
            else:  # it should have ended itself; if it did not, nobody knows how it went
                self._end(episode_id, "cancelled" if status == "ok" else status, None, namespace)
        if root.block is not None or not root.opened:
            return
        if waits:
            self._park(root)
        else:
            self._end(root.episode_id, status, self._told(root, outputs), None)

    def _told(self, root: Root, outputs: Any) -> Solution | None:
        with counted(self._memory, "callback"):  # an episode whose solution cannot be told ends all the same
            return solution_of(root, outputs)
        return None

    def _hand_over(self, root: Root, status: str, outputs: Any) -> None:
        if root.block is not None and status == "ok":
            root.block.interrupted = root.interrupted
            if not root.interrupted:
                root.block.watched(self._told(root, outputs))

    def _end(self, episode_id: str, status: str, solution: Solution | None, namespace: str | None) -> None:
        found = self._memory.get_episode(episode_id, namespace=namespace)
        if found is not None and found.under_way:
            self._memory.end(episode_id, solution=solution, status=status, namespace=namespace)

    def _interrupt(self, episode_id: str, namespace: str | None) -> None:
        found = self._memory.get_episode(episode_id, namespace=namespace)
        if found is not None and found.ended is None:
            self._memory.finish(episode_id, status="interrupted", namespace=namespace)

    def _park(self, root: Root) -> None:
        self._interrupt(root.episode_id, None)
        self._parked[root.episode_id] = root.calls
        while len(self._parked) > _MAX_PARKED:
            self._parked.popitem(last=False)

    def drain(self) -> None:
        """Wait for the workers, but for no longer than a verdict may reasonably take; not at all from within a verdict."""
        if not _closing.get():
            wait(list(self._under_way), timeout=_PATIENCE)


def abandon(memory: Memory, episode_id: str, namespace: str | None = None) -> None:
    """Censor the episode of a run that never came to its end: something else was asked in the meantime."""
    found = memory.get_episode(episode_id, namespace=namespace)
    if found is not None and found.under_way:
        memory.discard(episode_id, namespace=namespace)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def solution_of(root: Root, outputs: Any) -> Solution | None:
    """Return what was done below a root and what it answered; the fuller of what was watched and what the messages tell."""
    watched = [_step(call) for call in root.calls if not call.own]
    messages = messages_in(outputs)
    if not messages:
        return made(watched, answer_in(outputs))
    told = solution_in(since(messages, None), root.own_calls, outputs)
    if isinstance(told, Trajectory):
        return told if len(told.steps) >= len(watched) else made(watched, told.answer)
    return made(watched, told or "")


def _step(call: ToolCall) -> Step:
    return tool_step(call.name, call.arguments, observation=call.observation, thought=call.thought, failed=call.failed)

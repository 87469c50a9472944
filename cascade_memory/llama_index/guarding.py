"""Warns an agent before a tool runs: the warning takes the place of the tool's output. If the agent insists, the tool runs.

What guarded tools did is noted, since LlamaIndex does not tell a tool what was done before its call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolMetadata, ToolOutput, adapt_to_async_tool

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.trajectory import Step
from cascade_memory.domain.transcript import tool_step
from cascade_memory.runs.ending import fail_open

if TYPE_CHECKING:
    from cascade_memory.capabilities.warnings.verbs import Warnings
    from cascade_memory.domain.failure_warning import Advice
    from cascade_memory.memory.memory import Memory

_EPISODES = 256  # whose steps are noted
_STEPS = 100  # that are noted of an episode, the latest ones
_CHARS = 100_000  # of the actions of an episode


class NotedSteps:
    """The latest steps of the latest episodes; ``Guard`` notes them without what the tools returned.

    >>> steps = NotedSteps()
    >>> steps.note("e1", Step("go north", "There is no way.", failed=True))
    >>> [step.action for step in steps.of("e1")], steps.of("e2")
    (['go north'], [])
    """

    def __init__(self) -> None:
        self._steps: OrderedDict[str, deque[Step]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, episode_id: str, step: Step) -> None:
        """Add a step to those of an episode."""
        with self._lock:
            found = self._steps[episode_id] = self._steps.pop(episode_id, deque(maxlen=_STEPS))
            found.append(step)
            while len(found) > 1 and sum(len(one.action) for one in found) > _CHARS:
                found.popleft()
            if len(self._steps) > _EPISODES:
                self._steps.popitem(last=False)

    def of(self, episode_id: str) -> Sequence[Step]:
        """Return the latest steps of an episode, oldest first."""
        with self._lock:
            return list(self._steps.get(episode_id, ()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._steps.clear()


# The episode of the running code and its namespace; None if no case was recalled there.
Here: TypeAlias = Callable[[], "tuple[str, str | None] | None"]


class _Asked(NamedTuple):
    """A question about a tool call, and the warnings of the episode's namespace, which can answer it."""

    warnings: Warnings | None  # of the namespace of the episode; None if the package comes without that capability
    episode_id: str
    question: dict[str, Any]  # the tool, its arguments, and what was done before


class Guard:
    """Asks the memory about tool calls, and notes the calls and whether they failed. If the memory fails, the tools run."""

    def __init__(self, memory: Memory, here: Here, noted: NotedSteps, own_tools: Collection[str]) -> None:
        self._memory, self._here, self._noted, self._own_tools = memory, here, noted, own_tools

    def call(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput:
        """Return the warning if the call is a known mistake; otherwise call the tool."""
        asked = self._asked(tool, args, kwargs)
        with fail_open(self._memory, "check"):
            if asked is not None and asked.warnings is not None:
                advice = asked.warnings.check(asked.episode_id, **asked.question)
                if advice is not None:
                    return _output(asked, advice)
        with self._noting(asked) as output:
            output.append(tool(*args, **kwargs))
        return output[0]

    async def acall(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput:
        """Do what ``call`` does, without blocking the event loop."""
        asked = self._asked(tool, args, kwargs)
        with fail_open(self._memory, "check"):
            if asked is not None and asked.warnings is not None:
                advice = await asked.warnings.acheck(asked.episode_id, **asked.question)
                if advice is not None:
                    return _output(asked, advice)
        with self._noting(asked) as output:
            output.append(await adapt_to_async_tool(tool).acall(*args, **kwargs))
        return output[0]

    def _asked(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Asked | None:
        """Return the warnings of the episode's namespace, and what to pass to their ``check``; None if there is no episode."""
        with fail_open(self._memory, "check"):
            if (found := self._here()) is not None:
                episode_id, namespace = found
                done = partial(self._noted.of, episode_id)
                warnings = getattr(self._memory.acting(namespace=namespace), "warnings", None)
                return _Asked(warnings, episode_id, {"done": done, **_question(tool, args, kwargs)})
        return None

    @interruptible
    def _noting(self, asked: _Asked | None) -> Generator[list[ToolOutput], None, None]:
        """Within a ``with`` block that makes a call, note the call and whether it failed.

        The block gets an empty list, and puts the output of the call into it. An exception of the call is raised again.
        """
        step, output = None, list[ToolOutput]()
        with fail_open(self._memory, "check"):
            if asked is not None and asked.question["tool"] not in self._own_tools:
                step = tool_step(
                    asked.question["tool"], asked.question["arguments"], observation=""
                )  # a call may change its arguments
        try:
            yield output
        except Exception as error:
            self._note(asked, step, error)
            raise
        self._note(asked, step, output[0])

    def _note(self, asked: _Asked | None, step: Step | None, came: object) -> None:
        with fail_open(self._memory, "check"):
            if asked is None or step is None or _only_waits(came):
                return
            failed = isinstance(came, Exception) or getattr(came, "is_error", False) is True
            self._noted.note(asked.episode_id, replace(step, failed=failed))


def _only_waits(came: object) -> bool:
    """Return True if a call raised only because its tool waits for a person: then the tool is called again later."""
    return isinstance(came, Exception) and any(one.__name__ == "WaitingForEvent" for one in type(came).__mro__)


def _question(tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``warnings.check`` for a call: the tool's name, and the arguments that the model gave."""
    names = list(tool.metadata.get_parameters_dict().get("properties", {})) if args else []
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    given.pop(getattr(tool, "ctx_param_name", None) or "", None)
    return {"tool": tool.metadata.get_name(), "arguments": given}


def _output(asked: _Asked, advice: Advice) -> ToolOutput:
    name, given = str(asked.question["tool"]), dict(asked.question["arguments"])
    return ToolOutput(content=advice.text, tool_name=name, raw_input=given, raw_output=advice.text, is_error=True)


class GuardedFunction(FunctionTool):
    """A function tool that checks each call for a known mistake before it runs.

    Agents still pass their context if the function takes one.
    """

    def __init__(self, inner: FunctionTool, guard: Guard) -> None:
        vars(self).update(vars(inner))  # what agents read of it; its own constructor would read the function's signature again
        self._inner, self._guard = inner, guard

    @property
    def metadata(self) -> ToolMetadata:
        """The metadata of the wrapped tool, unchanged."""
        return self._inner.metadata

    def __call__(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what ``call`` does."""
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Return the warning if the call is a known mistake; otherwise run the function."""
        return self._guard.call(self._inner, args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what ``call`` does, without blocking the event loop."""
        return await self._guard.acall(self._inner, args, kwargs)


class GuardedTool(AsyncBaseTool):
    """A wrapper for any other kind of tool: it checks each call as ``GuardedFunction`` does, and has the tool's attributes."""

    def __init__(self, inner: BaseTool, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    @property
    def metadata(self) -> ToolMetadata:
        """The metadata of the wrapped tool, unchanged."""
        return self._inner.metadata

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Return the warning if the call is a known mistake; otherwise call the wrapped tool."""
        return self._guard.call(self._inner, args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what ``call`` does, without blocking the event loop."""
        return await self._guard.acall(self._inner, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped tool."""
        inner = vars(self).get("_inner")
        if inner is None:  # it is being copied
            raise AttributeError(name)
        return getattr(inner, name)


def guarded(tool: BaseTool | Callable[..., Any], guard: Guard) -> BaseTool:
    """Wrap a tool with a guard; make a function a tool first."""
    if not isinstance(tool, BaseTool):
        tool = FunctionTool.from_defaults(tool)
    return GuardedFunction(tool, guard) if isinstance(tool, FunctionTool) else GuardedTool(tool, guard)

"""Warns an agent before a tool runs: the warning takes the place of the tool's output. If the agent insists, the tool runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolMetadata, ToolOutput, adapt_to_async_tool

from cascade_memory.domain.transcript import tool_step
from cascade_memory.llama_index.steps_so_far import StepsSoFar
from cascade_memory.runs.failing_open import fail_open

if TYPE_CHECKING:
    from cascade_memory.domain.failure_warning import Advice
    from cascade_memory.memory.memory import Memory

# The episode of the running code and its namespace; None if no case was recalled there.
Here: TypeAlias = Callable[[], "tuple[str, str | None] | None"]


class Guard:
    """Asks the memory about tool calls, and notes what came of them. A failing memory warns of nothing."""

    def __init__(self, memory: Memory, here: Here, steps: StepsSoFar) -> None:
        self._memory, self._here, self._steps = memory, here, steps

    def call(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput:
        """Warn, or call the tool."""
        asked = self._asked(tool, args, kwargs)
        with fail_open(self._memory, "check"):
            if asked is not None and (advice := self._memory.check(**asked)) is not None:
                return _output(asked, advice)
        try:
            output = tool(*args, **kwargs)
        except Exception as error:
            self._note(asked, error)
            raise
        self._note(asked, output)
        return output

    async def acall(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput:
        """Do the same without blocking the event loop."""
        asked = self._asked(tool, args, kwargs)
        with fail_open(self._memory, "check"):
            if asked is not None and (advice := await self._memory.acheck(**asked)) is not None:
                return _output(asked, advice)
        try:
            output = await adapt_to_async_tool(tool).acall(*args, **kwargs)
        except Exception as error:
            self._note(asked, error)
            raise
        self._note(asked, output)
        return output

    def _asked(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what is asked about a call; None outside of an episode."""
        with fail_open(self._memory, "check"):
            if (found := self._here()) is not None:
                done = partial(self._steps.of, found[0])
                return {"episode_id": found[0], "namespace": found[1], "done": done, **_question(tool, args, kwargs)}
        return None

    def _note(self, asked: Mapping[str, Any] | None, came: ToolOutput | Exception) -> None:
        """Note what came of a call, unless the workflow has ended it: a tool that waits for a person is called again."""
        if asked is None or type(came).__module__.split(".")[0] == "workflows":
            return
        with fail_open(self._memory, "check"):
            failed = isinstance(came, Exception) or came.is_error
            said = str(came) if isinstance(came, Exception) else str(came.content)
            self._steps.note(asked["episode_id"], tool_step(asked["tool"], asked["arguments"], observation=said, failed=failed))


def _question(tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked about a call: it names the arguments that the model gave, and no others."""
    names = list(tool.metadata.get_parameters_dict().get("properties", {})) if args else []
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    given.pop(getattr(tool, "ctx_param_name", None) or "", None)
    return {"tool": tool.metadata.get_name(), "arguments": given}


def _output(asked: Mapping[str, Any], advice: Advice) -> ToolOutput:
    name, given = str(asked["tool"]), dict(asked["arguments"])
    return ToolOutput(content=advice.text, tool_name=name, raw_input=given, raw_output=advice.text, is_error=True)


class GuardedFunction(FunctionTool):
    """A function whose calls are checked first. Agents give it their context if the function takes one, as before."""

    def __init__(self, inner: FunctionTool, guard: Guard) -> None:
        vars(self).update(vars(inner))  # what agents read of it; its own constructor would read the function's signature again
        self._inner, self._guard = inner, guard

    @property
    def metadata(self) -> ToolMetadata:
        """Describe the tool as before."""
        return self._inner.metadata

    def __call__(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do what ``call`` does."""
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Warn, or run the function."""
        return self._guard.call(self._inner, args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do the same without blocking the event loop."""
        return await self._guard.acall(self._inner, args, kwargs)


class GuardedTool(AsyncBaseTool):
    """Any other tool whose calls are checked first. It has the attributes of that tool."""

    def __init__(self, inner: BaseTool, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    @property
    def metadata(self) -> ToolMetadata:
        """Describe the tool as before."""
        return self._inner.metadata

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Warn, or call the tool."""
        return self._guard.call(self._inner, args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do the same without blocking the event loop."""
        return await self._guard.acall(self._inner, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the tool inside."""
        inner = vars(self).get("_inner")
        if inner is None:  # it is being copied
            raise AttributeError(name)
        return getattr(inner, name)


def guarded(tool: BaseTool | Callable[..., Any], guard: Guard) -> BaseTool:
    """Wrap a tool, or a function that an agent would make a tool of."""
    if not isinstance(tool, BaseTool):
        tool = FunctionTool.from_defaults(tool)
    return GuardedFunction(tool, guard) if isinstance(tool, FunctionTool) else GuardedTool(tool, guard)

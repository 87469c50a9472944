"""Warns an agent before a tool runs: the warning takes the place of the tool's output. If the agent insists, the tool runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolMetadata, ToolOutput, adapt_to_async_tool

from cascade_memory.runs.failing_open import fail_open

if TYPE_CHECKING:
    from cascade_memory.domain.failure_warning import Advice
    from cascade_memory.memory.memory import Memory

# The episode of the running code and its namespace; None if no case was recalled there.
Here: TypeAlias = Callable[[], "tuple[str, str | None] | None"]


class Guard:
    """Asks the memory about tool calls. A failing memory warns of nothing."""

    def __init__(self, memory: Memory, here: Here) -> None:
        self._memory, self._here = memory, here

    def warning(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput | None:
        """Return what the agent gets instead of the tool's output; None: the tool may run."""
        with fail_open(self._memory, "check"):
            if (found := self._here()) is not None:
                asked = _question(tool, args, kwargs)
                return _output(asked, self._memory.check(found[0], namespace=found[1], **asked))
        return None

    async def awarning(self, tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolOutput | None:
        """Do the same without blocking the event loop."""
        with fail_open(self._memory, "check"):
            if (found := self._here()) is not None:
                asked = _question(tool, args, kwargs)
                return _output(asked, await self._memory.acheck(found[0], namespace=found[1], **asked))
        return None


def _question(tool: BaseTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked about a call: it names the arguments that the model gave, and no others."""
    names = list(tool.metadata.get_parameters_dict().get("properties", {})) if args else []
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    given.pop(getattr(tool, "ctx_param_name", None) or "", None)
    return {"tool": tool.metadata.get_name(), "arguments": given}


def _output(asked: Mapping[str, Any], advice: Advice | None) -> ToolOutput | None:
    if advice is None:
        return None
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
        warning = self._guard.warning(self._inner, args, kwargs)
        return self._inner(*args, **kwargs) if warning is None else warning

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do the same without blocking the event loop."""
        warning = await self._guard.awarning(self._inner, args, kwargs)
        return await self._inner.acall(*args, **kwargs) if warning is None else warning


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
        warning = self._guard.warning(self._inner, args, kwargs)
        return self._inner(*args, **kwargs) if warning is None else warning

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Do the same without blocking the event loop."""
        warning = await self._guard.awarning(self._inner, args, kwargs)
        return await adapt_to_async_tool(self._inner).acall(*args, **kwargs) if warning is None else warning

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

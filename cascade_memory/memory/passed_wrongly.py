"""Says what to pass where somebody passes the memory itself: a framework looks for an attribute, and there is none.

The attributes do not exist, so ``hasattr`` and ``dir`` know nothing of them. Only the message is another one.
"""

from __future__ import annotations

from typing import Any

_LANGCHAIN = "cascade_memory.langchain.CascadeMemory"
_LLAMA_INDEX = "cascade_memory.llama_index.CascadeMemory"
# What each framework looks for first in something that is passed to it, and what is to be passed there.
_WANTED = {
    "wrap_tool_call": (_LANGCHAIN, "create_agent(middleware=[memory.middleware()]), not middleware=[memory]"),
    "ignore_chain": (_LANGCHAIN, '{"callbacks": [memory.callback]}, not [memory]'),
    "raise_error": (_LANGCHAIN, '{"callbacks": [memory.callback]}, not [memory]'),
    "name": (_LLAMA_INDEX, "Memory.from_defaults(memory_blocks=[memory.block()]), not memory_blocks=[memory]"),
    "aput": (_LLAMA_INDEX, "Memory.from_defaults(memory_blocks=[memory.block()]) as memory=, or call memory.arun(agent, task)"),
    "__name__": (_LLAMA_INDEX, "tools=[memory.tool()], not tools=[memory]"),
}
_OF_ADAPTERS = {  # what only the memory of an adapter has
    **dict.fromkeys(("middleware", "callback", "invoke", "ainvoke", "recall_node", "learn_node", "tool_guard"), _LANGCHAIN),
    **dict.fromkeys(("block", "install", "arun", "guarded", "retrieve", "aretrieve"), _LLAMA_INDEX),
}


def message_for(owner: type, name: str) -> str:
    """Return what to say when an attribute of a memory is missing.

    >>> class CascadeMemory: ...
    >>> message_for(CascadeMemory, "nmae")
    "'CascadeMemory' object has no attribute 'nmae'"
    >>> message_for(CascadeMemory, "block").partition(": ")[2]
    'cascade_memory.llama_index.CascadeMemory(engine=memory) has it, and shares this memory'
    """
    plain = f"{owner.__name__!r} object has no attribute {name!r}"
    if name in _OF_ADAPTERS:
        return f"{plain}: {_OF_ADAPTERS[name]}(engine=memory) has it, and shares this memory"
    if name not in _WANTED:
        return plain
    adapter, wanted = _WANTED[name]
    has_it = owner.__module__.startswith(adapter.rpartition(".")[0])
    return f"{plain}: pass {wanted}" + ("" if has_it else f" (of {adapter}(engine=memory))")


class SaysWhatToPass:
    """Mixes in the message for instances; classes before it in the order of methods may find the attribute first."""

    def __getattr__(self, name: str) -> Any:
        """Raise with a message that says what to pass, if a framework looks for this."""
        found = getattr(super(), "__getattr__", None)
        if found is None or name in _WANTED:
            raise AttributeError(message_for(type(self), name))
        return found(name)


def saying(metaclass: Any) -> Any:
    """Return a metaclass whose classes say the same, for frameworks that look at the class.

    >>> class CascadeMemory(metaclass=saying(type)): ...
    >>> hasattr(CascadeMemory, "wrap_tool_call")
    False
    """

    class Saying(metaclass):  # pyright: ignore[reportUntypedBaseClass] - whatever the framework's is
        def __getattr__(cls, name: str) -> Any:  # noqa: N805 # pyright: ignore[reportSelfClsParameterName]
            found = getattr(super(), "__getattr__", None)
            if found is None or name in _WANTED:
                raise AttributeError(message_for(cls, name))
            return found(name)

    return Saying

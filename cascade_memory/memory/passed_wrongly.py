"""Says what to pass to a framework instead of the memory itself, which lacks the attributes that the framework looks for.

The attributes do not exist, so ``hasattr`` and ``dir`` do not find them. Only the message of the ``AttributeError`` differs.
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
    """A mixin: a missing attribute raises ``message_for``, unless a later base class has a ``__getattr__`` that finds it."""

    def __getattr__(self, name: str) -> Any:
        """Raise ``AttributeError``; if a framework looks for this name, the message says what to pass."""
        found = getattr(super(), "__getattr__", None)
        if found is None or name in _WANTED:
            raise AttributeError(message_for(type(self), name))
        return found(name)


def saying(metaclass: Any) -> Any:
    """Return a metaclass whose classes, not only their instances, raise ``message_for``: some frameworks look at the class.

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

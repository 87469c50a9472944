"""Errors that say what to do: if the ledger was edited, and if a memory was passed where a framework wants something else.

If a method fails because the ledger was edited, the error names the unusable row and the command that repairs it.

A framework looks for attributes that the memory lacks. They do not exist, so ``hasattr`` and ``dir`` do not find them. Only
the message of the ``AttributeError`` differs.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.errors import CascadeError, StoreCorrupt
from cascade_memory.memory.bound import Bound, stored_at
from cascade_memory.memory.rows import Rows

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
_Class = TypeVar("_Class", bound=type[Bound])
# Recall and search say in another way what failed.
_OTHERS = ("acting", "recall", "search", "reward", "forget", "counting_again", "close")


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


def explained(memory: _Class) -> _Class:
    """Decorate a class so that its methods explain errors that unusable rows of the ledger cause; see ``explained_rows``."""
    for name, verb in inspect.getmembers(memory, inspect.isfunction):
        if not (name.startswith("_") or name in _OTHERS or inspect.iscoroutinefunction(verb)):  # those call the others
            setattr(memory, name, _explained(verb))
    return memory


@interruptible
def explained_rows(memory: Bound, *, but: tuple[type[Exception], ...] = ()) -> Generator[None, None, None]:
    """Turn an error into a ``StoreCorrupt`` that says what to do, if the ledger has a row that cannot be used.

    Any other error is raised unchanged. The ledger is searched for such a row only after a failure, so reading stays fast.
    """
    try:
        yield
    except (CascadeError, *but):
        raise
    except Exception as error:
        _explain(memory, error)
        raise


def _explain(memory: Bound, error: Exception) -> None:
    row = _unusable(memory)
    if row is not None:
        where = stored_at(memory._engine)  # pyright: ignore[reportPrivateUsage] - it is of the same class, in words
        raise StoreCorrupt(
            f"{where} has a row that cannot be used ({row}); mend it: cascade-memory data doctor --fix"
        ) from error


def _unusable(memory: Bound) -> str | None:
    """Describe the first row that cannot be used; return None if there is none, or if this cannot be found out."""
    with contextlib.suppress(Exception):  # what failed first is what is to be said
        ledger = memory._engine.parts.ledger  # pyright: ignore[reportPrivateUsage] - it is of the same class, in words
        return next(iter(ledger.maintenance.faults(1)), None)
    return None


def _explained(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def called(self: Bound, *arguments: Any, **options: Any) -> Any:
        try:  # as in ``explained_rows``, which takes longer
            found = verb(self, *arguments, **options)
        except CascadeError:
            raise
        except Exception as error:
            _explain(self, error)
            raise
        name = type(self).__name__.lower() if verb.__name__ == "all" else verb.__name__
        return Rows(name, _each(self, found)) if inspect.isgenerator(found) else found

    return called


def _each(memory: Bound, found: Iterator[Any]) -> Iterator[Any]:
    while True:
        with explained_rows(memory):
            try:
                one = next(found)
            except StopIteration:
                return
        yield one

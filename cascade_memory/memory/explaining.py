"""If a method fails because the ledger was edited, the error names the unusable row and the command that repairs it."""

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

_Class = TypeVar("_Class", bound=type[Bound])
# Recall and search say in another way what failed.
_OTHERS = ("acting", "recall", "search", "reward", "forget", "counting_again", "close")


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

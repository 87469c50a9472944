"""The base class of the framework adapters. An adapter holds an engine, and has the engine's most used methods itself."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.domain.episode import Episode
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.stats import Health, Stats
from cascade_memory.memory.threads import in_reward_thread

if TYPE_CHECKING:
    from typing_extensions import Self


class Adapter:
    """A framework's ``CascadeMemory``. Subclasses set ``_engine`` and implement ``_drain``."""

    if TYPE_CHECKING:  # LangChain's pydantic models would turn a plain annotation into a field
        _engine: Engine

    def _drain(self) -> None:
        """Wait until all work at the end of runs is done."""

    @property
    def engine(self) -> Engine:
        """The framework-free memory, with all its verbs: ``search``, ``forget``, ``export``, ``plot``, ..."""
        return self._engine

    def reward(self, *args: Any, **options: Any) -> str | None:
        """Report how an episode ended: ``reward(episode_id, value)``; see ``cascade_memory.CascadeMemory.reward``."""
        self._drain()
        return self._engine.reward(*args, **options)

    async def areward(self, *args: Any, **options: Any) -> str | None:
        """Do what ``reward`` does without blocking the event loop."""
        return await in_reward_thread(functools.partial(self.reward, *args, **options))

    def add(self, *args: Any, **options: Any) -> Any:
        """Store known-good cases; see ``cascade_memory.CascadeMemory.add``."""
        return self._engine.add(*args, **options)

    def pending(self, *, namespace: str | None = None) -> list[Episode]:
        """Return the episodes that wait for their reward, oldest first."""
        self._drain()
        return self._engine.pending(namespace=namespace)

    def stats(self, *, namespace: str | None = None, everywhere: bool = False) -> Stats:
        """Return counts."""
        self._drain()
        return self._engine.stats(namespace=namespace, everywhere=everywhere)

    def health(self) -> Health:
        """Report failures that did not raise an exception."""
        self._drain()
        return self._engine.health()

    def sync(self) -> None:
        """Wait until every ended run is processed, everything is learned, and Chroma holds every case."""
        self._drain()
        self._engine.sync()

    def close(self) -> None:
        """Sync and release the folder."""
        self._drain()
        self._engine.close()

    def __enter__(self) -> Self:
        """Use the memory in a ``with`` block that closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __reduce__(self) -> Any:
        """Raise an error: a memory cannot be pickled."""
        raise TypeError("a memory cannot be pickled; open the same folder in the other process: CascadeMemory(path)")

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return this same object: frameworks copy their configuration, and copies must share the engine."""
        return self

    def __copy__(self) -> Self:
        """Return this same object."""
        return self

    def _repr_html_(self) -> str:
        return self._engine._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's protocol has this name


def engine_for(
    path: str | Path | None,
    engine: Engine | Adapter | None,
    options: Mapping[str, Any],
    *,
    k: int | None = None,
    embedder: Callable[[Any], Any] | None = None,
) -> Engine:
    """Return the engine to share, or open one with these options; ``embedder`` converts a framework's embedder.

    ``k`` is the number of cases that an engine opened here shows. It does not change a shared engine: an adapter with its own
    ``k`` passes it to each recall.
    """
    if isinstance(engine, Adapter):
        engine = engine.engine
    if engine is not None and not isinstance(engine, Engine):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"engine must be a cascade_memory.CascadeMemory, not {type(engine).__name__}")
    _check_options(options)
    if engine is not None and (path is not None or options):
        given = ", ".join(["path"] * (path is not None) + sorted(options))
        raise InvalidInput(f"engine= is open already: pass {given} where the engine is opened")
    if engine is not None:
        return engine
    opened = dict(options)
    if "embedder" in opened and embedder is not None:
        opened["embedder"] = embedder(opened["embedder"])
    if k is not None:
        opened["k"] = k
    return Engine(path, **opened)


def _check_options(options: Mapping[str, Any]) -> None:
    known = [name for name in inspect.signature(Engine).parameters if name != "path"]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise TypeError(f"CascadeMemory takes no option {name!r}{hint}")

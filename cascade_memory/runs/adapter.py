"""The base class of the framework adapters, and the options that every adapter passes on to its memory.

An adapter holds a ``CascadeMemory`` that knows no framework (called the engine here), and has its methods and properties, with
the same parameters and the same documentation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypedDict, TypeVar

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.capabilities import CAPABILITIES
from cascade_memory.cycle.reuse import Template
from cascade_memory.domain.failure_warning import WarningOptions
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Ranker
from cascade_memory.memory.explaining import SaysWhatToPass
from cascade_memory.memory.options import Ranking, Retention, Trust, check_names
from cascade_memory.memory.threads import in_reward_thread
from cascade_memory.memory.verdict import RewardFn

P = ParamSpec("P")
T = TypeVar("T")


def of_engine(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that calls this method of the engine."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return verb(self.engine, *args, **options)

    return call


def after_runs(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that waits until all ended runs are processed, and then calls this method of the engine."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        self._drain()
        return verb(self.engine, *args, **options)

    return call


def awaited_after_runs(
    verb: Callable[Concatenate[Engine, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that waits until all ended runs are processed, and then calls this method of the engine."""

    @functools.wraps(verb)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        await in_reward_thread(self._drain)
        return await verb(self.engine, *args, **options)

    return call


def awaited_with_own_k(
    verb: Callable[Concatenate[Engine, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that calls this method of the engine with the adapter's ``k``, unless the caller gives one."""

    @functools.wraps(verb)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        if options.get("k") is None:
            options["k"] = self._own_k
        return await verb(self.engine, *args, **options)

    return call


def with_own_k(verb: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that calls this method of the engine with the adapter's ``k``, unless the caller gives one."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        if options.get("k") is None:
            options["k"] = self._own_k
        return verb(self.engine, *args, **options)

    return call


if TYPE_CHECKING:
    from typing_extensions import Self

    from cascade_memory.capabilities import Nouns
    from cascade_memory.memory.cases import Cases
    from cascade_memory.memory.data import Data
    from cascade_memory.memory.episodes import Episodes
else:
    Nouns = object  # see the end of this file


class SharedOptions(TypedDict, total=False):
    """The options of ``cascade_memory.CascadeMemory``, which explains them; named, so that editors and type checkers know them.

    ``path`` and ``k`` are left out, since each adapter has them itself, and so is ``embedder``, which may also be an embedder
    of the adapter's framework.
    """

    ranker: str | Ranker
    namespace: str
    reward_fn: RewardFn | None
    learn: Literal["inline", "background", "off"]
    template: Template | None
    chroma: str | None
    deadline: float | timedelta | None
    redact: bool | Callable[[str], str]
    warnings: bool | WarningOptions
    ranking: Ranking
    retention: Retention
    trust: Trust


class Adapter(SaysWhatToPass, Nouns):
    """The base class of a framework's ``CascadeMemory``. Subclasses set ``_engine`` and implement ``_drain``."""

    if TYPE_CHECKING:  # LangChain's pydantic models would turn a plain annotation into a field
        _engine: Engine

    def _drain(self) -> None:
        """Wait until all work at the end of runs is done."""

    @property
    def engine(self) -> Engine:
        """The framework-free memory.

        The adapter has its methods and properties as well; most of these first wait until all ended runs are processed.
        """
        return self._engine

    @property
    def namespace(self) -> str:
        """The namespace that calls use by default."""
        return self._engine.namespace

    def acting(self, *, actor: str | None = None, channel: str | None = None, namespace: str | None = None) -> Self:
        """Return the same memory for another actor, channel or namespace; see the engine's ``acting``.

        The returned adapter has hooks of its own, and a run that they see is ended in the name of that adapter's actor. So
        take all hooks of one run from the same adapter: from this one or from the returned one.
        """
        acting = self._engine.acting(actor=actor, channel=channel, namespace=namespace)
        return self._acting_as(acting, named=actor is not None)

    def _acting_as(self, engine: Engine, *, named: bool) -> Self:
        """Return another adapter of the same kind for an engine; ``named`` says whether ``acting`` was given an actor."""
        raise NotImplementedError

    @property
    def _own_k(self) -> int:
        """The greatest number of cases that a recall of this adapter shows."""
        return self._engine.k

    # -- the verbs of the engine -------------------------------------------------------------------------------------

    recall = with_own_k(Engine.recall)
    arecall = awaited_with_own_k(Engine.arecall)
    reward = after_runs(Engine.reward)
    areward = awaited_after_runs(Engine.areward)
    end = after_runs(Engine.end)
    aend = awaited_after_runs(Engine.aend)
    add = of_engine(Engine.add)
    forget = after_runs(Engine.forget)
    stats = after_runs(Engine.stats)
    health = after_runs(Engine.health)
    report = after_runs(Engine.report)
    inspect = after_runs(Engine.inspect)
    warm = of_engine(Engine.warm)

    # -- its nouns ---------------------------------------------------------------------------------------------------

    @property
    def cases(self) -> Cases:
        """The stored cases: to list, search, pin and hide."""
        return self._after_runs().cases

    @property
    def episodes(self) -> Episodes:
        """The tasks that were asked: how they went, and what was shown for them."""
        return self._after_runs().episodes

    @property
    def data(self) -> Data:
        """The folder or the database as a whole: export, import, backup, upkeep."""
        return self._after_runs().data

    def _after_runs(self) -> Engine:
        self._drain()
        return self._engine

    def __len__(self) -> int:
        """Return the number of cases in the memory's own namespace."""
        self._drain()
        return len(self._engine)

    def __bool__(self) -> bool:
        """Return True: an empty memory is a memory as well."""
        return True

    def __contains__(self, case: object) -> bool:
        """Say whether the memory's own namespace holds a case, which is given by its id or as it was returned."""
        return case in self._engine

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
    check_names(options, (name for name in inspect.signature(Engine).parameters if name != "path"))
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


def _noun(capability: str) -> property:
    def found(adapter: Adapter) -> Any:
        return getattr(adapter._after_runs(), capability)  # pyright: ignore[reportPrivateUsage] - a property of it

    return property(found, doc=f"``memory.{capability}``, as of the framework-free memory.")


for _capability in CAPABILITIES:
    setattr(Adapter, _capability, _noun(_capability))

"""The base class of the framework adapters. An adapter holds an engine, and has the engine's methods itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.assembly.cascade import CascadeMemory as Engine
from cascade_memory.assembly.misspelt import check_names
from cascade_memory.errors import InvalidInput
from cascade_memory.memory.passed_wrongly import SaysWhatToPass
from cascade_memory.runs.delegating import after_runs, awaited, awaited_after_runs, awaited_with_own_k, of_engine, with_own_k

if TYPE_CHECKING:
    from typing_extensions import Self


class Adapter(SaysWhatToPass):
    """A framework's ``CascadeMemory``. Subclasses set ``_engine`` and implement ``_drain``."""

    if TYPE_CHECKING:  # LangChain's pydantic models would turn a plain annotation into a field
        _engine: Engine

    def _drain(self) -> None:
        """Wait until all work at the end of runs is done."""

    @property
    def engine(self) -> Engine:
        """The framework-free memory. The adapter has all its verbs as well; those that look wait for runs that have ended."""
        return self._engine

    @property
    def namespace(self) -> str:
        """The namespace that calls use by default."""
        return self._engine.namespace

    def acting(self, *, actor: str | None = None, channel: str | None = None, namespace: str | None = None) -> Self:
        """Return the same memory, acting for somebody, through a door, or in another namespace; see the engine's ``acting``."""
        return self._acting_as(self._engine.acting(actor=actor, channel=channel, namespace=namespace))

    def _acting_as(self, engine: Engine) -> Self:
        """Return a copy that shares the hooks and the runs of this adapter."""
        raise NotImplementedError

    @property
    def _own_k(self) -> int:
        """The greatest number of cases that a recall of this adapter shows."""
        return self._engine.k

    # -- the verbs of the engine -------------------------------------------------------------------------------------

    recall = with_own_k(Engine.recall)
    arecall = awaited_with_own_k(Engine.arecall)
    search = with_own_k(Engine.search)

    reward = after_runs(Engine.reward)
    areward = awaited_after_runs(Engine.areward)
    ticket_of = after_runs(Engine.ticket_of)
    needs_ticket = of_engine(Engine.needs_ticket)
    end = after_runs(Engine.end)
    aend = awaited_after_runs(Engine.aend)
    finish = after_runs(Engine.finish)
    discard = after_runs(Engine.discard)
    expire = after_runs(Engine.expire)

    confirm = after_runs(Engine.confirm)
    reject = after_runs(Engine.reject)
    correct = after_runs(Engine.correct)
    to_judge = after_runs(Engine.to_judge)
    pin = of_engine(Engine.pin)
    unpin = of_engine(Engine.unpin)
    hide = of_engine(Engine.hide)
    unhide = of_engine(Engine.unhide)
    audit = after_runs(Engine.audit)
    undo = after_runs(Engine.undo)

    get_episode = after_runs(Engine.get_episode)
    episodes = after_runs(Engine.episodes)
    pending = after_runs(Engine.pending)
    reported = after_runs(Engine.reported)
    latest = after_runs(Engine.latest)
    knows = after_runs(Engine.knows)

    add = of_engine(Engine.add)
    propose = of_engine(Engine.propose)
    get = of_engine(Engine.get)
    cases = after_runs(Engine.cases)
    sources = after_runs(Engine.sources)
    diff = after_runs(Engine.diff)
    standings = after_runs(Engine.standings)
    quarantine = after_runs(Engine.quarantine)
    release = after_runs(Engine.release)

    check = of_engine(Engine.check)
    acheck = awaited(Engine.acheck)
    warnings = after_runs(Engine.warnings)
    get_warning = after_runs(Engine.get_warning)
    retire = after_runs(Engine.retire)
    restore_warning = after_runs(Engine.restore_warning)
    advise = after_runs(Engine.advise)

    to_pandas = after_runs(Engine.to_pandas)
    namespaces = of_engine(Engine.namespaces)
    forget = after_runs(Engine.forget)
    expired = of_engine(Engine.expired)
    bring_back = of_engine(Engine.bring_back)

    page_of_cases = after_runs(Engine.page_of_cases)
    order_of_cases = after_runs(Engine.order_of_cases)
    page_of_episodes = after_runs(Engine.page_of_episodes)
    page_of_audit = after_runs(Engine.page_of_audit)
    decisions = after_runs(Engine.decisions)
    outcomes = after_runs(Engine.outcomes)
    judged = after_runs(Engine.judged)
    neighbours = of_engine(Engine.neighbours)
    shown_in = after_runs(Engine.shown_in)
    inspect = after_runs(Engine.inspect)

    stats = after_runs(Engine.stats)
    health = after_runs(Engine.health)
    rewards = after_runs(Engine.rewards)
    report = after_runs(Engine.report)
    plot = after_runs(Engine.plot)

    export = after_runs(Engine.export)
    import_ = of_engine(Engine.import_)
    backup = after_runs(Engine.backup)

    warm = of_engine(Engine.warm)
    examine = after_runs(Engine.examine)
    find_secrets = after_runs(Engine.find_secrets)
    rebuild = of_engine(Engine.rebuild)
    stand_aside = of_engine(Engine.stand_aside)
    refit = after_runs(Engine.refit)

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

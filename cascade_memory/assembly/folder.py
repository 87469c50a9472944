"""Opens folders. A process opens each folder once, and all handles on it share the engine."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from cascade_memory.assembly.embedders import resolve_embedder
from cascade_memory.assembly.mirror import ChildBuild, MirrorBulk
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.assembly.rankers import resolve_ranker, resolve_shadow
from cascade_memory.bandit.similarity import SimilarityPolicy
from cascade_memory.domain.limits import Limits
from cascade_memory.domain.patience import patience
from cascade_memory.domain.private_files import make_folder, make_private
from cascade_memory.domain.validation import check_k
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.matchers import ExactMatcher, FunctionMatcher
from cascade_memory.engine.embedding import stored_embedder
from cascade_memory.engine.engine import Engine, Learning
from cascade_memory.engine.mirror_projection import MIRROR
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import InvalidInput, StoreBusy, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.backup import LEDGER, SNAPSHOTS
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.ledger import Ledger
from cascade_memory.ports.solution_matcher import SolutionMatcher
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.stores.chroma import ChromaFolder
from cascade_memory.stores.chroma_server import ChromaServer, parsed
from cascade_memory.stores.index import TieredIndex
from cascade_memory.visible import visible

CHROMA, LOCK = "chroma", "owner.lock"
RESTORING = f"{LEDGER}.restoring"
_IDENTITY = "identity"
_STUCK = 1.0  # seconds that closing may wait, if another process has already been writing for too long

Matcher = SolutionMatcher | Callable[[Any, Any], "float | bool | None"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an engine; all handles on one folder must have the same."""

    embedder: str | Embedder
    ranker: str | Ranker
    matcher: Any
    learn: Learning
    candidates: int
    shadow: str | Ranker | None = None
    chroma: str | None = None
    policy_scope: str = "namespace"
    limits: Limits | None = None
    credit: Any = "matched"
    ranker_options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Opened:
    """An engine and its handles. The references are weak: a handle may be lost unclosed, when a notebook cell is run twice."""

    engine: Engine
    settings: Settings
    holders: weakref.WeakSet[object]


_open: dict[str, _Opened] = {}
_opening = threading.RLock()


def check_there(path: str | os.PathLike[str]) -> Path:
    """Return the folder of an existing memory; raise if there is none, since a mistyped path must not create a new memory."""
    root = Path(path).expanduser()
    if not (root / LEDGER).is_file():
        raise InvalidInput(f"there is no memory in {str(path)!r}; CascadeMemory({str(path)!r}) would create one")
    return root


def acquire(path: str | os.PathLike[str] | None, settings: Settings, holder: object) -> Engine:
    """Return the engine of a folder for a handle, and open it if necessary. Without a path, return a new engine in RAM."""
    _check(settings)
    if path is None and settings.chroma is not None:
        raise InvalidInput("chroma= needs a path: a memory in RAM does not use Chroma")
    if path is None:
        return _assemble(None, settings)
    folder = _folder(path)
    with _opening:
        key = os.path.realpath(folder)
        known = _open.get(key)
        if known is not None and (_is_lost(known.engine) or not (known.holders or _same(known.settings, settings))):
            _close(key)
            known = None
        if known is None:
            known = _open[key] = _Opened(_assemble(folder, settings), settings, weakref.WeakSet())
        else:
            _check_same(known.settings, settings, folder)
        known.holders.add(holder)
        return known.engine


def _folder(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path).strip() or "\x00" in str(path):
        raise InvalidInput(f"path must name a folder, or be None for a memory in RAM, not {path!r}")
    return Path(cast("str", path)).expanduser()


def is_open(path: Path) -> bool:
    """Say whether this process has the folder open."""
    return os.path.realpath(path) in _open


def release(engine: Engine, holder: object) -> None:
    """Release a handle; the last one closes the engine."""
    if engine.parts.ledger.path is None:
        engine.close()
        return
    waits: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if any(known.engine is engine and len(known.holders) == 1 for known in list(_open.values())):
        try:  # wait outside the lock, so that other threads can open their folders meanwhile
            engine.recording.wait_for()  # do not close yet: another thread may acquire this engine before the lock is taken
        except StoreBusy:
            waits = patience(_STUCK)
    with _opening, waits:
        for key, known in list(_open.items()):  # search by engine: a relative path is useless if the working directory changed
            if known.engine is engine:
                known.holders.discard(holder)
                if not known.holders:
                    _close(key)


def _is_lost(engine: Engine) -> bool:
    """Say whether the folder was replaced or deleted under this engine; opening the path then means the folder there now."""
    try:
        engine.parts.ledger.check()
    except StoreError:
        return True
    return False


def _close(key: str) -> None:
    _open.pop(key).engine.close()


@atexit.register
def _close_all() -> None:
    """Save what was learned and close Chroma cleanly, but do not spend time on feeding it the remaining cases."""
    for known in list(_open.values()):
        known.engine.close(feed=False)


def _forget_after_fork() -> None:
    globals()["_opening"] = threading.RLock()  # a thread of the parent may have held the old one
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _check(settings: Settings) -> None:
    if settings.learn not in ("inline", "background", "off"):
        raise InvalidInput(f'learn must be "inline", "background" or "off", not {settings.learn!r}')
    check_k(settings.candidates, "candidates")
    if settings.policy_scope not in ("namespace", "shared"):
        raise InvalidInput(f'policy_scope must be "namespace" or "shared", not {settings.policy_scope!r}')
    if settings.chroma is not None:
        parsed(settings.chroma)


def _same(first: Settings, settings: Settings) -> bool:
    try:
        _check_same(first, settings, Path())
    except InvalidInput:
        return False
    return True


def _check_same(first: Settings, settings: Settings, folder: Path) -> None:
    for name in (field.name for field in fields(Settings)):
        before, now = getattr(first, name), getattr(settings, name)
        alike = getattr(now, "identity", now) == getattr(before, "identity", before)
        optional = ("limits", "shadow", "ranker_options") if settings.ranker == "auto" else ("limits", "shadow")
        if not alike and now != "auto" and not (name in optional and now is None):
            raise InvalidInput(
                f"{folder} is open in this process with {name}={before!r}; open it with the same, or close it there first"
            )


def _assemble(folder: Path | None, settings: Settings) -> Engine:
    ledger = SQLiteLedger(None if folder is None else ledger_path(folder))
    try:
        embedder = resolve_embedder(settings.embedder, stored_embedder(ledger))
        hindsight = settings.matcher is not None
        parts = Parts(
            ledger=ledger,
            embedder=embedder,
            ranker=resolve_ranker(
                settings.ranker,
                hindsight=hindsight,
                shared=settings.policy_scope == "shared",
                credit=settings.credit,
                options=settings.ranker_options,
            ),
            shadow=resolve_shadow(settings.shadow, hindsight=hindsight, credit=settings.credit),
            fallback=SimilarityPolicy(),
            matcher=_matcher(settings.matcher),
            hindsight=hindsight,
            direct=_is_direct(embedder, settings),
            index=lambda dimension, _: TieredIndex(dimension),
            snapshots=SnapshotStore(None),
        )
        if folder is None:
            return Engine(parts, learn=settings.learn, candidates=settings.candidates, limits=settings.limits)
        return _on_disk(folder, parts, settings)
    except BaseException:
        ledger.close()
        raise


def _on_disk(folder: Path, parts: Parts, settings: Settings) -> Engine:
    folder = Path(os.path.abspath(folder))  # the working directory may change
    server = settings.chroma
    if server is not None and parts.ledger.read_only is not None and parts.ledger.facts.get(_IDENTITY) is None:
        server = None  # a read-only ledger without an identity never fed a server, and cannot store an identity to do so
    mirror = ChromaFolder(folder / CHROMA) if server is None else ChromaServer(server, _identity(parts.ledger))
    engine: Engine | None = None

    def covered() -> int:
        return 0 if engine is None or engine.feeder is None else engine.feeder.covered

    def index(dimension: int, namespace: str) -> TieredIndex:
        return TieredIndex(dimension, MirrorBulk(namespace, mirror, parts.ledger, covered))

    engine = Engine(
        Parts(
            ledger=parts.ledger,
            embedder=parts.embedder,
            ranker=parts.ranker,
            shadow=parts.shadow,
            fallback=parts.fallback,
            matcher=parts.matcher,
            hindsight=parts.hindsight,
            direct=parts.direct,
            index=index,
            snapshots=SnapshotStore(folder / SNAPSHOTS),
            mirror=mirror,
            lock=OwnerLock(folder / LOCK),
            sweep=lambda: (*_sweep(folder, own_chroma=not mirror.shared), *_elsewhere(parts.ledger, mirror.place)),
            build=None if mirror.shared else lambda: ChildBuild(folder / LEDGER, folder / CHROMA),
        ),
        learn=settings.learn,
        candidates=settings.candidates,
        limits=settings.limits,
    )
    if mirror.shared and engine.feeder is not None and engine.feeder.owner:
        ChromaFolder(folder / CHROMA).discard()  # left by a command, or from before the server was used
    return engine


def _elsewhere(ledger: Ledger, here: str) -> tuple[str, ...]:
    """Name the Chroma servers that this memory has fed, but is not connected to now."""
    servers = [key.removeprefix(MIRROR) for key in ledger.facts.names(f"{MIRROR}:")]
    return tuple(
        f"the collections on the Chroma server at {visible(one[1:])}: to delete them there, open the memory "
        "with that address as chroma="
        for one in servers
        if one != here
    )


def _sweep(folder: Path, *, own_chroma: bool) -> tuple[str, ...]:
    """Delete files that a purge must not leave behind; describe those that the user has to delete."""
    for file in [folder / RESTORING, *(folder / SNAPSHOTS).glob("*.part")]:
        file.unlink(missing_ok=True)
    if not own_chroma:  # a Chroma folder from before the server was used
        ChromaFolder(folder / CHROMA).discard()
    kept = sorted(file.name for file in folder.glob(f"{LEDGER}*.damaged-*"))
    return (f"the damaged ledger that a restore kept ({', '.join(kept)}): delete it",) if kept else ()


def _identity(ledger: Ledger) -> str:
    """Return an id that distinguishes this memory's collections from others on the same Chroma server."""
    known = ledger.facts.get(_IDENTITY)
    if known is None:
        ledger.facts.set(_IDENTITY, known := uuid.uuid4().hex[:12])
    return known


def ledger_path(folder: Path) -> Path:
    """Make a memory's folder if it does not exist, and return the path of its ledger."""
    try:
        make_folder(folder)
    except OSError as error:
        raise StoreUnwritable(f"cannot make the folder {folder}: {error}; choose a path that can be written") from error
    path = folder / LEDGER
    if (folder / SNAPSHOTS).is_symlink():  # never write or delete where somebody else may have pointed a link
        raise StoreCorrupt(
            f"{folder / SNAPSHOTS} is a link; remove it, and it will be made again as a folder. "
            "To keep a memory elsewhere, open it with the path of that folder"
        )
    if path.exists() and not path.is_file():
        raise StoreCorrupt(f"{path} is not a file; move it away, or choose another folder")
    make_private(folder / LOCK)
    lost = not path.exists() or path.stat().st_size == 0
    if lost and (folder / RESTORING).exists():
        raise StoreCorrupt(f"restoring {folder} was interrupted; repeat: cascade-memory restore BACKUP {folder} --replace")
    if lost and any((folder / name).exists() for name in (SNAPSHOTS, CHROMA)):
        raise StoreCorrupt(
            f"{path} is missing or empty although {folder} was in use; restore it from a backup, or move the folder away"
        )
    return path


def _is_direct(embedder: Embedder, settings: Settings) -> bool:
    """Say whether a recall calls nothing that could hang: no model, and no object that the user passed."""
    rankers = (settings.ranker, settings.shadow or "auto")
    return type(embedder) is HashingEmbedder and all(one in ("auto", "light", "similarity", "random") for one in rankers)


def _matcher(matcher: Matcher | str) -> SolutionMatcher:
    if matcher is None or matcher == "exact":
        return ExactMatcher()  # with matcher=None there is no hindsight, but equal solutions must still be recognised
    if hasattr(matcher, "agreement") and hasattr(matcher, "key"):
        return matcher  # type: ignore[return-value]
    if callable(matcher):
        return FunctionMatcher(matcher)
    raise InvalidInput(f'matcher must be "exact", None, a function of two solutions, or a SolutionMatcher, not {matcher!r}')

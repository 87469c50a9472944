"""A memory in a folder of this machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from cascade_memory.assembly.mirror import ChildBuild, identity
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.assembly.settings import Settings
from cascade_memory.domain.private_files import make_folder, make_private
from cascade_memory.domain.sqlite_files import BESIDE
from cascade_memory.domain.validation import check_path
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.mirror_projection import MIRROR
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreUnwritable
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.backup import LEDGER, SNAPSHOTS
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.snapshots.store import files_in, is_unfinished
from cascade_memory.stores.chroma import ChromaFolder
from cascade_memory.stores.chroma_server import ChromaServer
from cascade_memory.stores.folder_files import remove
from cascade_memory.visible import visible

CHROMA, LOCK = "chroma", "owner.lock"
RESTORING = f"{LEDGER}.restoring"


class Folder:
    """A place whose ledger, snapshots, Chroma and owner's lock are files in one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        """Name the folder."""
        return str(self.path)

    @property
    def key(self) -> str:
        """The real path of the folder, in which links are resolved."""
        return os.path.realpath(self.path)

    @property
    def is_new(self) -> bool:
        """Whether there is no memory yet."""
        return not (self.path / LEDGER).is_file()

    def check_there(self) -> None:
        """Raise if there is no memory."""
        check_there(self.path)

    def ledger(self) -> Ledger:
        """Open the ledger; create it if there is none."""
        return SQLiteLedger(ledger_path(self.path))

    def complete(self, parts: Parts, settings: Settings) -> Parts:
        """Return the parts with the files beside the ledger, and the lock that decides which process feeds Chroma."""
        folder = Path(os.path.abspath(self.path))  # the working directory may change
        mirror = _mirror(folder, parts.ledger, settings.chroma)
        return replace(
            parts,
            snapshots=SnapshotStore(folder / SNAPSHOTS),
            mirror=mirror,
            lock=OwnerLock(folder / LOCK),
            sweep=lambda: (*_sweep(folder, own_chroma=not mirror.shared), *elsewhere(parts.ledger, mirror.place)),
            build=None if mirror.shared else lambda: ChildBuild(folder / LEDGER, folder / CHROMA),
        )

    def opened(self, engine: Engine) -> None:
        """If a Chroma server is used and this process feeds it, delete the Chroma database in the folder.

        A command may have left one, or it is from before the server was used.
        """
        mirror, feeder = engine.parts.mirror, engine.feeder
        if mirror is not None and mirror.shared and feeder is not None and feeder.owner:
            ChromaFolder(Path(os.path.abspath(self.path)) / CHROMA).discard()


def _mirror(folder: Path, ledger: Ledger, server: str | None) -> ChromaFolder | ChromaServer:
    # A read-only ledger without an identity never fed a server, and cannot store an identity to do so.
    name = None if server is None else identity(ledger)
    return ChromaFolder(folder / CHROMA) if server is None or name is None else ChromaServer(server, name)


def check_there(path: str | os.PathLike[str]) -> Path:
    """Return the folder of an existing memory; raise if there is none, since a mistyped path must not create a new memory."""
    root = check_path(path, "path")
    if root.is_file():
        raise InvalidInput(f"{str(path)!r} is a file, and a memory is a folder")
    if not (root / LEDGER).is_file():
        raise InvalidInput(f"there is no memory in {str(path)!r}; CascadeMemory({str(path)!r}) would create one")
    return root


def elsewhere(ledger: Ledger, here: str) -> tuple[str, ...]:
    """Say, for people, on which Chroma servers other than ``here`` this memory has collections, and how to delete them."""
    servers = [key.removeprefix(MIRROR) for key in ledger.facts.names(f"{MIRROR}:")]
    return tuple(
        f"the collections on the Chroma server at {visible(one[1:])}: to delete them there, open the memory "
        "with that address as chroma="
        for one in servers
        if one != here
    )


def _sweep(folder: Path, *, own_chroma: bool) -> tuple[str, ...]:
    """Delete files that a purge must not leave behind; return sentences about those that the user has to delete."""
    for end in ("", *BESIDE):
        remove(folder / (RESTORING + end))
    for file in files_in(folder / SNAPSHOTS):
        if is_unfinished(file.name):
            file.unlink(missing_ok=True)
    if not own_chroma:  # a Chroma folder from before the server was used
        ChromaFolder(folder / CHROMA).discard()
    kept = sorted(file.name for file in folder.glob(f"{LEDGER}*.damaged-*"))
    return (f"the damaged ledger that a restore kept ({', '.join(kept)}): delete it",) if kept else ()


def ledger_path(folder: Path) -> Path:
    """Make a memory's folder if it does not exist, and return the path of its ledger."""
    try:
        make_folder(folder)
    except OSError as error:
        raise StoreUnwritable(
            f"cannot make the folder {folder}: {error.strerror or error}; choose a path that can be written"
        ) from error
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
        raise StoreCorrupt(f"restoring {folder} was interrupted; repeat: cascade-memory data restore BACKUP {folder} --replace")
    if lost and any((folder / name).exists() for name in (SNAPSHOTS, CHROMA)):
        raise StoreCorrupt(
            f"{path} is missing or empty although {folder} was in use; restore it from a backup, or move the folder away"
        )
    return path

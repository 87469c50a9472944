"""Plants files that SQLite, Chroma or this library would act on, tries a door, and looks whether anything outside changed.

``python planted_files.py FOLDER PART PARTS`` tries one of so many parts of all combinations. It prints each one before it is
tried, and then what came out, so that whoever reads knows which one hangs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cascade_memory import CascadeMemory, restore
from cascade_memory.assembly.move import MovedFolder
from cascade_memory.assembly.reindex import reindex
from cascade_memory.cli.main import main as command
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import CascadeError
from cascade_memory.stores.folder_files import remove

MAGIC = bytes.fromhex("d9d505f920a163d7")
BESIDE = ("-wal", "-shm", "-journal")
LEDGER, CASES = "ledger.sqlite3", 6
Plant = Callable[[Path, Path], None]
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def header(pages: int, *, records: int = 0, page: int = 4096, sector: int = 512) -> bytes:
    """Return the header of a rollback journal of a database that had so many pages."""
    numbers = b"".join(number.to_bytes(4, "big") for number in (records, 7, pages, sector, page))
    return (MAGIC + numbers).ljust(sector, b"\x00")


def naming(victim: Path) -> bytes:
    """Return the end of a journal that names a super-journal, as SQLite's file format says."""
    name = os.fsencode(victim)
    return b"\x00\x00\x00\x00" + name + len(name).to_bytes(4, "big") + (sum(name) % 2**32).to_bytes(4, "big") + MAGIC


def pages_of(database: Path) -> int:
    """Return the number of pages of a database."""
    return database.stat().st_size // 4096 if database.is_file() else 1


def _super_journal(file: Path, bait: Path) -> None:
    database = file.with_name(file.name.removesuffix("-journal"))
    file.write_bytes(header(pages_of(database)) + naming(bait / "text"))


def _growing(file: Path, bait: Path) -> None:
    file.write_bytes(header(2**31 - 5, page=65_536))


def _empty_journal_of_a_super(file: Path, bait: Path) -> None:
    file.write_bytes(naming(bait / "text"))


def _someone_elses(file: Path, bait: Path) -> None:
    file.write_bytes(header(1))
    os.chown(file, 12_345, 12_345)


def _socket(file: Path, bait: Path) -> None:
    here = os.getcwd()
    os.chdir(file.parent)  # its path must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    finally:
        os.chdir(here)


def _folder(file: Path, bait: Path) -> None:
    file.mkdir()
    (file / "inside").write_text("x")


ODD: dict[str, Plant] = {
    "a link": lambda file, bait: file.symlink_to(bait / "database"),
    "a link to a text": lambda file, bait: file.symlink_to(bait / "text"),
    "a link to nothing": lambda file, bait: file.symlink_to(bait / "new"),
    "a link to a folder": lambda file, bait: file.symlink_to(bait),
    "a second name": lambda file, bait: os.link(bait / "database", file),
    "a second name of an empty file": lambda file, bait: os.link(bait / "empty", file),
    "a pipe": lambda file, bait: os.mkfifo(file),
    "a socket": _socket,
    "a folder": _folder,
}
if IS_ROOT:
    ODD["a device"] = lambda file, bait: os.mknod(file, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    ODD["a disk"] = lambda file, bait: os.mknod(file, 0o666 | stat.S_IFBLK, os.makedev(7, 200))
JOURNALS: dict[str, Plant] = {
    "a super-journal": _super_journal,
    "only the end of one": _empty_journal_of_a_super,
    "a huge database": _growing,
}
if IS_ROOT:
    JOURNALS["somebody else's"] = _someone_elses

# -- where ---------------------------------------------------------------------------------------------------------------

_LEDGERS = ["", *BESIDE]
PLACES = {
    **{LEDGER + end: ODD for end in _LEDGERS},
    **{f"{LEDGER}.restoring{end}": ODD for end in _LEDGERS},
    **{f"chroma/chroma.sqlite3{end}": ODD for end in _LEDGERS},
    **dict.fromkeys(
        ["owner.lock", "snapshots", "snapshots/policy-1-0000000000000012.npz", "snapshots/policy-1-0000000000000012.77.part",
         "chroma", "chroma.building", f"{LEDGER}.damaged-1"], ODD
    ),
}  # fmt: skip
PLANTS = [
    *((place, what, plant) for place, kinds in PLACES.items() for what, plant in kinds.items()),
    *((f"{one}-journal", what, plant) for one in (LEDGER, f"{LEDGER}.restoring", "chroma/chroma.sqlite3")
      for what, plant in JOURNALS.items()),
]  # fmt: skip


def planted(place: Path, plant: Plant, bait: Path) -> None:
    """Put such a file in the place of what is there."""
    place.parent.mkdir(exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    plant(place, bait)


# -- the doors -----------------------------------------------------------------------------------------------------------


def _used(folder: Path, good: Path) -> None:
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        episode = memory.recall("task 1 of kind 1")
        memory.reward(episode.episode_id, 1.0, solution="again")
        memory.sync()
        memory.forget(memory.add("a task", "a solution"), purge=True)


def _inspected(folder: Path, good: Path) -> None:
    from cascade_memory.mcp_server.server import build

    with CascadeMemory(folder, embedder="stored") as memory:
        memory.inspect().close()
        build(memory)


def _replaced(folder: Path, good: Path) -> None:
    restore(good, folder, replace=True)
    with CascadeMemory(folder, embedder="hashing") as memory:  # so it is mended, whatever was there
        assert memory.stats().cases == CASES
        memory.sync()
        assert all(check.ok for check in memory.data.examine() if check.name != "free disk")


def _restored_into(folder: Path, good: Path) -> None:
    remove(folder / LEDGER)
    restore(good, folder)
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.stats().cases == CASES


def _restored_from(folder: Path, good: Path) -> None:
    restore(folder, good.with_name("fresh"))


def _moved_from(folder: Path, good: Path) -> None:
    moved = MovedFolder(folder)
    with moved.reading(while_open=False) as connection:
        list(moved.learned(connection).every())


def _moved_to(folder: Path, good: Path) -> None:
    with MovedFolder(folder).writing():
        pass


def _said(*words: str) -> Callable[[Path, Path], None]:
    def call(folder: Path, good: Path) -> None:
        names = {"FOLDER": str(folder), "TO": str(good.with_name("made")), "EXPORT": str(good / "export.jsonl")}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            code = command([names.get(word, word) for word in words])
        if code not in (0, 1, 2) or (code and "doctor" not in words and len(told.getvalue().split()) < 6):
            raise AssertionError(f"{words}: {code}, {told.getvalue()!r}")
        if code and "doctor" not in words:
            raise CascadeError(told.getvalue())

    return call


DOORS: dict[str, Callable[[Path, Path], None]] = {
    "use": _used,
    "replace": _replaced,
    "restore into": _restored_into,
    "restore from": _restored_from,
    "doctor": _said("data", "doctor", "FOLDER"),
    "doctor --fix": _said("data", "doctor", "FOLDER", "--fix"),
    **({"inspector": _inspected} if find_spec("mcp") and find_spec("starlette") else {}),
    "move from": _moved_from,
    "move to": _moved_to,
    "reindex": lambda folder, good: void(reindex(folder, HashingEmbedder(32))),
    "stats": _said("show", "stats", "FOLDER"),
    "pending": _said("review", "pending", "FOLDER"),
    "backup": _said("data", "backup", "FOLDER", "TO"),
    "export": _said("data", "export", "FOLDER", "TO"),
    "import": _said("data", "import", "FOLDER", "EXPORT"),
    "rebuild": _said("data", "rebuild", "FOLDER"),
}


def void(_: object) -> None:
    """Take a result that nobody needs."""


# -- trying --------------------------------------------------------------------------------------------------------------


def listing(outside: Path) -> dict[str, tuple[Any, ...]]:
    """Return what can be known about every file outside."""
    found: dict[str, tuple[Any, ...]] = {}
    for file in [outside, *sorted(outside.rglob("*"))]:
        about = file.lstat()
        content = hashlib.sha256(file.read_bytes()).hexdigest() if stat.S_ISREG(about.st_mode) else ""
        found[str(file)] = (about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns, about.st_ino, content)
    return found


def prepare(root: Path) -> None:
    """Make a closed memory that has learned, a backup of it, and the bait."""
    with CascadeMemory(root / "memory", embedder="hashing", learn="inline") as memory:
        for i in range(12):
            recall = memory.recall(f"task {i} of kind {i % 4}")
            memory.reward(recall.episode_id, float(i % 2), solution=f"solution {i % 4}")
        memory.sync()
        memory.data.backup(root / "good")
        memory.data.export(root / "good" / "export.jsonl", progress=False)
        assert memory.stats().cases == CASES, memory.stats()
    (root / "bait").mkdir(mode=0o755)
    (root / "bait" / "text").write_text("mine\n" * 200)
    (root / "bait" / "empty").touch()
    shutil.copyfile(root / "good" / LEDGER, root / "bait" / "database")
    for file in (root / "bait").iterdir():
        file.chmod(0o644)


def combinations() -> Iterator[tuple[str, str, Plant, str]]:
    """Yield every plant with every door."""
    for place, what, plant in PLANTS:
        for door in DOORS:
            yield place, what, plant, door


def tried(root: Path, place: str, plant: Plant, door: str) -> str:
    """Try one door of one folder; return "served", the sentence that refuses it, or what is wrong, after "WRONG"."""
    folder, good, bait = root / "tried", root / "good", root / "bait"
    for used in (folder, root / "fresh", root / "made"):
        shutil.rmtree(used, ignore_errors=True)
        used.unlink(missing_ok=True)
    shutil.copytree(root / "memory", folder)
    planted(folder / place, plant, bait)
    if place.startswith("chroma/"):
        _forge(folder)
    before = listing(bait)
    try:
        DOORS[door](folder, good)
        said = "served"
    except CascadeError as error:
        said = str(error)
        if len(said.split()) < 6 or door in ("replace",):
            said = f"WRONG: {type(error).__name__}: {error}"
    except Exception as error:
        said = f"WRONG: {type(error).__name__}: {error}"
    after = listing(bait)
    if before != after:
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        said = f"WRONG: {sorted(changed)} was changed or deleted"
        shutil.rmtree(bait)
        raise SystemExit(said)
    if any(file.is_file() and file.stat().st_size > 2**30 for file in folder.rglob("*")):
        said = "WRONG: a file of the folder was blown up"
    return said


def _forge(folder: Path) -> None:
    """Seal Chroma's folder like one who can compute everything about it, and write that into the ledger."""
    import sqlite3

    from cascade_memory.engine.mirror_projection import Mark
    from cascade_memory.stores import folder_files

    kept, folder_files.BESIDE = folder_files.BESIDE, ("no such end",)
    has_one_name, folder_files.has_one_name = folder_files.has_one_name, lambda found: stat.S_ISREG(found.st_mode)
    try:
        forged = folder_files.seal(folder / "chroma")
    finally:
        folder_files.BESIDE, folder_files.has_one_name = kept, has_one_name
    connection = sqlite3.connect(folder / LEDGER)
    with connection:
        (text,) = connection.execute("SELECT value FROM meta WHERE key = 'mirror'").fetchone()
        mark = Mark.read(text)
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'mirror'", (Mark(mark.key, mark.seq, clean=True, seal=forged).written(),)
        )
    connection.close()


def run(root: Path, part: int, parts: int) -> None:
    """Try a share of all combinations, and say what came out."""
    prepare(root)
    for number, (place, what, plant, door) in enumerate(combinations()):
        if random.Random(number).randrange(parts) == part:
            sys.stdout.write(f"{place}: {what}, {door}\t")
            sys.stdout.flush()
            said = tried(root, place, plant, door).replace("\n", " ")
            sys.stdout.write(said + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""The files of a folder that only this memory may write: it makes them private, deletes them, and notices changes by others.

Nothing here follows a symbolic link, because its target belongs to somebody else.

The seal of a folder is a text that shows later whether the folder was changed. Whoever makes a folder can also compute a
digest of its bytes. So the seal also covers what only this system gives to a file: its inode number and the time when it was
last changed, which no program and no archive can choose. A disk from another machine can bring these two along, so the seal
covers the id of the machine, too. And the files must belong to this user. A folder that comes from elsewhere therefore does
not count as sealed.

Chroma writes uninitialised memory into the unused part of its index files. Here that memory is set to zeros.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import threading
from collections.abc import Generator
from pathlib import Path

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.private_files import has_one_name
from cascade_memory.domain.sqlite_files import BESIDE

_M_PERTURB = -6  # an option of glibc: fill allocated memory with the complement of a byte
_ZEROS = 0xFF
_lock = threading.Lock()
_inside: set[object] = set()  # the blocks
MACHINE_ID = Path("/etc/machine-id")
_DEEPEST = 3  # levels of folders; Chroma creates one level
_CHUNK = 2**20  # bytes that are hashed at a time; meanwhile other threads can run


@interruptible
def zeroed_allocations() -> Generator[None, None, None]:
    """Fill all memory that is allocated inside the block with zeros, if the C library can do that.

    Freed memory may still hold anything that this process has ever read, such as purged texts and vectors: these were seen in
    Chroma's ``data_level0.bin`` and ``length.bin`` after about one purge in four. With C libraries other than glibc this does
    nothing; most of them return zeros for large blocks anyway.
    """
    mine = object()
    try:
        with _lock:
            _inside.add(mine)
            _perturb(_ZEROS)
        yield
    finally:
        _inside.discard(mine)
        with _lock:
            if not _inside:
                _perturb(0)


def _perturb(byte: int) -> None:
    if platform.libc_ver()[0] == "glibc":
        _libc().mallopt(_M_PERTURB, byte)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class UnsealedError(OSError):
    """The folder cannot be sealed: it has what no closed Chroma leaves behind, belongs to another user, or is changing."""


def make_private(folder: Path) -> None:
    """Let only the owner read a folder and what it contains."""
    for place, _, files in os.walk(folder):  # os.walk does not follow links
        for name in [".", *files]:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):  # a journal that was deleted meanwhile
                found = os.lstat(path)
                wanted = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
                ours = has_one_name(found) or stat.S_ISDIR(found.st_mode)
                if ours and stat.S_IMODE(found.st_mode) != wanted:
                    os.chmod(path, wanted)


def remove(path: Path) -> None:
    """Delete a folder, a file or a link, as far as possible. The target of a link stays."""
    with contextlib.suppress(OSError, RecursionError):  # nested too deeply: the rest stays and is not used
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def seal(folder: Path) -> str:
    """Return a text that shows later whether anything in a folder has changed; empty if the folder cannot be sealed.

    The text holds two digests: one of what the system says about the files, which is quick to compare, and one of every byte. A
    copy of the folder has another seal.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_bytes(b"1")
    >>> before = seal(folder)
    >>> is_sealed(folder, before)
    True
    >>> _ = (folder / "a").write_bytes(b"2")
    >>> is_sealed(folder, before)
    False
    """
    try:
        files = _listed(folder)
        return f"{_of_names(files)}-{_of_contents(folder, files)}"
    except OSError:
        return ""


def is_sealed(folder: Path, before: str) -> bool:
    """Say whether a folder is unchanged since ``seal`` returned ``before``.

    If what the system says about the files has changed already, no content is read.
    """
    try:
        files = _listed(folder)
        names, _, contents = before.partition("-")
        return _of_names(files) == names and _of_contents(folder, files) == contents
    except OSError:
        return False


def _listed(folder: Path) -> dict[str, os.stat_result]:
    """Return what the system says about each file and folder by its path in the folder."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise UnsealedError(f"{folder} is not a folder")
    found: dict[str, os.stat_result] = {}
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        with os.scandir(folder / place) as entries:
            for entry in entries:
                # On Windows, a directory's entry does not say what the file itself says.
                name, status = f"{place}{entry.name}", os.lstat(entry.path)
                if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
                    raise UnsealedError(f"{name} in {folder} belongs to another user")
                if stat.S_ISDIR(status.st_mode) and depth < _DEEPEST:
                    waiting.append((f"{name}/", depth + 1))
                elif not has_one_name(status) or entry.name.endswith(BESIDE):
                    raise UnsealedError(f"{name} in {folder} is not such a file as Chroma leaves behind when it is closed")
                found[name] = status
    return dict(sorted(found.items()))


def _of_names(files: dict[str, os.stat_result]) -> str:
    digest = hashlib.sha256(_machine())
    for name, status in files.items():
        path = os.fsencode(name)
        # A folder changes when it is renamed, as a new Chroma is; the files in it do not.
        about = ("-",) if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_ino, status.st_ctime_ns)
        digest.update(f"{' '.join(map(str, about))} {len(path)} ".encode() + path)
    return digest.hexdigest()


def _machine() -> bytes:
    """Return the id of this machine, which Linux keeps in a file; it cannot be guessed, and is not made public by a digest."""
    try:
        return MACHINE_ID.read_bytes()[:64].ljust(64)
    except OSError:
        return bytes(64)


def _of_contents(folder: Path, files: dict[str, os.stat_result]) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_CHUNK))
    for name, status in files.items():
        if stat.S_ISREG(status.st_mode):
            digest.update(_of_file(folder / name, status.st_size, buffer))
    return digest.hexdigest()


def _of_file(path: Path, size: int, buffer: memoryview) -> bytes:
    digest, read = hashlib.sha256(), 0
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb", buffering=0) as file:
        while read <= size and (n := file.readinto(buffer)):
            digest.update(buffer[:n])
            read += n
    if read != size:
        raise UnsealedError(f"{path} changes while it is read")
    return digest.digest()

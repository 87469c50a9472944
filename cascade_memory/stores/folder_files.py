"""The files of a folder that only this memory may write: made private, removed, and recognised when it is opened again.

Nothing here follows a link: what it points to is somebody else's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

_DEEPEST = 3  # folders inside each other; Chroma makes one level
_CHUNK = 2**20  # bytes hashed at a time, without Python's lock


class UnsealedError(OSError):
    """There is something in the folder that Chroma never makes: a link, a pipe, a file with a second name."""


def make_private(folder: Path) -> None:
    """Let nobody but the owner read or enter a folder and what is in it."""
    for place, _, files in os.walk(folder):  # which does not follow links
        for name in [".", *files]:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):  # a journal that has gone meanwhile
                mode = os.lstat(path).st_mode
                wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
                if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) != wanted:
                    os.chmod(path, wanted)


def remove(path: Path) -> None:
    """Delete a folder, a file or a link, as far as that is possible. What a link points to stays."""
    with contextlib.suppress(OSError, RecursionError):  # nested too deep by somebody: it stays, and is not used
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def seal(folder: Path) -> str:
    """Return what tells whether anything in a folder has changed; empty where it holds what Chroma never makes.

    Two digests: one of names and sizes, which is had at once, and one of every byte.

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
    """Say whether a folder is, byte for byte, what it was when it was sealed. Nothing is read that had another size then."""
    try:
        files = _listed(folder)
        names, _, contents = before.partition("-")
        return _of_names(files) == names and _of_contents(folder, files) == contents
    except OSError:
        return False


def _listed(folder: Path) -> dict[str, int]:
    """Return the size of each file by its path in the folder, and -1 for folders."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise UnsealedError(f"{folder} is no folder")
    found: dict[str, int] = {}
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        with os.scandir(folder / place) as entries:
            for entry in entries:
                name, status = f"{place}{entry.name}", entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and depth < _DEEPEST:
                    found[name] = -1
                    waiting.append((f"{name}/", depth + 1))
                elif stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
                    found[name] = status.st_size
                else:
                    raise UnsealedError(f"{name} in {folder} is neither a file nor a folder of Chroma's")
    return dict(sorted(found.items()))


def _of_names(files: dict[str, int]) -> str:
    listing = "".join(f"{size} {len(os.fsencode(name))} " for name, size in files.items()).encode()
    return hashlib.sha256(listing + b"".join(os.fsencode(name) for name in files)).hexdigest()


def _of_contents(folder: Path, files: dict[str, int]) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_CHUNK))
    for name, size in files.items():
        if size >= 0:
            digest.update(_of_file(folder / name, size, buffer))
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

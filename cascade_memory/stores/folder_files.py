"""The files of a folder that only this memory may write: it makes them private, deletes them, and notices changes by others.

Nothing here follows a symbolic link, because its target belongs to somebody else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

_DEEPEST = 3  # levels of folders; Chroma creates one level
_CHUNK = 2**20  # bytes that are hashed at a time; meanwhile other threads can run


class UnsealedError(OSError):
    """The folder contains something that Chroma never creates: a link, a pipe, or a file with a second name."""


def make_private(folder: Path) -> None:
    """Let only the owner read a folder and what it contains."""
    for place, _, files in os.walk(folder):  # os.walk does not follow links
        for name in [".", *files]:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):  # a journal that was deleted meanwhile
                mode = os.lstat(path).st_mode
                wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
                if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) != wanted:
                    os.chmod(path, wanted)


def remove(path: Path) -> None:
    """Delete a folder, a file or a link, as far as possible. The target of a link stays."""
    with contextlib.suppress(OSError, RecursionError):  # nested too deeply: the rest stays and is not used
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def seal(folder: Path) -> str:
    """Return a text that shows later whether anything in a folder has changed; empty if it contains what Chroma never creates.

    It holds two digests: one of names and sizes, which is quick to compare, and one of every byte.

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
    """Say whether a folder has the same bytes as at ``seal``. If names or sizes differ, no file is read."""
    try:
        files = _listed(folder)
        names, _, contents = before.partition("-")
        return _of_names(files) == names and _of_contents(folder, files) == contents
    except OSError:
        return False


def _listed(folder: Path) -> dict[str, int]:
    """Return the size of each file by its path in the folder, and -1 for folders."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise UnsealedError(f"{folder} is not a folder")
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
                    raise UnsealedError(f"{name} in {folder} is not a plain file or folder such as Chroma creates")
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

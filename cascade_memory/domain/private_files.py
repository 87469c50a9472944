"""Files and folders that only their owner may read, and opening of plain files without following links.

The umask of the process stays as it is: it belongs to the host application.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import IO, Any

FOLDER, FILE = 0o700, 0o600
# For ``os.open``: follow no link, and wait for nobody.
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, accessible only to the owner; an existing folder keeps its mode.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a" / "b"
    >>> make_folder(place)
    >>> oct(place.stat().st_mode & 0o777), oct(place.parent.stat().st_mode & 0o777)
    ('0o700', '0o700')
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")


def create_file(path: Path) -> None:
    """Make an empty file that only the owner may access; an existing file keeps its content."""
    if not os.path.lexists(path):  # on a full disk, O_CREAT fails even for an existing file
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file for writing; if it is new, only the owner may access it."""
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, opener=lambda name, flags: os.open(name, flags, FILE))


def open_own(path: Path, mode: str) -> IO[Any]:
    """Open a file for writing if it is new, or plain with one name: through a link or a second name, another file would change.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> with open_own(place / "a", "a") as file:
    ...     _ = file.write("1")
    >>> (place / "b").symlink_to(place / "a")
    >>> try:
    ...     _ = open_own(place / "b", "a")
    ... except OSError as error:
    ...     print(str(error).removeprefix(str(place)))
    /b is a link, a pipe, a device or a folder, or has a second name elsewhere
    """
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, newline=None if "b" in mode else "\n", opener=_own)


def append_after(path: Path, end: int, line: bytes) -> int:
    """Write a line at byte ``end`` of a file, replace all that follows, and sync it to disk; return where the line ends."""
    with open_own(path, "r+b" if end or path.exists() else "xb") as file:
        if os.fstat(file.fileno()).st_size < end:
            raise OSError(f"{path} is shorter than what was written to it: somebody else has changed it")
        file.truncate(end)
        file.seek(end)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return end + len(line)


def _own(name: str, flags: int) -> int:
    check_one_name(name)
    return os.open(name, flags | PLAIN, 0o666)


def check_one_name(path: str | Path, called: str | None = None) -> None:
    """Raise OSError if a path exists but is not a plain file with one name; ``called`` is what the message calls it."""
    with contextlib.suppress(FileNotFoundError):
        if not has_one_name(os.lstat(path)):
            raise OSError(f"{called or path} is a link, a pipe, a device or a folder, or has a second name elsewhere")


def open_plain(path: Path) -> IO[bytes]:
    """Open a file for reading; refuse links, pipes, devices and folders, which this library never writes."""
    handle = os.open(path, os.O_RDONLY | PLAIN)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is not a plain file")
    return os.fdopen(handle, "rb")


def is_plain(path: Path) -> bool:
    """Say whether a path is an existing plain file: not a link, a folder, a pipe or a device.

    >>> is_plain(Path("/nowhere"))
    False
    """
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def has_one_name(found: os.stat_result) -> bool:
    """Say whether a file is a plain one without a second name (a hard link): then a change to it shows in no other place."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def make_private(path: Path) -> None:
    """Remove everybody else's rights to a file or folder if it is ours; links, and files with a second name, are left alone."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        if found.st_mode & 0o077 and (has_one_name(found) or stat.S_ISDIR(found.st_mode)):
            path.chmod(stat.S_IMODE(found.st_mode) & FOLDER)

"""A small file system of one's own, on which exactly so many pages are free."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

_PRIVATE = "TORTURE_PRIVATE_MOUNTS"
PAGE = 4096


@functools.cache
def possible() -> bool:
    """Say whether this user may mount a tmpfs in a mount namespace of his own."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        return False
    trial = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


def private() -> bool:
    """Say whether this process has mounts of its own."""
    return _PRIVATE in os.environ


def wrapped(command: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command and an environment that give it mounts of its own; nobody else sees them."""
    return ["unshare", "-rm", *command], {_PRIVATE: "1"}


class SmallDisk:
    """A tmpfs and a ballast file in it."""

    def __init__(self, path: Path, megabytes: int = 96) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path))

    @staticmethod
    def _mount(*words: str) -> None:
        subprocess.run(["mount", *words], check=True, capture_output=True)

    def leave(self, pages: int) -> None:
        """Fill it up to so many free pages."""
        self.release()
        with (self.path / "ballast").open("wb") as file:
            free = os.statvfs(self.path).f_bavail - pages
            if free > 0:
                os.posix_fallocate(file.fileno(), 0, free * PAGE)

    def release(self) -> None:
        """Give the room back."""
        (self.path / "ballast").unlink(missing_ok=True)

    def read_only(self, on: bool) -> bool:
        """Forbid or allow writing; return whether the kernel agreed, which it does not while files are open for writing."""
        try:
            self._mount("-o", f"remount,{'ro' if on else 'rw'}", str(self.path))
        except subprocess.CalledProcessError:
            return False
        return True

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", str(self.path)], check=False, capture_output=True)

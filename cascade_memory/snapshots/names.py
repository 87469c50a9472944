"""Names of the files of snapshots. Files with other names in their folder are not read, copied or deleted."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from cascade_memory.domain.private_files import is_plain, make_folder, open_plain, open_private

_STATE = re.compile(r"policy-(0|[1-9]\d{0,17})-(\d{16})\.npz", re.ASCII)
_WEIGHTS = re.compile(r"encoder-(0|[1-9]\d{0,17})-(\d{16})-[0-9a-f]{8}\.safetensors", re.ASCII)
_UNFINISHED = re.compile(r"(policy-\d+-\d{16}|encoder-\d+-\d{16}-[0-9a-f]{8})\.\d+\.part", re.ASCII)


def state_name(namespace: int, seq: int) -> str:
    """Name the file with the policy's state after an entry of the log.

    >>> state_name(1, 7)
    'policy-1-0000000000000007.npz'
    """
    return f"policy-{namespace}-{seq:016d}.npz"


def weights_name(namespace: int, seq: int, nonce: str) -> str:
    """Name the file with an encoder's weights."""
    return f"encoder-{namespace}-{seq:016d}-{nonce}.safetensors"


def of_state(name: str) -> tuple[int, int] | None:
    """Parse the name of a state file to (namespace, entry of the log); None for any other name.

    >>> of_state("policy-1-0000000000000007.npz"), of_state("../policy-1-0000000000000007.npz")
    ((1, 7), None)
    """
    return _numbers(_STATE, name)


def of_weights(name: str) -> tuple[int, int] | None:
    """Parse the name of a weights file to (namespace, entry of the log); None for any other name."""
    return _numbers(_WEIGHTS, name)


def is_unfinished(name: str) -> bool:
    """Say whether this is the name of an unfinished file."""
    return _UNFINISHED.fullmatch(name) is not None


def _numbers(pattern: re.Pattern[str], name: str) -> tuple[int, int] | None:
    found = pattern.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def files_in(folder: Path, begins: str = "") -> list[Path]:
    """List the plain files in a folder whose names start with ``begins``; none if the folder does not exist or is a link."""
    try:
        names = [] if folder.is_symlink() else [name for name in os.listdir(folder) if name.startswith(begins)]
        return [folder / name for name in names if is_plain(folder / name)]
    except OSError:
        return []


def copy_snapshots(source: Path, target: Path) -> None:
    """Copy the snapshots of a folder into a new one: only plain files with names of snapshots, and no links."""
    wanted = [file for file in files_in(source) if of_state(file.name) or of_weights(file.name)]
    if not wanted:
        return
    make_folder(target)
    for file in wanted:
        try:
            opened = open_plain(file)
        except FileNotFoundError:
            continue  # it was just deleted, since a newer snapshot replaced it
        with opened, open_private(target / file.name, "xb") as copy:
            shutil.copyfileobj(opened, copy, 2**20)

"""How the files of snapshots are called. Nothing else in their folder is read, copied or deleted."""

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
    """Return the name of the file of what was learned up to a line of the log.

    >>> state_name(1, 7)
    'policy-1-0000000000000007.npz'
    """
    return f"policy-{namespace}-{seq:016d}.npz"


def weights_name(namespace: int, seq: int, nonce: str) -> str:
    """Return the name of the file of an encoder's weights."""
    return f"encoder-{namespace}-{seq:016d}-{nonce}.safetensors"


def of_state(name: str) -> tuple[int, int] | None:
    """Return (namespace, line) of what was learned; None for any other name.

    >>> of_state("policy-1-0000000000000007.npz"), of_state("../policy-1-0000000000000007.npz")
    ((1, 7), None)
    """
    return _numbers(_STATE, name)


def of_weights(name: str) -> tuple[int, int] | None:
    """Return (namespace, line) of an encoder's weights; None for any other name."""
    return _numbers(_WEIGHTS, name)


def is_unfinished(name: str) -> bool:
    """Say whether a file of this name is one that was being written."""
    return _UNFINISHED.fullmatch(name) is not None


def _numbers(pattern: re.Pattern[str], name: str) -> tuple[int, int] | None:
    found = pattern.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def files_in(folder: Path) -> list[Path]:
    """Return the plain files of a folder; none where there is no folder, or a link to one."""
    try:
        return [] if folder.is_symlink() else [folder / name for name in os.listdir(folder) if is_plain(folder / name)]
    except OSError:
        return []


def copy_snapshots(source: Path, target: Path) -> None:
    """Copy the snapshots of a folder into a new one: plain files under our names, and nothing through a link."""
    wanted = [file for file in files_in(source) if of_state(file.name) or of_weights(file.name)]
    if not wanted:
        return
    make_folder(target)
    for file in wanted:
        try:
            opened = open_plain(file)
        except FileNotFoundError:
            continue  # replaced by a newer one at this moment
        with opened, open_private(target / file.name, "xb") as copy:
            shutil.copyfileobj(opened, copy, 2**20)

"""Checks, before a long command starts, that the files that it writes at its end can be written."""

from __future__ import annotations

import contextlib
from pathlib import Path

from cascade_memory.domain.validation import check_path
from cascade_memory.errors import InvalidInput


def check_writable(file: str | Path, option: str, *, folder: bool = False) -> None:
    """Refuse a file that cannot be written. An existing file is not changed, and no new file is left behind.

    With ``folder``, the file's folder may be missing, since it will be made as well.
    """
    path = check_path(file, option)
    there = path.exists()
    missing = [one for one in path.parents if not one.exists()] if folder else []
    try:
        if missing:
            path.parent.mkdir(parents=True)
        path.open("ab").close()
        if not there:
            path.unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{option} {str(file)!r} cannot be written ({why}): name another file") from error
    finally:
        with contextlib.suppress(OSError):  # somebody may have put a file there meanwhile
            for one in missing:
                one.rmdir()


def check_picture(file: str | Path, option: str) -> None:
    """Refuse a picture that cannot be written, or whose format is unknown."""
    check_writable(file, option)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:  # without matplotlib there will be no picture; the command says so later
        return
    kinds = FigureCanvasBase.get_supported_filetypes()
    suffix = Path(file).suffix.lstrip(".").lower()
    if suffix and suffix not in kinds:
        raise InvalidInput(f"{option} {str(file)!r}: the format must be one of {', '.join(sorted(kinds))}, not {suffix!r}")

"""Files that a command will write at its end: looked at before its work, not after."""

from __future__ import annotations

from pathlib import Path

from cascade_memory.errors import InvalidInput


def check_writable(file: str | Path, option: str) -> None:
    """Refuse a file that could not be written; nothing of one that is there changes, and none is left behind."""
    path = Path(file)
    there = path.exists()
    try:
        path.open("ab").close()
        if not there:
            path.unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{option} {str(file)!r} cannot be written ({why}): name another place") from error


def check_picture(file: str | Path, option: str) -> None:
    """Refuse a picture that could not be written, or of a kind that cannot be drawn."""
    check_writable(file, option)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:  # there will be no picture, and that is said where it is missing
        return
    kinds = FigureCanvasBase.get_supported_filetypes()
    suffix = Path(file).suffix.lstrip(".").lower()
    if suffix and suffix not in kinds:
        raise InvalidInput(f"{option} {str(file)!r}: there are pictures in {', '.join(sorted(kinds))}, not in {suffix!r}")

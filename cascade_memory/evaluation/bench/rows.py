"""Files of rows: a row has the results of one run, and is a line of JSON that is written completely or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cascade_memory.domain import append_after
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import SHUFFLED
from cascade_memory.evaluation.bench.plan import Run

Row = dict[str, Any]
_ORDER = ("task", "seed", "limit", "solver", "order")  # runs that agree in these must have the same tasks in the same order
_SOLVED_BY = ("task", "solver", "misled")  # runs that agree in these must have solvers with the same parameters
_BEGINS = b'{"task": '
_UNNAMED = {"prompt": "chat", "show": "text", "thinks": True, "chat_template_kwargs": None}  # what a row does not name


def stream_of(queries: Sequence[str]) -> str:
    """Return the column "stream": a digest of the tasks in the order of play.

    >>> stream_of(["cool a mug"]) == stream_of(("cool a mug",))
    True
    """
    return hashlib.blake2b(json.dumps(list(queries)).encode(), digest_size=8).hexdigest()


class Rows:
    """A file of rows. A last line that was cut off when the process was killed is overwritten, and its run is played again.

    A file with other content is refused and not changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.rows, self._end = _whole_rows(path) if path.exists() else ([], 0)
        except OSError as error:
            raise InvalidInput(f"cannot keep rows in {path}: {error}. Name another file") from error

    def missing(self, runs: list[Run]) -> list[Run]:
        """Return the runs that have no row yet; raise an error if the file has rows of their tasks in another order."""
        for run in runs:
            self._check_order(run)
        done = {_key(row) for row in self.rows}
        return [run for run in runs if _key(asdict(run)) not in done]

    def _check_order(self, run: Run) -> None:
        """Raise an error if the file has rows of the run's task and solver in another order (``plan.Run.order``).

        The tables show one figure for a task, so the orders must not be mixed.
        """
        for row in self.rows:
            if (row["task"], row.get("solver")) == (run.task, run.solver) and (row.get("order") or "") != run.order:
                raise InvalidInput(
                    f"{self.path} has rows of {run.task} in another order (--order {row.get('order') or SHUFFLED}): "
                    "name another file"
                )

    def of(self, runs: list[Run]) -> list[Row]:
        """Return the rows of these runs, in the order of the runs; a run without a row is left out."""
        by_key = {_key(row): row for row in self.rows}
        return [by_key[key] for key in map(_key, map(asdict, runs)) if key in by_key]

    def append(self, row: Row) -> None:
        """Write a row; it is on disk when this returns.

        An error is raised if the file has a row of the same stream that was measured on other tasks, or with other parameters
        of the solver.
        """
        other = next((one for one in self.rows if _streams_differ(one, row)), None)
        if other is not None:
            raise InvalidInput(
                f"{self.path} has rows of another {row['task']}: {other['n']:,} tasks, now {row['n']:,}, or different ones. "
                "Name another file"
            )
        self.check_declared(row, row.get("declared", {}))
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        self._end = append_after(self.path, self._end, line)
        self.rows.append(row)

    def check_declared(self, about: Row, declared: Mapping[str, Any]) -> None:
        """Raise an error if the file has rows of the same task and solver with other parameters than ``declared``.

        ``about`` is a row, or a run as a dictionary: it names the task and the solver. Only parameters that both have are
        compared.
        """
        for row in self.rows:
            if all(row.get(name) == about.get(name) for name in _SOLVED_BY):
                for name, value in _differing(row.get("declared", {}), declared):
                    present = declared.get(name, _UNNAMED.get(name))
                    raise InvalidInput(
                        f"{self.path} has rows of {row['task']} whose solver had {name} = {value}, and now it is {present}: "
                        "the figures cannot be compared. Delete these rows, or name another file"
                    )


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Yield the name and the earlier value of each parameter that has another value now, as rows write it.

    Only parameters that both have are compared, and those that have a default where a row does not name them.
    """
    written = json.loads(json.dumps({**now}))
    if before and written:
        before, written = ({**_UNNAMED, **one} for one in (before, written))
    # The fingerprint of a user's stream depends on how many of its tasks are played, so it is not compared.
    return ((name, value) for name, value in before.items() if name != "stream" and name in written and written[name] != value)


def _streams_differ(one: Row, other: Row) -> bool:
    same_order = all((one.get(name) or None) == (other.get(name) or None) for name in _ORDER)
    return same_order and any(one[name] != other[name] for name in ("n", "stream", "wording") if name in one and name in other)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file without changing it, since another process may be adding rows."""
    if not path.is_file():
        raise InvalidInput(f"there is no file of rows at {path}: cascade-memory bench run --out {path} writes one")
    return _whole_rows(path)[0]


def _whole_rows(path: Path) -> tuple[list[Row], int]:
    """Read the complete rows, and return them with the position at which the last of them ends."""
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    other = f"{path} holds something other than rows of a benchmark"
    try:
        rows = [json.loads(line) for line in whole.decode().split("\n") if line]
    except ValueError as error:
        raise InvalidInput(f"{other}: {error}") from error
    if not all(isinstance(row, dict) and {"task", "method"} <= row.keys() for row in rows):
        raise InvalidInput(f'{other}: each line must be a JSON object with "task" and "method"')
    rows = [_as_now(row) for row in rows]
    rest = raw[len(whole) :]
    if not (_BEGINS.startswith(rest) or (rest.startswith(_BEGINS) and not _is_json(rest))):
        raise InvalidInput(f"{other}: its last line is not the beginning of a row")
    return rows, len(whole)


def _as_now(row: Row) -> Row:
    """Bring an older row up to date: add what such rows did not state, and use the present names.

    Before rows had a column "models", ICRL and ICRLPlus showed 32 trials. The method "similarity" was called NP-CBR, which in
    the paper is the method that shows the pretrained reranker's choice.
    """
    if str(row["method"]).startswith("NP-CBR") and '"ranker"' not in str(row.get("models")):
        row = {**row, "method": str(row["method"]).replace("NP-CBR", "similarity")}
    if "models" not in row and row["method"] in ("ICRL", "ICRLPlus") and not row.get("options"):
        return {**row, "options": '{"k": 32.0}'}
    return row


def _is_json(line: bytes) -> bool:
    """Say whether a line is complete JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def circumstances() -> Row:
    """Return the versions and the machine with which a row is measured."""
    names = ("cascade-memory", "numpy", "chromadb")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "revision": _revision(),
    }


def _revision() -> str | None:
    """Return the git revision of the running code, with a "+" if there are uncommitted changes."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        outputs = [
            subprocess.run([*git, *what], capture_output=True, encoding="utf-8", check=True, timeout=10).stdout.strip()
            for what in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]
    except (OSError, subprocess.SubprocessError):
        return None
    return outputs[0] + ("+" if outputs[1] else "")


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(one.name, one.default) for one in fields(Run))

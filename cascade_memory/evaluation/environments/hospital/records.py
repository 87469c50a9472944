"""Patients' records that code can be run over: a database, the tools and the sandbox together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cascade_memory.evaluation.environments.hospital.tools import Database, Tools
from cascade_memory.evaluation.environments.sandbox.sandbox import Ran, Sandbox
from cascade_memory.evaluation.judging.sql import ReadOnlyQueries

if TYPE_CHECKING:
    from typing_extensions import Self

SECONDS, QUERY_SECONDS, QUERY_BYTES = 30.0, 10.0, 20_000_000
ROUNDS = 5  # attempts at one question, as in the paper


class Records:
    """Runs code over a database of records. Every script starts anew, and outcomes never depend on earlier scripts.

    >>> import tempfile
    >>> from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Records(build_hospital(Path(folder) / "hospital.sqlite", patients=3)) as records:
    ...         print(records.run("answer = len(LoadDB('patients'))").text)
    3
    """

    def __init__(self, database: Path, *, seconds: float = SECONDS) -> None:
        self._queries = ReadOnlyQueries(seconds=min(seconds, QUERY_SECONDS), most_bytes=QUERY_BYTES)
        self.database = Database(database, self._queries)
        self._sandbox = Sandbox(seconds=seconds)

    def run(self, code: str) -> Ran:
        """Run a script with fresh tools."""
        return self._sandbox.run(code, Tools(self.database).by_name())

    def close(self) -> None:
        """End the process that runs queries."""
        self._queries.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process that runs queries."""
        self.close()

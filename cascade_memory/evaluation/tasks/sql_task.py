"""Text to SQL: each task names its database and the right query."""

from __future__ import annotations

import tarfile
import tempfile
from functools import cached_property
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.answers import code_in
from cascade_memory.evaluation.judging.sql import ReadOnlyQueries, schema_of, sql_execution
from cascade_memory.evaluation.tasks.task import Item, read_items


class SQLTask:
    """Questions about SQLite databases; a reply is right if its query returns what the right one returns.

    Each question begins with the ``CREATE TABLE`` statements of its database.
    """

    max_steps = 1

    def __init__(self, *, name: str, file: str, databases: str, instruction: str, seconds: float = 10.0) -> None:
        self.name, self.instruction = name, instruction
        self._file, self._archive = file, databases
        self._queries = ReadOnlyQueries(seconds=seconds)
        self._where: dict[str, Path] = {}

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="cascade-memory-sql-")

    def items(self, data: Path) -> list[Item]:
        """Read the questions, and unpack the databases."""
        self._unpack(data / self._archive)
        schemas = {name: schema_of(path, self._queries) for name, path in self._where.items()}
        items: list[Item] = []
        for item in read_items(data / self._file):
            database = str(item.fields.get("db_id", ""))
            if database not in schemas:
                raise InvalidInput(f"{self._file} asks about the database {database!r}, which {self._archive} does not contain")
            items.append(Item(f"{schemas[database]}\n\n{item.query}", item.label, {**item.fields, "question": item.query}))
        return items

    def _unpack(self, archive: Path) -> None:
        target = Path(self._folder.name)
        try:
            with tarfile.open(archive) as packed:
                for member in packed.getmembers():
                    source = packed.extractfile(member) if member.isfile() and member.name.endswith(".sqlite") else None
                    if source is not None:
                        path = target / Path(member.name).name  # only the name: an archive must not write elsewhere
                        path.write_bytes(source.read())
                        self._where[path.stem] = path
        except (OSError, tarfile.TarError) as error:
            raise InvalidInput(f"cannot read {archive}: {error}") from error

    def reward(self, reply: str, item: Item) -> float:
        """Run the reply's query and the right one, and compare their results."""
        return sql_execution(reply, str(item.label), self.database(item), self._queries)

    def database(self, item: Item) -> Path:
        """Return the database of a question."""
        return self._where[str(item.fields["db_id"])]

    def answer(self, reply: str) -> str:
        """Return the query in a reply, which a case stores."""
        return code_in(reply, "sql")

    def close(self) -> None:
        """Stop the process that runs queries, and remove the databases."""
        self._queries.close()
        self._folder.cleanup()

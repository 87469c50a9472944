"""Text to SQL: each task names its database and the right query."""

from __future__ import annotations

import glob
import re
import tarfile
import tempfile
from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.answers import code_in
from cascade_memory.evaluation.judging.sql import ReadOnlyQueries, schema_of, sql_execution
from cascade_memory.evaluation.tasks.task import Item, read_items
from cascade_memory.evaluation.tasks.wording import QUERY

_NAME = re.compile(r"[\w. -]+")  # of a database: it becomes part of a path


class SQLTask:
    """Questions about SQLite databases; a reply is right if its query returns what the right one returns.

    The memory embeds and stores the question, with the evidence if there is any. A model also sees the ``CREATE TABLE``
    statements of the database, which would leave no room for the question in an embedder's 256 tokens.

    ``published`` names a file of questions and a folder of databases in the layout of DTLBench. If these do not exist, the file
    ``file`` and the archive ``databases`` are read instead.
    """

    max_steps = 1

    def __init__(
        self,
        *,
        name: str,
        file: str,
        databases: str = "",
        published: tuple[str, str] | None = None,
        instruction: str = QUERY.about,
        seconds: float = 10.0,
    ) -> None:
        self.name, self.instruction = name, instruction
        self._file, self._archive, self._published = file, databases, published
        self._queries = ReadOnlyQueries(seconds=seconds)
        self._where: dict[str, Path] = {}

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="cascade-memory-sql-")

    def items(self, data: Path) -> list[Item]:
        """Read the questions, and find or unpack the databases."""
        if self._published is not None and all((data / one).exists() for one in self._published):
            file, source = self._published
            rows = read_items(data / file, ("query", "SQL", "label"))
            self._find({str(row.fields.get("db_id", "")) for row in rows}, data / source)
        else:
            file, source = self._file, self._archive
            rows = read_items(data / file)
            self._unpack(data / source)
        told = {name: self._told(path) for name, path in self._where.items()}
        items: list[Item] = []
        for item in rows:
            database = str(item.fields.get("db_id", ""))
            if database not in told:
                raise InvalidInput(f"{file} asks about the database {database!r}, which {source} does not contain")
            items.append(Item(_asked(item), item.label, {**item.fields, "question": item.query}, told[database]))
        return items

    def _told(self, database: Path) -> str:
        return f"{self.instruction}\n\nThe schema of the database:\n{schema_of(database, self._queries)}"

    def _find(self, names: Iterable[str], source: Path) -> None:
        """Find each database in the folder ``source`` or up to two folders below it, as an unpacked archive may add folders."""
        for name in names:
            safe = glob.escape(name) if _NAME.fullmatch(name) and name.strip(".") else ""
            places = chain.from_iterable(source.glob(f"{above}{safe}/{safe}.sqlite") for above in ("", "*/", "*/*/") if safe)
            found = next(places, None)
            if found is not None:
                self._where[name] = found

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

    def question(self, item: Item) -> str:
        """Write the question and the form of the answer."""
        return QUERY.question(item.query)

    def example(self, solution: str) -> str:
        """Write the query of a case in the form in which a model must answer."""
        return QUERY.example(solution)

    def answer(self, reply: str) -> str:
        """Return the query in a reply, which a case stores."""
        return code_in(reply, "sql")

    def close(self) -> None:
        """Stop the process that runs queries, and remove the databases."""
        self._queries.close()
        self._folder.cleanup()


def _asked(item: Item) -> str:
    evidence = item.fields.get("evidence")
    return f"{item.query}\nKnowledge: {evidence}" if isinstance(evidence, str) and evidence.strip() else item.query

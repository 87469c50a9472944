"""Spider and BIRD: questions about SQLite databases."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.conversion.converter import Converted, Converter, Row, drawn, json_of

_FILE = "dev.json"


def _converter(target: str, databases: str, *, sql: str, also: tuple[str, ...] = ()) -> Callable[[Path, int], Converted]:
    def convert(source: Path, count: int) -> Converted:
        rows: list[Row] = []
        for index, one in enumerate(json_of(source, _FILE, list, "a list of questions")):
            fields = ("question", sql, "db_id", *also)
            if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in fields):
                raise InvalidInput(f"{source / _FILE}: question {index + 1} lacks one of {', '.join(fields)}")
            more: Row = {name: one[name] for name in ("db_id", *also)}
            rows.append({"task": one["question"], "label": one[sql], **more, "orig_index": index})
        rows = drawn(rows, count)
        names = sorted({str(row["db_id"]) for row in rows})
        return {f"{target}.jsonl": rows, f"{target}_dbs.tar.gz": _packed(source / databases, names)}

    return convert


def _packed(folder: Path, names: list[str]) -> bytes:
    """Return the bytes of an archive (tar.gz) with the databases of these names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for name in names:
            path = folder / name / f"{name}.sqlite"
            if Path(name).name != name or not path.is_file():
                raise InvalidInput(f"there is no database {name!r} in {folder}")
            archive.add(path, f"{name}/{name}.sqlite", filter=_without_owner)
    return packed.getvalue()


def _without_owner(member: tarfile.TarInfo) -> Any:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


_TRIED = "a fixture in the layout that its makers describe"

SPIDER = Converter(
    get="the archive that https://yale-lily.github.io/spider links to, unpacked",
    reads=(_FILE, "database/DB/DB.sqlite"),
    rows=1_034,
    tried=_TRIED,
    convert=_converter("spider_dev", "database", sql="query"),
)
BIRD = Converter(
    get="https://bird-bench.oss-cn-beijing.aliyuncs.com/dev.zip, unpacked, and in it dev_databases.zip",
    reads=(_FILE, "dev_databases/DB/DB.sqlite"),
    rows=1_534,
    tried=_TRIED,
    convert=_converter("bird_dev", "dev_databases", sql="SQL", also=("evidence",)),
)

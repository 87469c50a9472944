"""Does it stay fast? Real texts with real MiniLM vectors: 1k to 300k cases, 200,000 episodes, against the budget.

    export CASCADE_DATA=...                                                # the folder with the task streams
    python examples/benchmarks/scale.py                                    # all parts at 1k, 10k and 100k cases
    python examples/benchmarks/scale.py --sizes 1000 --episodes 2000       # quick
    python examples/benchmarks/scale.py --parts sizes index --sizes 1000 10000 100000 300000
    python examples/benchmarks/scale.py --show results/scale.jsonl         # the tables of an earlier run

Parts: ``sizes`` (recall, recall with a ``where`` that a tenth of the cases meets, reward, memory, disk, warm start), ``index``
(recall@32 against an exact scan, with Chroma's index and the newest cases that it has not received), ``modes`` (owner and
follower, embedded and HTTP Chroma), ``episodes`` (does the 200,000th cost as much as the first?).

Every measurement runs in its own process, on a copy of a folder that was filled once. Embedding is excluded: vectors are looked
up. References in the same run: a bare SQLite commit with synchronous=FULL before every reward, and an exact numpy scan. Rows go
to ``results/scale.jsonl``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from real_texts import load
from scale_report import show

PARTS = ("sizes", "index", "modes", "episodes")
WORTH_ASKING = 20_000  # with more cases than this, Chroma's index answers
Row = dict[str, Any]


@dataclass
class Bench:
    """The folders, queries and jobs of one run."""

    work: Path
    out: Path
    cache: Path
    texts: int  # in the pool
    times: int
    seed: int
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self._number = 0
        self._filled: dict[tuple[int, str], Path] = {}
        pool = load(self.texts, seed=self.seed, cache=self.cache)
        held = slice(self.texts - 2 * self.times - 1, self.texts)  # never stored
        pairs = list(zip(pool.texts[held], pool.solutions[held], strict=True))
        (self.work / "queries.json").write_text(json.dumps(pairs), encoding="utf-8")
        np.save(self.work / "queries.npy", pool.vectors[held])
        np.save(self.work / "vectors.npy", pool.vectors)

    def job(self, work: str, n: int, folder: Path, **more: Any) -> list[str]:
        """Write a job to a file, and return the command that does it."""
        self._number += 1
        path = self.work / f"job-{self._number}.json"
        job = {
            "work": work, "n": n, "folder": str(folder), "texts": self.texts, "times": self.times, "seed": self.seed,
            "cache": str(self.cache), "queries": str(self.work / "queries.json"), "role": "owner", "out": str(self.out),
            "queries_vectors": str(self.work / "queries.npy"), "vectors": str(self.work / "vectors.npy"), **more,
        }  # fmt: skip
        path.write_text(json.dumps(job), encoding="utf-8")
        return [sys.executable, str(Path(__file__).with_name("scale_worker.py")), str(path), str(path.with_suffix(".row"))]

    def run(self, work: str, n: int, folder: Path, **more: Any) -> Row:
        """Do a job in its own process, and return its row."""
        command = self.job(work, n, folder, **more)
        subprocess.run(command, check=True)
        return json.loads(Path(command[-1]).read_text(encoding="utf-8"))

    def note(self, part: str, n: int, row: Row) -> None:
        """Add a row to the rows in memory and to the file."""
        self.rows.append({"part": part, "cases": n, **row})
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.rows[-1]) + "\n")

    def filled(self, n: int, chroma: str | None = None) -> Path:
        """Return a folder with n cases, all of them in Chroma."""
        key = (n, chroma or "embedded")
        if key not in self._filled:
            print(f"filling a folder with {n:,} cases", flush=True)
            folder = self.work / f"filled-{n}-{len(self._filled)}"
            row = self.run("fill", n, folder, options={"chroma": chroma} if chroma else {})
            self.note("fill", n, {"chroma": "http" if chroma else "embedded", **row})
            self._filled[key] = folder
        return self._filled[key]

    @contextlib.contextmanager
    def copy(self, n: int) -> Iterator[Path]:
        """Provide a copy of the filled folder, and delete it afterwards."""
        folder = self.work / "copy"
        shutil.copytree(self.filled(n), folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def sizes(bench: Bench, n: int) -> None:
    """Measure one size in the owning process, from a cold start."""
    with bench.copy(n) as folder:
        bench.note("sizes", n, bench.run("serve", n, folder))


def index(bench: Bench, n: int) -> None:
    """Measure the share of the exact answer that recall finds with Chroma's index."""
    if n > WORTH_ASKING:
        with bench.copy(n) as folder:
            bench.note("index", n, bench.run("index", n, folder))


def modes(bench: Bench, n: int) -> None:
    """Measure owner and follower processes, with Chroma in the folder and behind HTTP."""
    with bench.copy(n) as folder, owner(bench, n, folder):
        bench.note("modes", n, {"mode": "follower", **bench.run("serve", n, folder, role="follower")})
    with bench.copy(n) as folder:
        bench.note("modes", n, {"mode": "owner, embedded", **bench.run("serve", n, folder)})
    with chroma_server(bench.work / f"server-{n}") as url:
        folder, more = bench.filled(n, url), {"options": {"chroma": url}}
        with owner(bench, n, folder, **more):
            bench.note("modes", n, {"mode": "follower, HTTP", **bench.run("serve", n, folder, role="follower", **more)})
        bench.note("modes", n, {"mode": "owner, HTTP", **bench.run("serve", n, folder, **more)})


@contextlib.contextmanager
def owner(bench: Bench, n: int, folder: Path, **more: Any) -> Iterator[None]:
    """Run another process that owns the folder."""
    process = subprocess.Popen(
        bench.job("hold", n, folder, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    with process:  # leaving the block closes its input, which makes it stop
        assert process.stdout is not None
        while process.stdout.readline().strip() not in ("ready", ""):
            pass
        yield


@contextlib.contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """Run the server that chromadb installs, on a free port of this machine."""
    program = Path(sys.executable).with_name("chroma")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(program), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=5).close()
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{program} does not answer on {url}")
        yield url
    finally:
        server.terminate()
        server.wait()


def episodes(bench: Bench, n: int, number: int, block: int) -> None:
    """Play many episodes on n cases, then open the folder again."""
    with bench.copy(n) as folder:
        row = bench.run("episodes", n, folder, episodes=number, block=min(block, max(1, number // 4)))
        bench.rows += row.pop("blocks")  # the worker has already written these to the file
        bench.note("after episodes", n, {"episodes": number, **bench.run("serve", row["cases"], folder), **row})


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--episodes", type=int, default=200_000)
    parser.add_argument("--block", type=int, default=2_000, help="episodes per line in the part episodes")
    parser.add_argument("--times", type=int, help="measured recalls and rewards (default 300; 100 for up to 1,000 cases)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/scale.jsonl"))
    parser.add_argument("--cache", type=Path, default=Path("results"), help="folder of MiniLM's vectors")
    parser.add_argument("--work", type=Path, help="place of the measured folders: a path on the disk to measure")
    parser.add_argument("--show", type=Path, metavar="JSONL", help="print the tables of an earlier run and stop")
    return parser.parse_args()


def main() -> None:
    """Measure the chosen parts, and print the tables."""
    chosen = options()
    if chosen.show:
        show([json.loads(line) for line in chosen.show.read_text(encoding="utf-8").splitlines()])
        return
    largest = max(chosen.sizes)
    times = chosen.times or (100 if largest <= 1_000 else 300)
    with tempfile.TemporaryDirectory(dir=chosen.work) as work:
        texts = largest + min(largest, 1_000) + 2 * times + 101  # stored; new cases of the episodes; queries; the tail
        bench = Bench(Path(work), chosen.out, chosen.cache.resolve(), texts, times, chosen.seed)
        for part, measure in (("sizes", sizes), ("index", index), ("modes", modes)):
            for n in chosen.sizes if part in chosen.parts else ():
                print(f"{part} at {n:,} cases", flush=True)
                if part != "modes" or n >= min(10_000, largest):
                    measure(bench, n)
        if "episodes" in chosen.parts:
            n = min(largest, 10_000)
            print(f"{chosen.episodes:,} episodes at {n:,} cases", flush=True)
            episodes(bench, n, chosen.episodes, chosen.block)
        show(bench.rows)


if __name__ == "__main__":
    main()

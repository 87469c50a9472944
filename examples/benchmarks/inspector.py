"""How fast are the inspector's pages, and do they slow agents down? At 100k cases, over HTTP, from processes of their own.

    python examples/benchmarks/inspector.py                        # 100k cases, in a temporary folder
    python examples/benchmarks/inspector.py --folder ./memory      # a memory that exists
    python examples/benchmarks/inspector.py --cases 1000           # quick

Pages: the time from asking to the last byte, page by page, as a browser that follows links would ask. Agents: recalls with
rewards in one process, in turn alone and while ten open pages are each loaded again every other second. What is compared are
medians of many short turns, so that other load on the machine counts for both. Rows go to ``results/inspector.jsonl``.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from cascade_memory import CascadeMemory, Step

VERBS = [
    "heat",
    "cool",
    "clean",
    "slice",
    "toast",
    "wash",
    "open",
    "close",
    "move",
    "fetch",
    "reset",
    "cancel",
    "order",
    "refund",
    "restart",
    "check",
]
THINGS = [
    "mug",
    "cup",
    "plate",
    "apple",
    "bread",
    "router",
    "printer",
    "card",
    "invoice",
    "ticket",
    "laptop",
    "phone",
    "key",
    "lamp",
    "door",
    "bottle",
]
PLACES = (
    "cabinet",
    "fridge",
    "sink",
    "table",
    "drawer",
    "office",
    "store",
    "account",
    "server",
    "rack",
    "bank",
    "desk",
)
OPEN_PAGES = ("cases", "cases?sort=use", "cases?q=mug", "episodes", "judge", "learning", "health", "audit", "case", "episode")
EVERY = 2.0  # seconds after which an open page is loaded again


def task(rng: random.Random) -> str:
    return (
        f"{rng.choice(VERBS)} some {rng.choice(THINGS)} and put it in the {rng.choice(PLACES)}, number {rng.randrange(10**6)}"
    )


def solution(rng: random.Random) -> str:
    return f"take the {rng.choice(THINGS)}, {rng.choice(VERBS)} it, open the {rng.choice(PLACES)}, step {rng.randrange(300)}"


def mistake(rng: random.Random) -> Step:
    name = f"{rng.choice(VERBS)}_{rng.choice(THINGS)}"
    return Step(tool="sql", arguments={"query": f"SELECT {name}"}, observation=f"no such column: {name}", failed=True)


def fill(folder: Path, cases: int, episodes: int) -> None:
    rng = random.Random(0)
    with CascadeMemory(folder, embedder="hashing") as memory:
        for start in range(0, cases, 5_000):
            memory.add([(task(rng), solution(rng)) for _ in range(min(5_000, cases - start))], progress=False)
        for _ in range(episodes):
            episode_id, kind = memory.recall(task(rng)).episode_id, rng.random()
            if kind < 0.85:
                memory.reward(episode_id, rng.random() < 0.7, solution=solution(rng), source=rng.choice(["host", "human"]))
            elif kind < 0.95:
                memory.reward(episode_id, 1.0, solution=solution(rng), source="agent")
            else:
                memory.reward(episode_id, 0.0, solution=[mistake(rng)], source="env")


@contextmanager
def inspected(folder: Path) -> Iterator[httpx.Client]:
    command = [sys.executable, "-m", "cascade_memory", "serve", "inspector", str(folder), "--no-browser", "--edit"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    try:
        link = process.stderr.readline().rsplit(" ", 1)[1].strip()
        with httpx.Client(base_url=link.split("/start")[0], timeout=60) as client:
            client.get(link).raise_for_status()
            yield client
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def links(client: httpx.Client, address: str, page: str) -> list[str]:
    found = re.findall(rf'href="(/{page}\?[^"]+)"', loaded(client, address).text)
    return [html.unescape(one) for one in found]


def loaded(client: httpx.Client, address: str) -> httpx.Response:
    """Load a page, and again while it says that something is being measured."""
    while True:
        answer = client.get(address)
        answer.raise_for_status()
        if 'http-equiv="refresh"' not in answer.text:
            return answer
        time.sleep(0.2)


def walks(client: httpx.Client, rng: random.Random) -> dict[str, Callable[[], str]]:
    """Return, for each page, a function that names the next address to ask for."""
    cases = [one for sort in ("newest", "oldest", "shown", "use") for one in links(client, f"/cases?sort={sort}", "case")]
    episodes = [one for source in ("host", "human", "agent") for one in links(client, f"/episodes?source={source}", "episode")]
    warnings = links(client, "/warnings", "warning")
    here: dict[str, str] = {}

    def following(start: str) -> Callable[[], str]:
        def address() -> str:
            asked = here.get(start, start)
            more = [html.unescape(one) for one in re.findall(r'rel="next" href="([^"]+)"', client.get(asked).text)]
            here[start] = more[0] if more else start
            return here[start]

        return address

    found = {f"cases, {sort}": following(f"/cases?sort={sort}") for sort in ("newest", "oldest", "shown", "successes", "use")}
    found |= {"cases of a source": following("/cases?source=human"), "episodes": following("/episodes")}
    found |= {name: (lambda name=name: f"/{name}") for name in ("judge", "warnings", "learning", "health", "audit")}
    found |= {"a case": lambda: rng.choice(cases), "an episode": lambda: rng.choice(episodes)}
    found |= {"a warning": lambda: rng.choice(warnings)} if warnings else {}
    found |= {
        "search, many": lambda: f"/cases?q={rng.choice(VERBS)}+{rng.choice(THINGS)}",
        "search, one": lambda: f"/cases?q={rng.choice(THINGS)}+{rng.randrange(10**6)}",
        "search, none": lambda: f"/cases?q=nothing+like+{rng.randrange(10**6)}",
        "search, by use": lambda: f"/cases?sort=use&q={rng.choice(THINGS)}+{rng.choice(PLACES)}",
    }
    return found


def page_times(client: httpx.Client, times: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, address in walks(client, random.Random(1)).items():
        loaded(client, address())
        took: list[float] = []
        for _ in range(times):
            asked = address()
            began = time.perf_counter()
            client.get(asked).raise_for_status()
            took.append(1_000 * (time.perf_counter() - began))
        took.sort()
        rows.append(
            {"page": name, "median_ms": round(statistics.median(took), 1), "p95_ms": round(took[int(0.95 * (times - 1))], 1)}
        )
        print(f"{name:20} {rows[-1]['median_ms']:8.1f} ms   p95 {rows[-1]['p95_ms']:8.1f} ms", flush=True)
    return rows


class OpenPages(threading.Thread):
    """Ten pages that are loaded again every other second, while they are open."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(daemon=True)
        one = {"case": links(client, "/cases?sort=shown", "case")[0], "episode": links(client, "/episodes", "episode")[0]}
        self._addresses = [one.get(page, f"/{page}") for page in OPEN_PAGES]
        self._client = client
        self.opened, self.over = threading.Event(), threading.Event()

    def run(self) -> None:
        turn = 0
        while not self.over.wait(EVERY / len(self._addresses)):
            if self.opened.is_set():
                self._client.get(self._addresses[turn % len(self._addresses)])
                turn += 1


def agent_times(folder: Path, client: httpx.Client, turns: int, recalls: int) -> dict[str, Any]:
    """Time recalls in turns, alone and with open pages: A B, B A, A B, ..."""
    rng, pages = random.Random(2), OpenPages(client)
    took: dict[bool, list[float]] = {False: [], True: []}
    pages.start()
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.warm()
        for turn in range(turns):
            for opened in ((False, True), (True, False))[turn % 2]:
                (pages.opened.set if opened else pages.opened.clear)()
                time.sleep(0.3)
                for _ in range(recalls):
                    asked = task(rng)
                    began = time.perf_counter()
                    episode_id = memory.recall(asked).episode_id
                    took[opened].append(1_000 * (time.perf_counter() - began))
                    memory.reward(episode_id, 0.0)
                    time.sleep(0.02)  # agents think
    pages.over.set()
    pages.join()
    alone, beside = (statistics.median(took[opened]) for opened in (False, True))
    row = {"alone_ms": round(alone, 3), "beside_ten_pages_ms": round(beside, 3), "ratio": round(beside / alone, 3)}
    tails = [sorted(took[opened])[int(0.95 * len(took[opened]))] for opened in (False, True)]
    row |= {"alone_p95_ms": round(tails[0], 3), "beside_p95_ms": round(tails[1], 3), "recalls": len(took[False])}
    print(
        f"recalls: {alone:.2f} ms alone, {beside:.2f} ms beside ten open pages: {100 * (beside / alone - 1):+.1f} %", flush=True
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="a memory that exists, made with the hashing embedder")
    parser.add_argument("--part", choices=("both", "pages", "agents"), default="both")
    parser.add_argument("--times", type=int, default=60, help="how often each page is asked for")
    parser.add_argument("--turns", type=int, default=8, help="turns of recalls, alone and beside open pages")
    parser.add_argument("--recalls", type=int, default=60, help="recalls in each turn")
    parser.add_argument("--out", type=Path, default=Path("results/inspector.jsonl"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "memory"
        if options.folder is None:
            fill(folder, options.cases, options.episodes)
        with inspected(folder) as client:
            loaded(client, "/learning")  # loads the namespace
            row: dict[str, Any] = {}
            if options.part != "agents":
                row["pages"] = page_times(client, options.times)
            if options.part != "pages":
                row["agents"] = agent_times(folder, client, options.turns, options.recalls)
        with CascadeMemory(folder, embedder="stored") as memory:
            row |= {"cases": len(memory), "machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

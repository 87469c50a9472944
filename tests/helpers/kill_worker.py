"""What is killed: an agent with several threads on one folder, whose Chroma saves as often as it can."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forks import say

from cascade_memory import CascadeMemory
from cascade_memory.engine import feeding_pace
from cascade_memory.engine import mirror_feeder as feeder
from cascade_memory.errors import UnknownEpisode
from cascade_memory.stores.chroma import ChromaFolder

SYNC_THRESHOLD = 16  # records between two saves of the HNSW files


def hasten_chroma() -> None:
    """Feed without rests, and save after every batch. For this process only."""
    feeder.INTERVAL, feeder.REST, feeder.BATCH, feeding_pace.QUIET = 0.02, 0.1, 24, 0.0
    collection = ChromaFolder.collection

    def saving_often(self: ChromaFolder, namespace: str) -> Any:
        known = namespace in self._collections
        found = collection(self, namespace)
        if not known:
            often = {"hnsw": {"sync_threshold": SYNC_THRESHOLD, "batch_size": SYNC_THRESHOLD // 2}}
            self._api._modify(found, new_configuration=often)
        return found

    ChromaFolder.collection = saving_often


def signature(folder: Path) -> str:
    """Return what tells whether the HNSW files were touched."""
    found = []
    for file in sorted(folder.glob("chroma/*/*")):
        try:
            stat = file.stat()
        except OSError:
            continue
        found.append(f"{stat.st_mtime_ns % 10**12}.{stat.st_size}")
    return "-".join(found) or "none"


def announce_writes(folder: Path, pipe: int) -> None:
    """Tell when Chroma begins to write, with the look of its files before, and when it has ended."""

    def announced(write: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any, **options: Any) -> None:
            say(pipe, "writing", signature(folder))
            write(*args, **options)
            say(pipe, "written")

        return call

    ChromaFolder.upsert = announced(ChromaFolder.upsert)
    ChromaFolder.delete = announced(ChromaFolder.delete)


class Agent:
    """Threads that recall, reward, add and forget until they are killed; each tells what was acknowledged, after it was."""

    def __init__(self, memory: CascadeMemory, pipe: int, seed: int, *, written_at_once: bool) -> None:
        self._memory, self._pipe, self._seed, self._written_at_once = memory, pipe, seed, written_at_once
        self._mine: list[tuple[str, str]] = []  # (case, its episode or "-") that may be forgotten

    def run(self) -> None:
        """Work until the kill."""
        works = [self._settle, self._settle, self._settle, self._add, self._forget]
        threads = [threading.Thread(target=self._guarded, args=(work, i), daemon=True) for i, work in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guarded(self, work: Callable[[random.Random, str], None], number: int) -> None:
        rng, step = random.Random(self._seed * 10 + number), 0
        try:
            while True:
                work(rng, f"{self._seed}.{number}.{step}")
                step += 1
                time.sleep(rng.random() * 0.02)
        except BaseException as error:
            say(self._pipe, "!", f"{work.__name__}: {error!r}"[:2000])

    def _settle(self, rng: random.Random, name: str) -> None:
        recall = self._memory.recall(f"task {name} of kind {rng.randrange(7)}")
        if recall.error:
            raise RuntimeError(recall.error)
        # With a deadline a recall may wait to be written down, in a process that is killed: whoever asks for it knows.
        written = self._written_at_once or self._memory.episodes.get(recall.episode_id) is not None
        if written:
            say(self._pipe, "recalled", recall.episode_id)
        if rng.random() < 0.1:
            return  # left open
        value = float(rng.random() < 0.8)
        try:
            case = self._memory.reward(recall.episode_id, value, solution=f"solution {rng.randrange(40)}")
        except UnknownEpisode:
            if written:
                raise
            return  # what was shown was forgotten while the recall waited; the reward says so
        say(self._pipe, "settled", recall.episode_id, value, case or "-")
        if case:
            self._mine.append((case, recall.episode_id))

    def _add(self, rng: random.Random, name: str) -> None:
        say(self._pipe, "adding", name)
        number = rng.randrange(40)
        cases = [(f"known task {name}.{i}", f"solution {number}", {"batch": name}) for i in range(3)]
        ids = self._memory.add(cases, progress=False)
        say(self._pipe, "added", name, *ids)
        self._mine.append((ids[0], "-"))

    def _forget(self, rng: random.Random, name: str) -> None:
        time.sleep(0.05)
        if len(self._mine) > 3:
            case, episode = self._mine.pop(rng.randrange(len(self._mine)))
            say(self._pipe, "forgetting", case, episode)
            self._memory.forget(case)
            say(self._pipe, "forgot", case, episode)


def work_until_killed(folder: Path, seed: int, pipe: int) -> None:
    """Open the folder and let the agent loose."""
    hasten_chroma()
    announce_writes(folder, pipe)
    deadline = {} if seed % 2 else {"deadline": None}
    Agent(CascadeMemory(folder, embedder="hashing", **deadline), pipe, seed, written_at_once=bool(deadline)).run()

"""A deterministic world whose answers are kept: what was done in it once need not be done again."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.domain import connect


class RealWorld(Protocol):
    """A deterministic world: if a task is begun again, the same actions have the same results."""

    def begin(self, place: str) -> None:
        """Begin a task from its beginning."""
        ...

    def act(self, action: str) -> str | None:
        """Perform an action and return what is observed; None if the world refuses it."""
        ...

    def look(self) -> str:
        """Describe what is seen."""
        ...

    def possible(self) -> list[str]:
        """List the actions that are possible now."""
        ...

    @property
    def over(self) -> bool:
        """Whether the task is solved, or cannot be solved any more."""
        ...

    @property
    def solved(self) -> bool:
        """Whether the task is solved."""
        ...

    def close(self) -> None:
        """End the world."""
        ...


class KnownWorld:
    """Answers from a file where it can; it starts the real world only for answers that the file does not have.

    The real world is then brought to the same point of the task. An answer depends on the task and on everything that was done
    since its beginning, in this order. Any number of runs share the file, one after the other or at the same time.
    """

    def __init__(self, file: Path, version: str, start: Callable[[], RealWorld]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = connect(file, timeout=60.0, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")  # answers lost in a power failure are asked for again
        self._file.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID")
        self._version, self._start = version, start
        self._real: RealWorld | None = None
        self._real_at: tuple[str, list[str]] | None = None  # the place of the real world, and what was done there
        self._place, self._done, self._key = "", list[str](), b""
        self._over = self._solved = False

    def begin(self, place: str, *, about: str = "") -> None:
        """Begin a task from its beginning; besides its name, ``place``, the answers depend on ``about``."""
        self._place, self._done, self._over, self._solved = place, [], False, False
        self._key = _key(self._version.encode(), f"{place}\n{about}")

    def act(self, action: str) -> str | None:
        """Perform an action and return what is observed; None if the world refuses it."""
        key = _key(self._key, f"> {action}")
        answer = self._known(key)
        if answer is None:
            real = self._brought_here()
            observation = real.act(action)
            self._here()[1].append(action)
            answer = self._kept(key, [observation, real.over, real.solved])
        self._key = key
        self._done.append(action)
        observation, self._over, self._solved = answer
        return observation

    def look(self) -> str:
        """Describe what is seen."""
        return str(self._asked("look", lambda real: real.look()))

    def possible(self) -> list[str]:
        """List the actions that are possible now."""
        return list(self._asked("possible", lambda real: real.possible()))

    @property
    def over(self) -> bool:
        """Whether the task is solved, or cannot be solved any more."""
        return self._over

    @property
    def solved(self) -> bool:
        """Whether the task is solved."""
        return self._solved

    def close(self) -> None:
        """Close the file, and end the world if it was started."""
        self._file.close()
        if self._real is not None:
            self._real.close()

    def _asked(self, question: str, ask: Callable[[RealWorld], Any]) -> Any:
        key = _key(self._key, f"? {question}")
        answer = self._known(key)
        return self._kept(key, ask(self._brought_here())) if answer is None else answer

    def _brought_here(self) -> RealWorld:
        """Return the real world at the present point of the task; begin the task again if the world has done something else."""
        if self._real is None:
            self._real = self._start()
        place, done = self._real_at or ("", [])
        if place != self._place or self._done[: len(done)] != done or self._real_at is None:
            self._real.begin(self._place)
            self._real_at = (self._place, [])
        for action in self._done[len(self._here()[1]) :]:
            self._real.act(action)
            self._here()[1].append(action)
        return self._real

    def _here(self) -> tuple[str, list[str]]:
        assert self._real_at is not None
        return self._real_at

    def _known(self, key: bytes) -> Any:
        row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(zlib.decompress(row[0]))

    def _kept(self, key: bytes, answer: Any) -> Any:
        packed = zlib.compress(json.dumps(answer).encode())
        self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, packed))
        return answer


def _key(before: bytes, then: str) -> bytes:
    return hashlib.sha256(before + b"\n" + then.encode()).digest()[:16]

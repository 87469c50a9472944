"""What recalls cost: the time of each step, and the length of the text that they put into a prompt."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

STEPS = ("embed", "search", "rank", "write")
_BYTES_PER_TOKEN = 4  # of English text, about; other scripts take more bytes per character and more tokens


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a text has, without a tokenizer: one for every four bytes in UTF-8.

    >>> estimated_tokens("Take the mug to the sink.")
    7
    """
    return math.ceil(len(text.encode()) / _BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one recall cost. A time is nan if the recall failed before that step was over.

    ``embed``, ``search``, ``rank`` and ``write`` are milliseconds of the wall clock. They measure, in this order: embedding the
    query; finding the candidates and reading the chosen cases; choosing; storing the recall. Not included are learning, and
    loading a model or a namespace, which happens once. ``characters`` is the length of ``recall.render()``. ``tokens`` is an
    *estimate* for that text, a quarter of its bytes: models count differently, most of all in code and in other scripts than
    Latin.
    """

    embed: float
    search: float
    rank: float
    write: float
    characters: int
    tokens: int

    @property
    def milliseconds(self) -> float:
        """The sum of the steps that were done."""
        steps = (self.embed, self.search, self.rank, self.write)
        return sum(one for one in steps if not math.isnan(one))

    def __str__(self) -> str:
        """Format as one line."""
        steps = ", ".join(f"{name} {getattr(self, name):.1f}" for name in STEPS)
        return f"{self.milliseconds:.1f} ms ({steps}); {self.characters:,} characters, about {self.tokens:,} tokens"


class Totals:
    """The sums over all recalls of a namespace that this process has made; several threads add to them.

    It is no dataclass, so that ``dataclasses.asdict(recall)`` does not look into it and find a lock.
    """

    def __init__(self) -> None:
        self.recalls = 0
        self.embed = self.search = self.rank = self.write = 0.0  # seconds
        self.rendered = 0  # recalls whose text was asked for with the memory's own template
        self.characters = self.tokens = 0
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, object] | None = None) -> Totals:
        """Return this same object: each namespace has only one."""
        return self


@dataclass(slots=True, eq=False)
class Spent:
    """What a recall has spent so far, in seconds; the engine fills it while it works."""

    totals: Totals
    embed: float = math.nan
    search: float = math.nan
    rank: float = math.nan
    write: float = math.nan
    rendered: bool = False

    def note_rendered(self, text: str) -> None:
        """Add the text of this recall to the totals, the first time that somebody asks for it."""
        tokens = estimated_tokens(text)
        with self.totals.lock:
            if not self.rendered:
                self.rendered = True
                self.totals.rendered += 1
                self.totals.characters += len(text)
                self.totals.tokens += tokens

    def cost(self, text: str) -> Cost:
        """Return the cost of the recall that renders as this text."""
        steps = {name: 1000 * getattr(self, name) for name in STEPS}
        return Cost(**steps, characters=len(text), tokens=estimated_tokens(text))

    def __deepcopy__(self, memo: dict[int, object] | None = None) -> Spent:
        """Return this same object: copying a recall causes no further costs."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the recalls and searches of this process cost since it opened the memory, in total.

    ``embed``, ``search``, ``rank`` and ``write`` are milliseconds. ``characters`` and ``tokens`` (an estimate, see ``Cost``)
    count what ``render()`` and ``messages()`` returned, once for each recall; ``rendered`` is the number of those recalls.
    """

    recalls: int
    embed: float
    search: float
    rank: float
    write: float
    rendered: int
    characters: int
    tokens: int

    @classmethod
    def of(cls, totals: list[Totals]) -> Costs | None:
        """Add up the totals of some namespaces; None if there was no recall."""
        whole = {name: sum(getattr(one, name) for one in totals) for name in ("recalls", "rendered", "characters", "tokens")}
        if not whole["recalls"]:
            return None
        return cls(**whole, **{name: 1000 * sum(getattr(one, name) for one in totals) for name in STEPS})

    def __str__(self) -> str:
        """Format as one or two lines."""
        each = {name: getattr(self, name) / self.recalls for name in STEPS}
        steps = ", ".join(f"{name} {value:.1f}" for name, value in each.items())
        lines = [f"{sum(each.values()):.1f} ms a recall ({steps}), over {self.recalls:,} recalls and searches of this process"]
        if self.rendered:
            of = f"{self.characters:,} characters, about {self.tokens:,} tokens (estimated)"
            lines.append(f"{self.rendered:,} texts for prompts: {of}")
        return "\n".join(lines)

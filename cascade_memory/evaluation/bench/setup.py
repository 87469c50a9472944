"""What a user sets for all methods of a benchmark: a reranker, an embedder, k, alpha and a learning rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cascade_memory.encoders import digest_of, folder_of_model
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import KNOWN, parameters_of
from cascade_memory.evaluation.bench.on_reranker import RERANKED
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.tuning import canonical


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Settings for a benchmark's methods: a method takes those that concern it, and they are part of what identifies its rows.

    >>> setup = Setup(k=4, alpha=0.3)
    >>> setup.of(Run("rca", "CASCADE", seed=0)).options, setup.of(Run("rca", "zero-shot", seed=0)).options
    ('{"alpha": 0.3, "k": 4.0}', '')

    Args:
        ranker: A reranker, as a folder or a name on the hub: the paper's methods choose with it instead of the light features.
        embedder: An embedder, as a folder or a name on the hub, for the recall of all methods with a memory.
        k: How many cases are shown by a method whose name does not say it.
        alpha: The weight of the exploration bonus in methods that explore.
        learning_rate: The learning rate of Neural-LinLogUCB and Neural-LinUCB: of the encoder and of the head.
        settings: A function that returns the alpha and the learning rate for a run, such as ``AuthorsSettings()``. Values that
            are given above count more.
    """

    ranker: str | None = None
    embedder: str | None = None
    k: int | None = None
    alpha: float | None = None
    learning_rate: float | None = None
    settings: Callable[[Run], Mapping[str, float]] | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InvalidInput(f"k must be at least 1, not {self.k}")
        for name in ("alpha", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < float("inf"):
                raise InvalidInput(f"{name} must be a number of at least 0, not {value}")

    @cached_property
    def _models(self) -> Mapping[str, tuple[str, str]]:
        """The name in rows and the folder of each model; the name includes a digest of the model's files."""
        found: dict[str, tuple[str, str]] = {}
        for kind, given in (("ranker", self.ranker), ("embedder", self.embedder)):
            if given:
                folder = folder_of_model(given)
                name = Path(given).resolve().name if Path(given).is_dir() else given
                found[kind] = (f"{name}@{digest_of(folder)}", str(folder))
        return found

    @property
    def folders(self) -> Mapping[str, str]:
        """The folder of each model by its name in rows."""
        return dict(self._models.values())

    def of(self, run: Run) -> Run:
        """Return a run with the settings that concern its method."""
        method = HUMAN[run.method].method if run.method in HUMAN else run.method
        if KNOWN.get(method) is None:
            return run  # it has no memory
        used = [kind for kind in self._models if kind == "embedder" or method in RERANKED]
        models = json.dumps({kind: self._models[kind][0] for kind in used}, sort_keys=True, ensure_ascii=False) if used else ""
        given = {"k": self.k, "alpha": self.alpha, "learning_rate": self.learning_rate}
        usual = {} if self.settings is None else self.settings(replace(run, method=method))
        theirs = {name: usual[name] for name in parameters_of(method) if name in usual and given[name] is None}
        taken = {**theirs, **{name: value for name in parameters_of(method) if (value := given[name]) is not None}}
        options = canonical({**taken, **json.loads(run.options or "{}")}) if taken or run.options else ""
        return replace(run, options=options, models=models, settings=", ".join(sorted(theirs)))


def under_each(setups: Setup | Sequence[Setup] | None, runs: Iterable[Run]) -> tuple[list[Run], Mapping[str, str]]:
    """Return the runs under each of the settings, without those that come out the same, and the folders of their models.

    >>> runs, _ = under_each([Setup(alpha=0.1), Setup(alpha=0.5)], [Run("rca", "zero-shot", 0), Run("rca", "CASCADE", 0)])
    >>> [(run.method, run.options) for run in runs]
    [('zero-shot', ''), ('CASCADE', '{"alpha": 0.1}'), ('CASCADE', '{"alpha": 0.5}')]
    """
    each = [setups] if isinstance(setups, Setup) else setups or [Setup()]
    found = list(dict.fromkeys(setup.of(run) for run in runs for setup in each))
    return found, {name: folder for setup in each for name, folder in setup.folders.items()}


def told_apart(rows: Iterable[Row]) -> list[Row]:
    """Return the rows; if a method was played with different models, add to its name the models of each row.

    >>> told_apart([{"task": "rca", "method": "CASCADE", "models": ""}])[0]["method"]
    'CASCADE'
    """
    rows = list(rows)
    used: dict[str, set[str]] = {}
    for row in rows:
        used.setdefault(str(row.get("method")), set()).add(str(row.get("models") or ""))
    return [_named(row) if len(used[str(row.get("method"))]) > 1 else row for row in rows]


def _named(row: Row) -> Row:
    try:
        models: Mapping[str, str] = json.loads(row.get("models") or "{}")
        said = ", ".join(f"{kind} {name}" for kind, name in models.items())
    except (ValueError, AttributeError) as error:
        raise InvalidInput("a row has no usable 'models': these are not rows that bench run wrote") from error
    return {**row, "method": f"{row['method']} ({said})"} if said else row

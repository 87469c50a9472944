"""``memory.models``: which models made the cases, and what came of the episodes of each."""

from __future__ import annotations

from cascade_memory.capabilities.models.engine_part import Naming
from cascade_memory.capabilities.models.tallies import ModelTally, tallies
from cascade_memory.domain.validation import check_id
from cascade_memory.memory import Capable, explained


@explained
class Models(Capable):
    """Which models answered the tasks of a namespace.

    The name is the field ``model`` of the metadata of an episode and its case. The memories for LangChain and LlamaIndex fill
    it in from the responses of the model. ``recall`` and ``reward`` take it like any other field: ``metadata={"model": ...}``.
    """

    def all(self) -> list[ModelTally]:
        """Return what came of the episodes of each model, and how many cases it made; the models with the most episodes first.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> recall = memory.recall("cool some mug", metadata={"model": "gpt-5.2"})
        >>> case_id = memory.reward(recall.episode_id, 1.0, solution="put it into the fridge")
        >>> [(one.model, one.episodes, one.cases) for one in memory.models.all()]
        [('gpt-5.2', 1, 1)]
        """
        with self._reading() as tx:
            return tallies(tx, self._namespace_id())

    def answered(self, episode_id: str, name: object) -> None:
        """Say which model has just answered in an episode that is under way; adapters call this for each response.

        When the episode ends or is rewarded, the last name is stamped on it, unless its metadata name a model already. What is
        no name (None, more than 256 characters, hidden characters) is left out. Nothing is stored before, so it takes a moment.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> recall = memory.recall("cool some mug")
        >>> memory.models.answered(recall.episode_id, "gpt-5.2")
        >>> case_id = memory.reward(recall.episode_id, 1.0, solution="put it into the fridge")
        >>> memory.cases.get(case_id).metadata
        {'model': 'gpt-5.2'}
        """
        part = next(part for part in self._open().capable if isinstance(part, Naming))
        part.answered(check_id(episode_id, "episode_id"), name, self._namespace)

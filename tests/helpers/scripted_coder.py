"""A scripted model for questions about a hospital: it copies the code of a shown case, or writes what it knows."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence

from cascade_memory.evaluation.environments.hospital.questions import Question
from cascade_memory.evaluation.reuse.code import Vocabulary, adapted

_CODE = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
_CASE = re.compile(r"^Task: (.*?)\nSolution:\n(.*)", re.MULTILINE | re.DOTALL)


class ScriptedCoder:
    """Knows the code of one question in three; what it writes itself calls a tool by a wrong name at first."""

    def __init__(self, questions: Sequence[Question], vocabulary: Vocabulary) -> None:
        self._known = {one.text: one.code for one in questions}
        self._vocabulary = vocabulary

    def knows(self, question: str) -> bool:
        return zlib.crc32(question.encode()) % 3 == 0

    def say(self, messages: Sequence[Mapping[str, str]]) -> str:
        asked = messages[1]["content"]
        question = asked.rsplit(" end\n", 1)[-1]
        debugging = len(messages) > 2
        case = _CASE.search(asked)
        if case is not None:
            code = self._copied(case, question)
        elif self.knows(question):
            code = self._known[question]
            code = code if debugging else f"found = GetColumn(1)\n{code}"
        else:
            code = "answer = GetValue(LoadDB('records'), 'ANSWER')"
        return f"Here it is:\n```python\n{code}\n```"

    def _copied(self, case: re.Match[str], question: str) -> str:
        code = _CODE.findall(case[2])[-1]  # that of the last round
        return adapted(code, self._vocabulary.values(case[1]), self._vocabulary.values(question))

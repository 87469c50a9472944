"""What a model is shown for a question about health records, as a text that a person can read.

python tests/helpers/shown_code_prompts.py     # writes the fixture anew after a change of wording
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from cascade_memory.domain.recall import RecalledCase
from cascade_memory.evaluation.environments.hospital.questions import Question
from cascade_memory.evaluation.environments.hospital.rounds import Records
from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital
from cascade_memory.evaluation.model import Asking
from cascade_memory.evaluation.model.chat import Message, Reply
from cascade_memory.evaluation.model.coding import CodeSolver

SHOWN = Path(__file__).parent.parent / "fixtures" / "prompts" / "mimic-iii.txt"
ASKED = Question("how many kinds of lab tests are there?", "12")
WRONG = "```python\nanswer = len(LoadDB('labs'))\n```"
RIGHT = "```python\nanswer = len(LoadDB('d_labitems'))\n```"


class Told:
    """A chat model that gives its replies one after the other, the last one again and again."""

    name: ClassVar[str] = "scripted"
    settings: ClassVar[dict[str, Any]] = {"temperature": 0.0}

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[Sequence[Message]] = []

    def complete(self, messages: Sequence[Message], note: object) -> Reply:
        self.asked.append(messages)
        return Reply(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])


def shown(records: Records) -> str:
    """Write the messages of a first round, of a round after an error, and of a first round with the case of both."""
    chat = Told(WRONG, RIGHT)
    attempt = CodeSolver([ASKED], records, Asking(chat)).attempt(0, ())
    numbers = dict.fromkeys(("similarity", "utility", "uncertainty", "score"), 0.9)
    case = RecalledCase(id="1", query="count the lab tests", solution=attempt.answer or "", metadata={}, **numbers)
    again = Told(RIGHT)
    CodeSolver([ASKED], records, Asking(again)).attempt(0, [case])
    named = {"without a case": chat.asked[0], "after an error": chat.asked[1], "with a case": again.asked[0]}
    parts = [f"{'=' * 20} mimic-iii and hospital, {name}\n\n{_text(messages)}" for name, messages in named.items()]
    return "\n\n".join(parts) + "\n"


def _text(messages: Sequence[Message]) -> str:
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def main() -> None:
    """Write the fixture."""
    SHOWN.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Records(build_hospital(Path(folder) / "h.sqlite", patients=1)) as records:
        SHOWN.write_text(shown(records), encoding="utf-8")
    sys.stdout.write(f"written to {SHOWN}\n")


if __name__ == "__main__":
    main()

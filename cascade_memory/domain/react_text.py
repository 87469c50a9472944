"""Reading the transcript of a ReAct agent that writes its steps as text."""

from __future__ import annotations

import re

from cascade_memory.domain.trajectory import Step, Trajectory

_LABEL = re.compile(r"^[ \t]*(Thought|Action Input|Action|Observation|Final Answer)[ \t]*\d*[ \t]*:[ \t]*", re.MULTILINE)


def is_react(text: str) -> bool:
    r"""Say whether a text contains actions in the ReAct format.

    >>> is_react("Thought: look first\nAction: look"), is_react("It is 42.")
    (True, False)
    """
    labels = [label for label, _ in _parts(text)]
    return "Action" in labels and ("Action Input" in labels or "Thought" in labels)


def read_react(text: str) -> Trajectory | None:
    r"""Parse a transcript into its steps; None if it has no steps.

    >>> text = "Thought: I need the key.\nAction: search\nAction Input: key\nObservation: on the shelf\nFinal Answer: shelf"
    >>> walk = read_react(text)
    >>> walk.steps[0].thought, walk.steps[0].action, walk.steps[0].observation, walk.answer
    ('I need the key.', 'search: key', 'on the shelf', 'shelf')
    """
    steps: list[dict[str, str]] = []
    thought = answer = ""
    for label, content in _parts(text):
        if label == "Thought":
            thought = content
        elif label == "Action":
            steps.append({"thought": thought, "action": content})
            thought = ""
        elif label == "Action Input" and steps and content:
            steps[-1]["action"] = f"{steps[-1]['action']}: {content}"
        elif label == "Observation" and steps:
            steps[-1]["observation"] = content
        elif label == "Final Answer":
            answer = content
    kept = [
        Step(action=step["action"], thought=step["thought"], observation=step.get("observation", ""))
        for step in steps
        if step["action"] or step["thought"]
    ]
    return Trajectory(kept, answer=answer) if kept else None


def thought_of(text: str) -> str:
    r"""Extract the thought that a model wrote before its action.

    >>> thought_of("Thought: I need the key.\nAction: search")
    'I need the key.'
    """
    parts = _parts(text)
    if not parts:
        return text.strip()
    return next((content for label, content in parts if label == "Thought"), "")


def _parts(text: str) -> list[tuple[str, str]]:
    found = list(_LABEL.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    pairs = zip(found, ends, strict=False)  # if no label was found, ``ends`` has one entry too many
    return [(match.group(1), text[match.end() : end].strip()) for match, end in pairs]

"""Sentences about the intervals: where memory helps, where it does not, and where this is not known."""

from __future__ import annotations

from cascade_memory.evaluation.bench.summary import STATIC
from cascade_memory.evaluation.report.differences import Difference, Verdict, comparable, helped, on_average, on_task
from cascade_memory.evaluation.report.section import Section

NO_MEMORY = "zero-shot"
_OURS = "CASCADE"
_SAYS: dict[Verdict, str] = {
    "more": "solves more than {base} on",
    "fewer": "solves FEWER than {base} on",
    "open": "cannot be distinguished from {base} on",
}
_MANY_SAY: dict[Verdict, str] = {
    "fewer": "solve FEWER than no memory",
    "open": "cannot be distinguished from no memory",
}
Sentence = tuple[Verdict, str]


def subject(section: Section) -> str:
    """Return the method that the section is about: CASCADE, or otherwise the last one with a memory."""
    with_memory = _memories(section) or section.methods
    return _OURS if _OURS in with_memory else with_memory[-1]


def solver_in_words(section: Section) -> str:
    """Say what a solver that is no language model does."""
    if section.solver == "simulated":
        return (
            "SIMULATED means: no language model solved these tasks. A rule draws whether a task is solved. It succeeds at a "
            "declared rate without a case, nearly always with a right case, and a wrong case spoils some of its successes. So "
            "the figures compare ways to choose cases, and do not say how well a model would do."
        )
    if section.solver.startswith("reuse"):
        return (
            "The agent is a program, no language model: it adapts the trajectory or the query that it is shown, and really "
            "succeeds or fails. It solves a fixed share of the tasks alone."
        )
    return ""


def is_of_no_memory(sentence: Sentence) -> bool:
    """Say whether a sentence compares a method with the method that has no memory."""
    return "no memory on " in sentence[1]


def against(section: Section, method: str, base: str) -> list[Sentence]:
    """Say on which tasks a method is ahead of another one, behind it, or neither."""
    found = {task: on_task(section, task, method, base) for task in section.tasks}
    return _sentences(method, _called(base), {task: one for task, one in found.items() if one is not None})


def where_memory_does_not_help(section: Section) -> list[Sentence]:
    """Return sentences that name the tasks without a certain gain.

    First come the gains of the subject over methods with a fixed order (``STATIC``, such as similarity), then those of any
    memory over no memory.
    """
    ours = subject(section)
    bases = [base for base in STATIC if base in section.methods and base != ours]
    lines = [one for base in bases for one in against(section, ours, base) if one[0] != "more"]
    return lines + _of_no_help(section)


def _of_no_help(section: Section) -> list[Sentence]:
    if NO_MEMORY not in section.methods:
        return [
            (
                "open",
                f"No method without memory was played, so it is not known whether memory helps: add {NO_MEMORY}.",
            )
        ]
    lines: list[Sentence] = []
    for task in section.tasks:
        found = {method: on_task(section, task, method, NO_MEMORY) for method in _memories(section)}
        for verdict, says in _MANY_SAY.items():
            which = [f"{method} ({one})" for method, one in found.items() if one is not None and one.verdict == verdict]
            if which:
                lines.append((verdict, f"On {task}: {'; '.join(which)} {says}."))
    return lines or [("more", "Every memory solves more than no memory on every task.")]


def against_the_best_rival(section: Section) -> Sentence | None:
    """Say whether, and by how much, the subject is ahead on average of its best rival; None if it has no rival.

    A rival has played all tasks of the subject, is no variant of CASCADE, and had no help from a human.
    """
    ours = subject(section)
    tasks = comparable(section, ours, ours)
    ahead = {
        rival: one
        for rival in section.methods
        if rival != ours
        and not rival.startswith(_OURS)
        and not helped(section, rival)
        and (one := on_average(section, tasks, ours, rival)) is not None
    }
    if not ahead:
        return None
    rival = min(ahead, key=lambda name: ahead[name].mean)
    over = f"the mean over {len(tasks)} tasks"
    says = {"more": "is ahead of", "fewer": "is BEHIND", "open": "cannot be distinguished from"}[ahead[rival].verdict]
    return ahead[rival].verdict, f"In {over}, {ours} {says} its best rival, {_called(rival)}: {ahead[rival]} points."


def _memories(section: Section) -> list[str]:
    """Return the methods that have a memory and no help from a human."""
    return [method for method in section.methods if method != NO_MEMORY and not helped(section, method)]


def _called(base: str) -> str:
    return "no memory" if base == NO_MEMORY else base


def _sentences(method: str, base: str, found: dict[str, Difference]) -> list[Sentence]:
    lines: list[Sentence] = []
    for verdict, says in _SAYS.items():
        which = [f"{task} ({one})" for task, one in found.items() if one.verdict == verdict]
        if which:
            lines.append((verdict, f"{method} {says.format(base=base)} {', '.join(which)}."))
    return lines


def compared_with(section: Section) -> list[str]:
    """Return the methods that the subject is compared with; the one without memory comes first."""
    return [base for base in dict.fromkeys((NO_MEMORY, *section.bases)) if base in section.methods and base != subject(section)]

"""What the paper's authors ran: the language models, how these sampled, and the settings of CASCADE for each model and task.

The facts are those of their published scripts (github.com/guosyjlu/CASCADE, revision 3598c48).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cascade_memory.evaluation.bench.plan import Run

# A solver's name has one of these in it, whatever its server calls it ("Qwen/Qwen3-32B").
MODELS = ("Qwen3-4B", "Qwen3-8B", "Qwen3-14B", "Qwen3-32B", "gemini-2.0-flash")
USUAL, SEARCHER = "Qwen3-32B", "Qwen3-30B-A3B"  # the second one plays 2wiki
_WHOLE_NAMES = {"Qwen3-4B": "Qwen3-4B-Instruct-2507", SEARCHER: "Qwen3-30B-A3B-Instruct-2507"}  # of those whose names go on
_WORLDS = ("alfworld", "scienceworld", "mimic-iii")  # played by the usual model only

_SERVED: Mapping[str, Any] = {"temperature": 0.1, "top_p": 0.8, "presence_penalty": 1.5, "top_k": 20}
_BEHIND_AN_API: Mapping[str, Any] = {"temperature": 0.05, "top_p": 0.8}
_DO_NOT_THINK = {"chat_template_kwargs": {"enable_thinking": False}}

# A learning rate (of the reranker) and an alpha (of the exploration) for each task.
_SETTINGS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "Qwen3-4B": {
        **{"ddxplus": (2e-5, 0.1), "mimic-iv-msr": (2e-5, 0.4), "mimic-iv-tlp": (5e-6, 0.5), "mud": (1e-5, 0.1)},
        **{"cmdl": (1e-5, 0.2), "banking77": (2e-5, 0.2), "sentifin": (5e-6, 0.6), "rca": (2e-5, 0.6)},
        **{"lfd": (1e-5, 0.3), "spider": (2e-5, 0.4), "bird": (2e-5, 1.0)},
    },
    "Qwen3-8B": {
        **{"ddxplus": (2e-5, 0.2), "mimic-iv-mr": (2e-5, 0.1), "mimic-iv-msr": (2e-5, 0.5), "mimic-iv-tlp": (5e-6, 0.1)},
        **{"mud": (1e-6, 0.9), "cmdl": (2e-5, 0.8), "banking77": (2e-5, 0.1), "sentifin": (2e-5, 0.1)},
        **{"rca": (1e-5, 1.0), "lfd": (2e-5, 0.5), "spider": (2e-5, 1.0), "bird": (1e-6, 0.5)},
    },
    "Qwen3-14B": {
        **{"ddxplus": (2e-5, 0.1), "mimic-iv-mr": (2e-5, 0.3), "mimic-iv-msr": (1e-5, 0.4), "mimic-iv-tlp": (5e-6, 0.1)},
        **{"mud": (1e-6, 0.4), "cmdl": (1e-5, 0.7), "banking77": (2e-5, 0.1), "sentifin": (2e-5, 0.4)},
        **{"rca": (2e-5, 0.3), "lfd": (5e-6, 0.1), "spider": (5e-6, 0.3), "bird": (1e-6, 0.9)},
    },
    "Qwen3-32B": {
        **{"ddxplus": (1e-5, 0.1), "mimic-iv-mr": (1e-5, 0.5), "mimic-iv-msr": (1e-5, 0.4), "mimic-iv-tlp": (2e-5, 0.1)},
        **{"mud": (2e-5, 0.8), "cmdl": (1e-5, 0.2), "banking77": (2e-5, 0.3), "sentifin": (2e-5, 0.1)},
        **{"rca": (2e-5, 0.3), "lfd": (1e-5, 0.4), "spider": (5e-6, 0.8), "bird": (5e-6, 0.3)},
        **{"alfworld": (5e-6, 0.7), "alfworld, thinking": (5e-6, 0.6)},
        **{"scienceworld": (2e-5, 0.2), "scienceworld, thinking": (2e-5, 0.4), "mimic-iii": (1e-5, 0.7)},
    },
    "gemini-2.0-flash": {
        **{"ddxplus": (1e-5, 0.2), "mud": (5e-6, 0.2), "cmdl": (5e-6, 0.1), "banking77": (1e-5, 0.1)},
        **{"sentifin": (1e-5, 0.4), "rca": (2e-5, 1.0), "lfd": (2e-5, 0.4), "spider": (1e-5, 0.8), "bird": (5e-6, 0.1)},
    },
    SEARCHER: {"2wiki": (2e-5, 0.2), "2wiki, web": (2e-5, 0.1)},
}


def model_beside(solver: str, task: str = "") -> str:
    """Return the paper's model that a solver stands beside: the same one if the paper has it, otherwise the usual one.

    >>> model_beside("Qwen/Qwen3-8B"), model_beside("SmolLM2-135M"), model_beside("Qwen3-32B", "2wiki")
    ('Qwen3-8B', 'Qwen3-32B', 'Qwen3-30B-A3B')
    """
    if task == "2wiki":
        return SEARCHER
    found = next((model for model in MODELS if model.casefold() in solver.casefold()), USUAL)
    return USUAL if task in _WORLDS else found


def model_name(solver: str) -> str:
    """Return the short name of a model, which is the same behind a server and in this process.

    >>> model_name("Qwen/Qwen3-8B"), model_name("Qwen3-8B, in this process")
    ('Qwen3-8B', 'Qwen3-8B')
    """
    return solver.partition(",")[0].rpartition("/")[2]


def is_the_same(solver: str, model: str) -> bool:
    """Say whether a solver is this model of the paper, and no relative of it, such as a quantised one.

    >>> is_the_same("Qwen/Qwen3-8B", "Qwen3-8B"), is_the_same("Qwen/Qwen3-8B-AWQ", "Qwen3-8B")
    (True, False)
    """
    return model_name(solver).casefold() == _WHOLE_NAMES.get(model, model).casefold()


def is_behind_an_api(model: str) -> bool:
    """Say whether the authors reached a model through its maker's interface, to which no licensed data may be sent.

    >>> is_behind_an_api("gemini-2.0-flash"), is_behind_an_api("Qwen/Qwen3-8B")
    (True, False)
    """
    return "gemini" in model.casefold()


def sampling_of(model: str) -> Mapping[str, Any]:
    """Return how the authors let this model sample: Gemini behind its API, the others served by vLLM, without thinking.

    >>> sampling_of("gemini-2.0-flash")["temperature"], sampling_of("Qwen/Qwen3-8B")["chat_template_kwargs"]
    (0.05, {'enable_thinking': False})
    """
    return _BEHIND_AN_API if is_behind_an_api(model) else {**_SERVED, **_DO_NOT_THINK}


def gradient_rate_of(task: str) -> float:
    """Return the learning rate at which the authors train adapters (REINFORCE + LoRA); it is the same for all models.

    >>> gradient_rate_of("banking77"), gradient_rate_of("mimic-iv-mr")
    (0.0001, 1e-05)
    """
    return 1e-5 if task == "mimic-iv-mr" else 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsSettings:
    """The authors' learning rate and alpha for the run of a task: those of its model, or of the usual one.

    They are those of the paper's bandit, Neural-LinLogUCB. For its rivals the authors published none.

    >>> AuthorsSettings()(Run("banking77", "Neural-LinLogUCB", 0, solver="Qwen/Qwen3-8B"))
    {'learning_rate': 2e-05, 'alpha': 0.1}
    """

    thinks: bool = True  # in ALFWorld and ScienceWorld: with thoughts (ReAct)
    web: bool = False  # in 2wiki: with web search

    def __call__(self, run: Run) -> dict[str, float]:
        """Return the settings; they are empty where the authors published none."""
        known = _SETTINGS.get(model_beside(run.solver, run.task), {})
        kinds = [kind for kind, played in (("thinking", self.thinks), ("web", self.web)) if played]
        found = next((known[name] for kind in kinds if (name := f"{run.task}, {kind}") in known), known.get(run.task))
        if found is None or not run.method.startswith("Neural-LinLogUCB"):
            return {}
        return {"learning_rate": found[0], "alpha": found[1]}

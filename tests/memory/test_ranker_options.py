"""Options of a ranker that is named by a string: honoured, checked, and the same for everybody in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.ranker_choice import resolve_ranker
from cascade_memory.assembly.rankers import BY_NAME, light, neural_linlogucb
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.errors import InvalidInput


def policy_of(memory: CascadeMemory):
    return state_of(memory).policy


def test_options_reach_the_ranker():
    options = {"alpha": 0, "refit": "exact", "regularisation": 0.5}
    with CascadeMemory(embedder="hashing", ranker="neural-linlogucb", ranking=Ranking(ranker_options=options)) as memory:
        policy = policy_of(memory)
        assert policy.exploration.alpha == 0
        assert (policy.exact, policy.state_dict()["a"][0, 0]) == (True, 0.5)
    with CascadeMemory(
        embedder="hashing", ranking=Ranking(ranker_options={"exploration": UpperConfidence(0.0), "precision": 3})
    ) as memory:
        assert policy_of(memory).exploration.alpha == 0
        assert policy_of(memory).head.precision == 3


def test_a_model_s_options_are_the_encoder_s_and_the_bandit_s(tmp_path: Path):
    pytest.importorskip("transformers")
    options = {"max_tokens": 64, "trained": False, "alpha": 0.2}
    ranker = resolve_ranker(str(tmp_path), hindsight=True, options=options)
    assert ranker.training is None
    with pytest.raises(
        InvalidInput, match=r"takes no option 'max_token' \(did you mean 'max_tokens'\?\); it takes bandit, sch"
    ):
        resolve_ranker(str(tmp_path), hindsight=True, options={"max_token": 64})


@pytest.mark.parametrize(
    ("ranker", "options", "words"),
    [
        ("light", {"alpa": 1}, "the ranker 'light' takes no option 'alpa'; it takes exploration, precision"),
        ("neural-linlogucb", {"alpa": 1}, r"did you mean 'alpha'\?"),
        ("neural-linlogucb", {"alpha": "0.1"}, "'alpha' must be a number of at least 0, not '0.1'"),
        ("neural-linlogucb", {"alpha": float("nan")}, "'alpha' must be a number"),
        ("neural-linlogucb", {"alpha": True}, "'alpha' must be a number"),
        ("neural-linlogucb", {"refit": "often"}, "'refit' must be 'sgd' or 'exact', not 'often'"),
        ("neural-linlogucb", {"decay": 1}, "'decay' must be True or False"),
        ("neural-linlogucb", {"credit": "all"}, "takes no option 'credit'"),
        ("neural-linlogucb", {"theta": 1}, "takes no option 'theta'"),
        ("neural-linlogucb", {3: 1}, "takes no option 3"),
        ("neural-linlogucb", "alpha=1", "ranker_options must be a mapping"),
        ("neural-logucb", {"width": 1.5}, "'width' must be a whole number"),
        ("light", {"exploration": 0.1}, "'exploration' must be a UpperConfidence or None"),
        ("similarity", {"alpha": 0.1}, "the ranker 'similarity' takes no option 'alpha'; it takes no options"),
    ],
)
def test_a_wrong_option_is_refused_with_those_that_there_are(ranker: str, options: object, words: str):
    with pytest.raises(InvalidInput, match=words):
        CascadeMemory(embedder="hashing", ranker=ranker, ranking=Ranking(ranker_options=options))  # type: ignore[arg-type]


@pytest.mark.parametrize("ranker", sorted(BY_NAME))
def test_every_ranker_takes_no_options_as_well(ranker: str):
    with CascadeMemory(embedder="hashing", ranker=ranker, ranking=Ranking(ranker_options={}), learn="inline") as memory:
        memory.add("a", "b")
        memory.reward(memory.recall("a").episode_id, 1.0, solution="b")
        assert memory.health().ok


@pytest.mark.parametrize("given", [{"credit": "all"}, {"credit": lambda outcome: None}, {"ranker_options": {"alpha": 0}}])
def test_what_comes_too_late_for_a_ranker_that_was_made_is_refused(given: dict):
    with pytest.raises(
        InvalidInput,
        match=f"{next(iter(given))}= can only be used with a ranker named by a string, but 'light' is a Ranker obj",
    ):
        CascadeMemory(embedder="hashing", ranker=light(), ranking=Ranking(**given))
    CascadeMemory(embedder="hashing", ranker=light(), ranking=Ranking(shadow=neural_linlogucb())).close()
    CascadeMemory(embedder="hashing", ranker="light", ranking=Ranking(shadow=neural_linlogucb(), credit="all")).close()


def test_handles_on_one_folder_agree_on_options(tmp_path: Path):
    options = {"alpha": 0.3}

    def opened(**given: object) -> CascadeMemory:
        return CascadeMemory(tmp_path / "m", embedder="hashing", **given)  # type: ignore[arg-type]

    with opened(ranker="neural-linlogucb", ranking=Ranking(ranker_options=options)):
        opened(ranker="neural-linlogucb", ranking=Ranking(ranker_options={"alpha": 0.3})).close()
        opened().close()  # no wish of its own
        for other in ({"alpha": 0.4}, {}, None):
            with pytest.raises(InvalidInput, match="is open in this process with ranker_options="):
                opened(ranker="neural-linlogucb", ranking=Ranking(ranker_options=other))
        options["alpha"] = 0.9
        opened(ranker="neural-linlogucb", ranking=Ranking(ranker_options={"alpha": 0.3})).close()


def test_doors_hand_options_on():
    pytest.importorskip("langchain_core")
    from cascade_memory.langchain import CascadeMemory as Adapter

    with Adapter(embedder="hashing", ranker="neural-linlogucb", ranking=Ranking(ranker_options={"alpha": 0})) as door:
        assert policy_of(door.engine).exploration.alpha == 0

"""REINFORCE + LoRA: the gradient, the sampling and the prompt are what they should be, compared with ways of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_language_models import make_language_model

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.gradient.loading import Adapter, CausalLM, load_causal_lm
from cascade_memory.evaluation.gradient.local_chat import LocalChat, Sampled, prompt_tokens
from cascade_memory.evaluation.gradient.reinforce import Reinforce
from cascade_memory.evaluation.gradient.sampling import candidates, sample
from cascade_memory.evaluation.gradient.settings import Sampling, Training, settings_from
from cascade_memory.evaluation.outcomes import LocalBatches

EPISODE = Sampled(prompt=[1, 7, 8, 9, 3], answer=[5, 6, 2])
OTHER = Sampled(prompt=[1, 7, 8, 9, 4], answer=[6, 2])
ASKED = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "go to the north"}]


@pytest.fixture
def lm(tmp_path: Path) -> CausalLM:
    return load_causal_lm(str(make_language_model(tmp_path / "lm")))


@pytest.fixture
def reinforce(lm: CausalLM):
    made: list[Reinforce] = []

    def make(**settings: Any) -> Reinforce:
        made.append(Reinforce(lm, Training(**settings), seed=0))
        stir(made[-1])
        return made[-1]

    yield make
    for one in made:
        one.close()


def stir(one: Reinforce) -> None:
    """Move the adapter away from its start, where it changes nothing."""
    import torch

    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in one.adapter.weights.values():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator))


def by_hand(lm: CausalLM, episode: Sampled) -> Any:
    """The log-probability of an answer, one forward pass for each of its tokens."""
    import torch

    total: Any = 0.0
    for place, token in enumerate(episode.answer):
        before = torch.tensor([[*episode.prompt, *episode.answer[:place]]])
        total = total + torch.log_softmax(lm.model(input_ids=before).logits[0, -1], dim=-1)[token]
    return total


@pytest.mark.parametrize("keeps_logits", [True, False])
def test_the_log_probability_is_that_of_the_answer_alone(lm, reinforce, keeps_logits):
    one = reinforce()
    object.__setattr__(lm, "keeps_logits", keeps_logits)
    assert one.log_probability(EPISODE).item() == pytest.approx(by_hand(lm, EPISODE).item(), abs=1e-5)


@pytest.mark.parametrize("kl_form", ["published", "penalty"])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_the_gradient_is_that_of_reinforce(lm, reinforce, kl_form, reward):
    import torch

    one = reinforce(kl_form=kl_form, batch=4, kl=0.2)
    weights = one.adapter.weights
    log_probability = by_hand(lm, EPISODE)
    with one.adapter.switched_off():
        untrained = by_hand(lm, EPISODE).item()
    slopes = torch.autograd.grad(log_probability, list(weights.values()))
    distance = log_probability.item() - untrained
    assert abs(distance) > 0.01
    ratio = one.learn(EPISODE, reward)
    assert ratio == pytest.approx(distance, abs=1e-5)
    worth = reward - 0.2 * (1.0 if kl_form == "published" else distance)
    for weight, slope in zip(weights.values(), slopes, strict=True):
        assert torch.allclose(weight.grad, -worth * slope / 4, atol=1e-6)


def test_the_published_loss_has_this_gradient(lm, reinforce):
    import torch

    one = reinforce(batch=1, kl=0.2, learning_rate=1e-9)
    one.step = lambda: None  # the gradients are to be seen
    weights = list(one.adapter.weights.values())
    log_probability = by_hand(lm, EPISODE)
    with torch.no_grad(), one.adapter.switched_off():
        untrained = by_hand(lm, EPISODE)
    loss = -(1.0 * log_probability - 0.2 * (log_probability - untrained))  # as the authors write it
    slopes = torch.autograd.grad(loss, weights)
    one.learn(EPISODE, 1.0)
    assert all(torch.allclose(weight.grad, slope, atol=1e-6) for weight, slope in zip(weights, slopes, strict=True))


def test_a_step_is_one_of_adamw_on_the_clipped_sum_of_a_batch(lm, reinforce):
    import torch

    settings: dict[str, Any] = {"learning_rate": 0.01, "batch": 2, "weight_decay": 0.5, "clip": 0.05}
    one = reinforce(**settings)
    base = {name: weight.clone() for name, weight in lm.model.state_dict().items() if "lora" not in name}
    weights = list(one.adapter.weights.values())
    slopes = []
    for episode, reward in ((EPISODE, 1.0), (OTHER, 0.0)):
        found = torch.autograd.grad(by_hand(lm, episode), weights)
        slopes.append([-(reward - 0.1) * slope / 2 for slope in found])
    total = [first + second for first, second in zip(*slopes, strict=True)]
    norm = float(torch.sqrt(sum((one**2).sum() for one in total)))
    assert norm > 0.05
    before = [weight.detach().clone() for weight in weights]
    one.learn(EPISODE, 1.0)
    assert one.steps == 0
    assert all(torch.equal(weight, old) for weight, old in zip(weights, before, strict=True))
    one.learn(OTHER, 0.0)
    assert (one.steps, one.gathered) == (1, 0)
    for weight, old, slope in zip(weights, before, total, strict=True):
        clipped = slope * 0.05 / norm
        assert torch.allclose(weight, old * (1 - 0.01 * 0.5) - 0.01 * clipped / (clipped.abs() + 1e-8), atol=2e-4)
    assert all(weight.grad is None or not weight.grad.any() for weight in weights)
    for name, weight in lm.model.state_dict().items():
        if "lora" not in name:
            assert torch.equal(weight, base[name])


def test_the_adapter_is_on_queries_and_values_and_changes_nothing_at_first(lm):
    import torch

    ids = torch.tensor([[1, 7, 8]])
    before, state = lm.model(input_ids=ids).logits, torch.random.get_rng_state()
    adapter = Adapter(lm, Training(), seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(lm.model(input_ids=ids).logits, before)
    places = {name.split(".lora_")[0].rpartition(".")[2] for name in adapter.weights}
    assert places == {"q_proj", "v_proj"}
    assert len(adapter.weights) == 2 * 2 * 2  # layers, projections, matrices
    assert {min(weight.shape) for weight in adapter.weights.values()} == {8}
    adapter.remove()
    assert torch.equal(lm.model(input_ids=ids).logits, before)
    assert not any("lora" in name for name in lm.model.state_dict())


def test_a_saved_state_is_gone_on_from(lm, reinforce):
    import torch

    first = reinforce(batch=1, learning_rate=0.01)
    first.learn(EPISODE, 1.0)
    saved = {name: tensor.clone() for name, tensor in first.state().items()}
    first.learn(OTHER, 1.0)
    after = {name: tensor.clone() for name, tensor in first.state().items()}
    first.load(saved, 1)
    first.learn(OTHER, 1.0)
    assert after.keys() == first.state().keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in first.state().items())
    name = next(iter(saved))
    for wrong in ({}, {**saved, name: saved[name][:1]}, {**saved, name: torch.full_like(saved[name], float("nan"))}):
        with pytest.raises(InvalidInput, match="not those of this model's adapter"):
            first.load(wrong, 1)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0, "top_p": 0.6}, {"temperature": 0.7, "top_k": 3, "top_p": 1.0}])
def test_sampling_is_that_of_transformers(settings):
    import torch
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    sampling = Sampling(**settings)
    for seed in range(20):
        logits = 2 * torch.randn(50, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        scores = logits[None].clone()
        chain = [TemperatureLogitsWarper(sampling.temperature), TopKLogitsWarper(sampling.top_k)]
        for warper in [*chain, *([TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else [])]:
            scores = warper(None, scores)
        expected = torch.softmax(scores[0], dim=-1).numpy()
        tokens, odds = candidates(logits, sampling)
        found = np.zeros(50)
        found[tokens] = odds
        assert np.allclose(found, expected, atol=1e-6)


def test_tokens_are_sampled_with_what_came_before(lm):
    sampling = Sampling(temperature=0.01, top_k=1, max_tokens=6)  # the likeliest token
    answer = sample(lm, [1, 7, 8], sampling, np.random.default_rng(0))
    for place, token in enumerate(answer):
        assert token == int(lm.logits([1, 7, 8, *answer[:place]], 1)[0].argmax())
    assert len(answer) == 6 or answer[-1] in lm.stops


def test_an_answer_ends_where_it_must(lm):
    free = Sampling(temperature=5.0, top_k=20, top_p=1.0, max_tokens=500)
    ends = [sample(lm, [1, 7], free, np.random.default_rng(seed)) for seed in range(20)]
    assert any(one[-1] in lm.stops for one in ends)
    assert all(lm.stops.isdisjoint(one[:-1]) for one in ends)
    assert all(len(one) <= 500 for one in ends)
    with pytest.raises(InvalidInput, match="a prompt has 512 tokens, and lm has room for 512"):
        sample(lm, [1] * 512, free, np.random.default_rng(0))


@pytest.mark.slow  # it may be the first one of its process that loads transformers
def test_the_prompt_is_plain_text_or_that_of_the_template(tmp_path):
    plain = load_causal_lm(str(make_language_model(tmp_path / "plain")))
    assert plain.tokenizer.decode(prompt_tokens(plain, ASKED)) == "[BOS] Answer . go to the north"
    strict = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system message') }}{% endif %}"
    template = strict + "{{ bos_token }} {{ messages[0]['content'] }}{% if add_generation_prompt %} with{% endif %}"
    templated = load_causal_lm(str(make_language_model(tmp_path / "chat", template=template)))
    assert templated.tokenizer.decode(prompt_tokens(templated, ASKED)) == "[BOS] Answer . go to the north with"
    broken = load_causal_lm(str(make_language_model(tmp_path / "broken", template="{{ raise_exception('never') }}")))
    with pytest.raises(InvalidInput, match="cannot show a question: never"):
        prompt_tokens(broken, ASKED)


def test_the_same_place_has_the_same_answer(lm):
    chat = LocalChat(lm, Sampling(temperature=2.0, top_p=1.0, max_tokens=4), 0, name="lm")
    answers = []
    for draw in (0, 1, 0, 2, 3, 1):
        chat.draw = draw
        answers.append(chat.complete(ASKED).text)
    assert answers[0] == answers[2]
    assert answers[1] == answers[5]
    assert len(set(answers)) > 1


def test_a_model_without_these_projections_is_refused(tmp_path):
    import torch
    from tiny_language_models import WORDS, word_tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32, "bos_token_id": 1, "eos_token_id": 2}
        GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), **size)).save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    lm = load_causal_lm(str(tmp_path))
    with pytest.raises(InvalidInput, match=r"no layers named q_proj and v_proj.*it has c_attn, c_fc, c_proj"):
        Adapter(lm, Training(), seed=0)


@pytest.mark.slow
def test_what_is_not_a_model_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        load_causal_lm(str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="no usable tokenizer"):
        load_causal_lm(str(tmp_path))
    make_language_model(tmp_path / "lm")
    (tmp_path / "lm" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InvalidInput, match="not a causal language model with its weights in safetensors"):
        load_causal_lm(str(tmp_path / "lm"))


def test_without_peft_the_extra_is_named(lm, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"cascade-memory\[gradient\]"):
        Adapter(lm, Training(), seed=0)


def test_without_pytorch_the_extra_of_a_local_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"cascade-memory\[gradient\]"):
        LocalBatches(str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Training, {"lr": 1e-5}, "no setting 'lr'; there are learning_rate, batch"),
        (Training, {"learning_rate": 0}, "must be above 0"),
        (Training, {"batch": 2.5}, "batch must be a whole number"),
        (Training, {"rank": True}, "rank must be a whole number"),
        (Training, {"kl": float("nan")}, "kl must be a number"),
        (Training, {"kl_form": "other"}, '"published" or "penalty"'),
        (Sampling, {"top_p": 0}, "a top_p above 0"),
        (Sampling, {"temperature": "hot"}, "temperature must be a number"),
        (Sampling, {"presence_penalty": 1.5}, "no setting 'presence_penalty'"),
    ],
)
def test_settings_are_checked(kind, given, said):
    with pytest.raises(InvalidInput, match=said):
        settings_from(kind, given)

"""A model in this process answers in batches what it answers alone: a tiny random one, compared with a loop of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tiny_language_models import WORDS, make_language_model

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.gradient.loading import CausalLM, fastest_dtype, load_causal_lm
from cascade_memory.evaluation.gradient.local_chat import prompt_tokens
from cascade_memory.evaluation.model.chat import Message, PromptTooLong
from cascade_memory.evaluation.outcomes import LocalBatches, Outcomes, dtype_in, local_batches

pytestmark = pytest.mark.slow  # each makes a model
SPOKEN = [word for word in WORDS if word[0] != "["]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(make_language_model(tmp_path / "lm"))


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute in float32, so that a batch of another make-up rounds nothing else."""

    def load(name: str, *, dtype: str | None) -> CausalLM:
        assert dtype in (None, "float32", "bfloat16")
        return load_causal_lm(name)

    monkeypatch.setattr(local_batches, "load_causal_lm", load)


def prompt(number: int, words: int, system: str = "Answer .") -> list[Message]:
    told = " ".join(SPOKEN[(number * 7 + i * i) % len(SPOKEN)] for i in range(words))
    return [{"role": "system", "content": system}, {"role": "user", "content": told}]


def alone(lm: CausalLM, messages: list[Message], most: int) -> str:
    """The likeliest tokens, each from a pass over the whole text before it."""
    tokens = prompt_tokens(lm, messages)
    answer: list[int] = []
    while len(answer) < most:
        token = int(lm.logits([*tokens, *answer], 1)[0].argmax())
        if token in lm.stops:
            break
        answer.append(token)
    return lm.tokenizer.decode(answer, skip_special_tokens=True)


def together(model: LocalBatches, prompts: list[list[Message]]) -> list[str]:
    with ThreadPoolExecutor(len(prompts)) as pool:
        return [reply.text for reply in pool.map(model.complete, prompts)]


@pytest.mark.parametrize("batch", [1, 5, 32])
def test_a_batch_answers_what_each_prompt_gets_alone(folder: str, batch: int):
    model, lm = LocalBatches(folder, most=12, batch=batch), load_causal_lm(folder)
    prompts = [prompt(number, 1 + number % 9) for number in range(24)]
    wanted = [alone(lm, one, 12) for one in prompts]
    assert len(set(wanted)) > 5
    assert len({len(one.split()) for one in wanted}) > 2, "some end early"
    assert together(model, prompts) == wanted


def test_a_beginning_that_all_share_is_read_once(folder: str, monkeypatch: pytest.MonkeyPatch):
    model, lm = LocalBatches(folder, most=8), load_causal_lm(folder)
    rules = " ".join(SPOKEN[i % len(SPOKEN)] for i in range(60))
    seen: list[int] = []
    plain = lm.model.forward

    def counted(*args: Any, **options: Any) -> Any:
        seen.append(options["input_ids"].numel())
        return plain(*args, **options)

    prompts = [prompt(number, 1 + number % 4, rules) for number in range(10)]
    wanted = [alone(lm, one, 8) for one in prompts]
    monkeypatch.setattr(lm.model, "forward", counted)
    assert together(model, prompts) == wanted
    first = sum(seen)
    assert first < 10 * 60
    seen.clear()
    assert together(model, prompts) == wanted
    assert sum(seen) < first - 60 + 1, "the second time it is not read at all"
    others = [prompt(number, 3, "go") for number in range(4)]
    assert together(model, others) == [alone(lm, one, 8) for one in others], "other beginnings are not mixed up with it"


def test_the_last_positions_of_a_batch_lie_together(folder: str):
    """Else PyTorch copies the weights of the vocabulary for each prompt: 4 GB in a batch of 15 of a model of half a billion."""
    model, lm = LocalBatches(folder, most=4), load_causal_lm(folder)
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    head = lm.model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, given: seen.append((given[0].shape, given[0].stride())))
    together(model, [prompt(number, 5) for number in range(6)])
    together(model, [prompt(7, 5)])  # of one text, the last position counts as contiguous, but its stride is the whole text's
    hook.remove()
    assert {rows > 1 for (rows, *_), _ in seen} == {True, False}
    assert all(stride == (positions * width, width, 1) for (_, positions, width), stride in seen)


def test_a_batch_is_split_where_that_saves_padding(folder: str, monkeypatch: pytest.MonkeyPatch):
    model, lm = LocalBatches(folder, most=4), load_causal_lm(folder)
    prompts = [prompt(number, 300 if number > 9 else 4, SPOKEN[number]) for number in range(12)]
    wanted = [alone(lm, one, 4) for one in prompts]
    seen: list[int] = []
    plain = lm.model.forward

    def counted(*args: Any, **options: Any) -> Any:
        seen.append(options["input_ids"].numel())
        return plain(*args, **options)

    monkeypatch.setattr(lm.model, "forward", counted)
    assert together(model, prompts) == wanted
    assert sum(seen) < 2_000, "the ten short prompts were read without 300 words of padding"


def test_what_is_too_long_is_refused_alone(folder: str):
    model = LocalBatches(folder, most=12)
    with pytest.raises(PromptTooLong, match="reads 512 tokens with the answer, and the prompt has 5"):
        model.complete(prompt(1, 500))
    assert isinstance(model.complete(prompt(1, 490)).text, str)


def test_it_counts_tokens_and_says_what_it_is(folder: str):
    model = LocalBatches(folder, most=3)
    reply = model.complete(prompt(1, 4))
    assert reply.prompt_tokens == len(prompt_tokens(load_causal_lm(folder), prompt(1, 4)))
    assert 0 < reply.completion_tokens <= 3
    assert model.settings == {"temperature": 0, "max_tokens": 3}
    assert set(model.about) == {"server", "weights", "dtype", "template"}
    assert model.name == "lm"
    with pytest.raises(InvalidInput, match="at least 1"):
        LocalBatches(folder, batch=0)


def test_a_failure_reaches_those_who_wait_and_the_next_batch_is_answered(folder: str, monkeypatch: pytest.MonkeyPatch):
    threads = threading.active_count()
    model, lm = LocalBatches(folder, most=3), load_causal_lm(folder)
    plain, fails = lm.model.forward, [True]

    def failing(*args: Any, **options: Any) -> Any:
        if fails:
            raise MemoryError("no memory for this batch")
        return plain(*args, **options)

    monkeypatch.setattr(lm.model, "forward", failing)
    with pytest.raises(ModelUnavailable, match="lm failed: MemoryError: no memory for this batch"):
        model.complete(prompt(1, 4))
    fails.clear()
    assert model.complete(prompt(1, 4)).text == alone(lm, prompt(1, 4), 3)
    model.close()
    with pytest.raises(ModelUnavailable, match="was closed"):
        model.complete(prompt(2, 4))
    assert threading.active_count() <= threads + 1, "a model answers on one thread, however often it failed"


def test_it_computes_with_what_the_table_was_made_with_or_else_with_what_is_fast_here(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(local_batches, "load_causal_lm", load_causal_lm)
    slow, fast = sorted(("float32", "bfloat16"), key=lambda one: one == fastest_dtype())
    assert LocalBatches(folder).about["dtype"] == fast
    table = tmp_path / "table"
    assert dtype_in(table) is None
    with Outcomes(table, chat := LocalBatches(folder, dtype=slow), about=chat.about) as outcomes:
        outcomes.complete(prompt(1, 4))
    assert dtype_in(table) == slow
    assert LocalBatches(folder, dtype=dtype_in(table)).about["dtype"] == slow
    with pytest.raises(InvalidInput, match='must be "float32" or "bfloat16", not \'float8\''):
        LocalBatches(folder, dtype="float8")
    monkeypatch.setattr(local_batches, "load_causal_lm", lambda name, *, dtype: load_causal_lm(name, dtype=fast))
    with pytest.raises(InvalidInput, match=f"computes in {fast} on this machine, so it cannot do so in {slow}"):
        LocalBatches(folder, dtype=slow)


def test_its_answers_fill_a_table(folder: str, tmp_path: Path):
    with Outcomes(tmp_path / "table", LocalBatches(folder, most=3)) as outcomes:
        said = outcomes.complete(prompt(1, 4))
    assert Outcomes(tmp_path / "table").complete(prompt(1, 4)) == said

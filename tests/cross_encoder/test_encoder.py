"""The cross-encoder as a pair encoder: what a reranker sees before its last layer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from later import Later
from tiny_models import FAMILIES, make_reranker, tokenizer

from cascade_memory.encoders.cross_encoder import CrossEncoder, load_base
from cascade_memory.errors import EncoderMismatch, InvalidInput, StoreCorrupt, StoreUnwritable
from cascade_memory.ports.encoders import Candidates, Pair
from cascade_memory.testing import PairEncoderContract

torch = Later("torch")
transformers = Later("transformers")

PAIRS = [
    Pair(query="heat the cup", text=text, head="take it")
    for text in ("heat a mug", "cool the egg in the fridge", "clean", "put the apple on the big desk", "heat the cup", "open")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_reranker(tmp_path_factory.mktemp("modernbert"))


def _encoder(folder, **options) -> CrossEncoder:
    return CrossEncoder(load_base(str(folder), device="cpu", max_tokens=2_048), **options)


class TestCrossEncoder(PairEncoderContract):
    @pytest.fixture(autouse=True)
    def _folder(self, folder):
        self.folder = folder

    def make(self, cases: Candidates):
        return _encoder(self.folder)


@pytest.mark.parametrize("family", FAMILIES)
def test_theta_times_features_is_the_pretrained_reranker_s_own_score(family, tmp_path):
    folder = make_reranker(tmp_path, family)
    encoder = _encoder(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = tokenizer()([pair.query for pair in PAIRS], [pair.text for pair in PAIRS], padding=True, return_tensors="pt")
    if family == "roberta":
        inputs.pop("token_type_ids", None)
    with torch.inference_mode():
        scores = model(**inputs).logits[:, 0].numpy()
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    ours = encoder.encode_pairs(PAIRS) @ encoder.head
    np.testing.assert_allclose(ours, scores - float(last.bias.detach()), atol=1e-5)  # the bias is zeroed
    assert np.argsort(-ours).tolist() == np.argsort(-scores).tolist()
    assert len(set(np.round(ours, 4))) == len(PAIRS)


def test_a_pair_s_features_do_not_depend_on_its_batch(folder):
    encoder = _encoder(folder)
    alone = np.concatenate([encoder.emptied().encode_pairs([pair]) for pair in PAIRS])
    np.testing.assert_allclose(encoder.encode_pairs(PAIRS), alone, atol=1e-6)


def test_each_pair_is_tokenised_and_scored_once(folder, monkeypatch):
    base = load_base(str(folder), device="cpu", max_tokens=2_048)
    calls = {"tokenised": 0, "scored": 0}
    tokenise, score = base.tokenizer, base.serving.forward

    class Counting:
        def __call__(self, *args, **options):
            calls["tokenised"] += 1
            return tokenise(*args, **options)

        def __getattr__(self, name):
            return getattr(tokenise, name)

    def scoring(**inputs):
        calls["scored"] += len(inputs["input_ids"])
        return score(**inputs)

    monkeypatch.setattr(base.serving, "forward", scoring)
    encoder = CrossEncoder(dataclasses.replace(base, tokenizer=Counting()))
    encoder.encode_pairs(PAIRS)
    encoder.encode_pairs(PAIRS[:3])
    assert calls == {"tokenised": len(PAIRS), "scored": len(PAIRS)}


def test_long_pairs_are_cut_to_what_the_model_can_take(folder):
    long = Pair(query="heat the cup " * 400, text="mug " * 400, head="")
    assert len(_encoder(folder).tokenised(long)["input_ids"]) == 128  # what its tokenizer says
    short = CrossEncoder(load_base(str(folder), device="cpu", max_tokens=16))
    assert len(short.tokenised(long)["input_ids"]) == 16


def test_what_the_reranker_reads_can_be_chosen(folder):
    with_solution = _encoder(folder, pair_text=lambda pair: (pair.query, f"{pair.text} {pair.head}"))
    one, other = (Pair(query="heat", text="the cup", head=head) for head in ("put lamp", "open drawer"))
    plain = _encoder(folder).encode_pairs([one, other])
    np.testing.assert_array_equal(plain[0], plain[1])
    shown = with_solution.encode_pairs([one, other])
    assert np.abs(shown[0] - shown[1]).max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_training_returns_another_encoder_that_fits_better_and_leaves_this_one(family, tmp_path):
    encoder = _encoder(make_reranker(tmp_path, family), learning_rate=1e-3)
    labels, weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), np.ones(6)

    def loss(one: CrossEncoder) -> float:
        logits = one.encode_pairs(PAIRS) @ encoder.head
        return float(np.mean(np.logaddexp(0, logits) - labels * logits))

    before, features = loss(encoder), encoder.encode_pairs(PAIRS)
    trained, theta = encoder, encoder.head
    for _ in range(5):
        trained, theta = trained.trained(PAIRS, labels, weights, theta, joint=False)
    np.testing.assert_array_equal(theta, encoder.head)
    assert loss(trained) < before
    np.testing.assert_array_equal(encoder.emptied().encode_pairs(PAIRS), features)
    assert (trained.version, trained.fitted_outcomes) == (5, 30)
    np.testing.assert_allclose(trained.untrained().encode_pairs(PAIRS), features, atol=1e-6)


def test_the_loss_by_hand():
    from cascade_memory.encoders.cross_encoder.training import losses

    # Eq. loss for one pair: -r log sigma(z) - (1 - r) log(1 - sigma(z)). At z = 0 both halves are log 2. At z = log 3,
    # sigma = 3/4: r = 1 gives log 4/3, r = 0 gives log 4, r = 1/2 the mean of both.
    scores, rewards = torch.tensor([0.0, 0.0] + [np.log(3.0)] * 3), torch.tensor([1.0, 0.0, 1.0, 0.0, 0.5])
    expected = [np.log(2), np.log(2), np.log(4 / 3), np.log(4), (np.log(4 / 3) + np.log(4)) / 2]
    np.testing.assert_allclose(losses(scores, rewards, "logistic"), expected, atol=1e-6)
    # Neural-LinUCB's is (z - r)^2.
    np.testing.assert_allclose(losses(torch.tensor([0.5, 2.0]), torch.tensor([1.0, 0.0]), "squared"), [0.25, 4.0])


def test_micro_batches_add_up_to_the_whole_batch(folder):
    labels, weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.5, 1.0, 1.0, 0.25, 1.0])
    whole, parts = _encoder(folder, learning_rate=1e-3), _encoder(folder, learning_rate=1e-3)
    parts.apprentice.budget.tokens = 16
    rows = [one.trained(PAIRS, labels, weights, one.head, joint=True)[0].encode_pairs(PAIRS) for one in (whole, parts)]
    np.testing.assert_allclose(*rows, atol=2e-4)


def test_checkpointing_changes_nothing_but_memory(folder, monkeypatch):
    from cascade_memory.encoders.cross_encoder import training

    labels, weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), np.ones(6)
    rows = []
    for long in (512, 0):
        monkeypatch.setattr(training, "LONG", long)
        one = _encoder(folder, learning_rate=1e-3)
        rows.append(one.trained(PAIRS, labels, weights, one.head, joint=False)[0].encode_pairs(PAIRS))
    np.testing.assert_allclose(*rows, atol=2e-4)


# -- keeping -----------------------------------------------------------------------------------------------------------


def test_weights_travel_in_safetensors_with_a_manifest(folder, tmp_path):
    encoder = _encoder(folder, learning_rate=1e-3)
    trained, _ = encoder.trained(PAIRS, np.array([1.0, 0, 0, 1, 1, 0]), np.ones(6), encoder.head, joint=False)
    trained.save(tmp_path / "encoder-1.safetensors")
    again = _encoder(folder).loaded(tmp_path / "encoder-1.safetensors")
    np.testing.assert_allclose(again.encode_pairs(PAIRS), trained.encode_pairs(PAIRS), atol=1e-6)
    assert (again.version, again.fitted_outcomes) == (1, 6)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("other", ["dimension", "architecture", "tokenizer"])
def test_weights_of_another_model_are_refused(other, folder, tmp_path):
    _encoder(folder).save(tmp_path / "weights.safetensors")
    changed = make_reranker(tmp_path / "other", "bert" if other == "architecture" else "modernbert")
    if other == "dimension":
        config = transformers.AutoConfig.from_pretrained(changed)
        config.hidden_size, config.num_attention_heads = 64, 4
        transformers.ModernBertForSequenceClassification(config).save_pretrained(changed)
    if other == "tokenizer":
        words = tokenizer()
        words.add_tokens(["warp"])
        words.save_pretrained(changed)
    with pytest.raises(EncoderMismatch, match="another architecture, dimension or tokenizer"):
        _encoder(changed).loaded(tmp_path / "weights.safetensors")


def test_a_damaged_file_of_weights_is_named(folder, tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(b"no weights")
    with pytest.raises(StoreCorrupt, match="delete it"):
        _encoder(folder).loaded(tmp_path / "weights.safetensors")


# -- bad models --------------------------------------------------------------------------------------------------------


def test_a_model_without_a_classification_head_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no classification head"):
        _encoder(make_reranker(tmp_path, head=False))


def test_a_head_that_is_not_in_the_file_is_no_head(tmp_path):
    import json

    make_reranker(tmp_path, head=False)
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["ModernBertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_labels": 1, "id2label": {"0": "LABEL_0"}}))
    with pytest.raises(InvalidInput, match="no classification head"):
        _encoder(tmp_path)


def test_several_labels_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="3 labels"):
        _encoder(make_reranker(tmp_path, labels=3))


def test_a_tokenizer_is_never_downloaded_for_a_folder(tmp_path):
    make_reranker(tmp_path)
    for file in tmp_path.glob("*token*"):
        file.unlink()
    with pytest.raises(InvalidInput, match="no tokenizer beside its weights"):
        _encoder(tmp_path)


def test_an_empty_folder_is_no_model(tmp_path):
    with pytest.raises(InvalidInput, match="is not a model"):
        _encoder(tmp_path)


def test_an_empty_batch_has_no_features(folder):
    assert _encoder(folder).encode_pairs([]).shape == (0, 32)


@pytest.mark.parametrize("family", ["Camembert", "MPNet", "XLMRoberta", "DistilBert"])
def test_no_pair_is_longer_than_the_model_has_positions(family, tmp_path):
    settings = {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    settings |= {"max_position_embeddings": 40, "num_labels": 1, "pad_token_id": 1}
    if family == "DistilBert":
        settings = {"vocab_size": 90, "dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 48, "max_position_embeddings": 40}
        settings["num_labels"] = 1
    config = getattr(transformers, f"{family}Config")(**settings)
    getattr(transformers, f"{family}ForSequenceClassification")(config).save_pretrained(tmp_path)
    words = tokenizer()
    words.model_max_length = 10**9
    words.save_pretrained(tmp_path)
    long = Pair(query="heat the cup " * 40, text="mug " * 40, head="")
    assert np.isfinite(_encoder(tmp_path).encode_pairs([long])).all()


def test_half_precision_keeps_the_digits_of_positions(tmp_path):
    folder = str(make_reranker(tmp_path))
    half = load_base(folder, device="cpu", max_tokens=128, half=True).serving
    whole = load_base(folder, device="cpu", max_tokens=128)
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    assert torch.bfloat16 not in {buffer.dtype for buffer in half.buffers()}
    both = [
        CrossEncoder(base).encode_pairs(PAIRS) for base in (whole, load_base(folder, device="cpu", max_tokens=128, half=True))
    ]
    np.testing.assert_allclose(*both, atol=0.1)


# -- memory that runs out ----------------------------------------------------------------------------------------------


def _limited(model, monkeypatch, most: int) -> None:
    forward = model.forward

    def limited(**inputs):
        if inputs["input_ids"].numel() > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return forward(**inputs)

    monkeypatch.setattr(model, "forward", limited)


def test_when_memory_runs_out_less_is_scored_at_a_time(folder, monkeypatch):
    encoder, expected = _encoder(folder), _encoder(folder).encode_pairs(PAIRS)
    _limited(encoder.serving, monkeypatch, 24)
    np.testing.assert_allclose(encoder.encode_pairs(PAIRS), expected, atol=1e-6)
    assert encoder.budget.tokens <= 24


def test_when_memory_runs_out_less_is_trained_at_a_time(folder, monkeypatch):
    labels, weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), np.ones(6)
    one, other = _encoder(folder, learning_rate=1e-3), _encoder(folder, learning_rate=1e-3)
    _limited(other.apprentice.model, monkeypatch, 24)
    for each in (one, other):
        tokens = [each.tokenised(pair) for pair in PAIRS]
        each.apprentice.step(tokens, labels, weights, each.head, joint=False, loss="logistic")
    weights_of = [list(each.apprentice.model.parameters()) for each in (one, other)]
    for left, right in zip(*weights_of, strict=True):
        np.testing.assert_allclose(left.detach(), right.detach(), atol=2e-4)


def test_when_one_pair_is_too_much_it_says_so(folder, monkeypatch):
    encoder = _encoder(folder)
    _limited(encoder.serving, monkeypatch, 2)
    before = encoder.budget.tokens
    with pytest.raises(torch.cuda.OutOfMemoryError):
        encoder.encode_pairs(PAIRS)
    assert encoder.budget.tokens == before  # smaller batches were no help


def test_a_full_disk_is_an_error_of_ours(folder, monkeypatch, tmp_path):
    import safetensors.torch

    def full(tensors, file, **_):
        file.write_bytes(b"half")
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(StoreUnwritable, match="No space left"):
        _encoder(folder).save(tmp_path / "weights.safetensors")
    assert not list(tmp_path.iterdir())

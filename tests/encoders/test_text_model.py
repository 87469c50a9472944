"""An embedder from a folder: pooling and prompts as its own files say, an identity of its own, and nothing dangerous read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from later import Later
from tiny_models import FAMILIES, make_embedder, sentence_layout

from cascade_memory import CascadeMemory
from cascade_memory.encoders.text_model import TextModelEmbedder
from cascade_memory.encoders.text_model.files import folder_of_model
from cascade_memory.encoders.text_model.layout import layout_of
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.testing import EmbedderContract

torch = Later("torch")
transformers = Later("transformers")

TEXTS = ["heat cup", "put the egg in the fridge", "clean lamp on big desk 3 4 5", ""]
FLAG = "pooling_mode_{}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_embedder(tmp_path_factory.mktemp("plain"))


class TestContract(EmbedderContract):
    test_near_wordings_are_nearer_than_strangers = None  # weights drawn at random know no meaning

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = make_embedder(tmp_path, "bert", files=sentence_layout())

    def make(self):
        return TextModelEmbedder(str(self.folder))


def states(folder: Path, text: str) -> np.ndarray:
    """The hidden states of one text without padding, by transformers itself."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return (
            model(**{k: v for k, v in tokenizer(text, return_tensors="pt").items() if k != "token_type_ids"})
            .last_hidden_state[0]
            .numpy()
        )


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


BY_HAND = {
    "cls_token": lambda rows: rows[0],
    "mean_tokens": lambda rows: rows.mean(axis=0),
    "max_tokens": lambda rows: rows.max(axis=0),
    "lasttoken": lambda rows: rows[-1],
    "mean_sqrt_len_tokens": lambda rows: rows.sum(axis=0) / np.sqrt(len(rows)),
    "weightedmean_tokens": lambda rows: np.average(rows, axis=0, weights=np.arange(1, len(rows) + 1)),
}


@pytest.mark.parametrize("mode", BY_HAND)
def test_a_text_is_pooled_as_the_files_say_alone_or_beside_longer_ones(mode: str, tmp_path: Path):
    folder = make_embedder(tmp_path, files=sentence_layout({FLAG.format(mode): True}))
    vectors = TextModelEmbedder(str(folder)).embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, unit(BY_HAND[mode](states(folder, text))), atol=1e-5)


@pytest.mark.parametrize("mode", [*BY_HAND, "cls_token, mean_tokens"])
def test_the_vectors_are_those_of_sentence_transformers(mode: str, tmp_path: Path):
    library = pytest.importorskip("sentence_transformers")
    pooling = {FLAG.format(one): True for one in mode.split(", ")}
    folder = make_embedder(
        tmp_path, files=sentence_layout(pooling, prompts={"query": "heat the "}, default_prompt_name="query")
    )
    theirs = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(TEXTS)
    np.testing.assert_allclose(TextModelEmbedder(str(folder)).embed(TEXTS), theirs, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_these_files_it_is_the_first_token_s_vector_of_length_one(family: str, tmp_path: Path):
    folder = make_embedder(tmp_path, family)
    vectors = TextModelEmbedder(str(folder)).embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, unit(states(folder, text)[0]), atol=1e-5)


def test_a_model_that_generates_text_is_read_at_its_last_token(tmp_path: Path):
    folder = make_embedder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["QwenForCausalLM"]}))
    assert layout_of(folder).poolings == ("lasttoken",)


def test_newer_files_name_the_pooling_and_several_are_joined(tmp_path: Path):
    folder = make_embedder(tmp_path, files=sentence_layout({"pooling_mode": ["mean", "cls"]}))
    embedder = TextModelEmbedder(str(folder))
    rows = states(folder, TEXTS[0])
    assert embedder.dimension == 64
    np.testing.assert_allclose(embedder.embed(TEXTS[:1])[0], unit(np.concatenate([rows[0], rows.mean(axis=0)])), atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "prompt"),
    [
        ({"prompts": {"query": "heat the ", "document": "lamp "}}, "heat the "),
        ({"prompts": {"query": "heat the ", "task": "lamp "}, "default_prompt_name": "task"}, "lamp "),
        ({"prompts": {"document": "lamp "}}, ""),
        ({"prompts": None, "default_prompt_name": None}, ""),
    ],
)
def test_every_text_gets_the_same_prompt(settings: dict, prompt: str, tmp_path: Path):
    folder = make_embedder(tmp_path, files=sentence_layout(**settings))
    vector = TextModelEmbedder(str(folder)).embed(["egg on desk"])[0]
    np.testing.assert_allclose(vector, unit(states(folder, f"{prompt}egg on desk").mean(axis=0)), atol=1e-5)


def test_a_prompt_can_be_left_out_of_the_pooling(tmp_path: Path):
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    folder = make_embedder(tmp_path, files=sentence_layout(pooling, prompts={"query": "heat the "}))
    vector = TextModelEmbedder(str(folder)).embed(["egg on desk"])[0]
    rows = states(folder, "heat the egg on desk")[3:]  # without [CLS], heat and the
    np.testing.assert_allclose(vector, unit(rows.mean(axis=0)), atol=1e-5)


def test_a_long_text_is_cut_where_the_files_say(tmp_path: Path):
    files = {**sentence_layout(), "sentence_bert_config.json": {"max_seq_length": 5, "do_lower_case": True}}
    embedder = TextModelEmbedder(str(make_embedder(tmp_path, files=files)))
    first, second, third = embedder.embed(["heat cup lamp desk egg", "HEAT cup lamp mug", "heat cup egg"])
    np.testing.assert_allclose(first, second, atol=1e-6)  # [CLS] heat cup lamp [SEP]
    assert np.abs(first - third).max() > 1e-3


def test_the_identity_belongs_to_weights_and_settings_and_not_to_the_folder_s_name(plain: Path, tmp_path: Path):
    identity = TextModelEmbedder(str(plain)).identity
    shutil.copytree(plain, tmp_path / "moved")
    assert TextModelEmbedder(str(tmp_path / "moved")).identity == identity
    assert identity.startswith("text-model-1:modernbert:")
    others = [make_embedder(tmp_path / "seed", seed=1), make_embedder(tmp_path / "mean", files=sentence_layout())]
    assert len({identity, *(TextModelEmbedder(str(one)).identity for one in others)}) == 3


def test_a_memory_is_reopened_with_the_model_that_wrote_it_and_with_no_other(plain: Path, tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder=str(plain)) as memory:
        memory.add([("heat the cup", "microwave"), ("clean the lamp", "cloth")], progress=False)
    with CascadeMemory(tmp_path / "m", embedder=str(plain)) as memory:
        assert memory.recall("heat the cup").cases[0].solution == "microwave"
    with pytest.raises(EncoderMismatch, match=r"pass its folder, or its name on the hub \(owner/name\), as embedder="):
        CascadeMemory(tmp_path / "m")
    for other in ("hashing", str(make_embedder(tmp_path / "other", seed=1))):
        with pytest.raises(EncoderMismatch, match="was written with the embedder 'text-model-1:modernbert"):
            CascadeMemory(tmp_path / "m", embedder=other)


def test_a_name_on_the_hub_that_is_not_in_the_cache_is_refused_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InvalidInput, match="no model of that name was found"):
        TextModelEmbedder("nobody/knows-this-model")


@pytest.mark.parametrize("name", ["a/b/c", "/nowhere/at/all", "owner/..", "owner/na me", "https://x/y"])
def test_a_text_that_names_nothing_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput):
        folder_of_model(name)


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("config.json", "{", "cannot be read as JSON"),
        ("config.json", [], "must hold a JSON object"),
        ("config.json", {"model_type": "modernbert", "hidden_size": "32"}, "hidden_size must be a whole number"),
        ("config.json", {"model_type": "modernbert", "hidden_size": 10**12}, "hidden_size must be a whole number"),
        ("config.json", {"model_type": ["x"], "hidden_size": 32}, "names no model_type"),
        ("modules.json", {"type": "x"}, "must hold a JSON list"),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": "../../etc"}], "path inside the folder"),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": "/etc"}], "path inside the folder"),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": "none"}], "how to pool"),
        ("modules.json", [{"type": "my_code.Evil", "path": ""}], "only Transformer, Pooling and Normalize"),
        (
            "modules.json",
            [{"type": "sentence_transformers.models.Transformer", "path": "sub"}],
            "must lie in the folder itself",
        ),
        ("modules.json", [7], "without a path"),
        ("1_Pooling/config.json", {"pooling_mode": "magic"}, "the pooling of"),
        ("1_Pooling/config.json", {"word_embedding_dimension": 32}, "the pooling of"),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "which fits no text"),
        ("config_sentence_transformers.json", {"prompts": ["x"]}, "prompts must be"),
        ("config_sentence_transformers.json", {"prompts": {"query": 7}}, "must be a text"),
        ("config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": "lost"}, "must be a text"),
        ("config_sentence_transformers.json", "[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_hostile_files_are_refused_with_a_sentence(file: str, content: object, why: str, tmp_path: Path):
    folder = make_embedder(tmp_path, files={**sentence_layout(), file: content})
    with pytest.raises(InvalidInput, match=why):
        TextModelEmbedder(str(folder))


def test_pickled_weights_are_not_read(tmp_path: Path):
    folder = make_embedder(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match="no weights as safetensors"):
        TextModelEmbedder(str(folder))


def test_weights_of_another_model_are_refused_when_they_are_loaded(tmp_path: Path):
    folder, other = make_embedder(tmp_path / "a"), make_embedder(tmp_path / "b", "bert")
    shutil.copy(other / "model.safetensors", folder)
    with pytest.raises(InvalidInput, match=r"lack|cannot be loaded"):
        TextModelEmbedder(str(folder)).prepare()


def test_code_of_a_model_is_not_run(tmp_path: Path):
    folder = make_embedder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    auto = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "evil", "auto_map": auto}))
    (folder / "evil.py").write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()")
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        TextModelEmbedder(str(folder)).prepare()
    assert not (tmp_path / "ran").exists()

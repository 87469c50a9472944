"""Small randomly initialised rerankers and embedders: the architectures of the real ones, with a word list of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

WORDS = (
    "heat cup lamp desk fridge cool clean put take the a in on mug egg apple drawer cabinet open close big task kind of".split()  # noqa: SIM905
)
FAMILIES = ("bert", "roberta", "modernbert")


def make_reranker(folder: Path, family: str = "modernbert", *, seed: int = 0, labels: int = 1, head: bool = True) -> Path:
    """Save a reranker of a family with its tokenizer into a folder."""
    import torch
    import transformers

    torch.manual_seed(seed)
    settings = {"vocab_size": len(WORDS) + 35, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    settings |= {"intermediate_size": 48, "max_position_embeddings": 130, "pad_token_id": 0, "num_labels": labels}
    if family == "modernbert":
        settings |= {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    name = {"bert": "Bert", "roberta": "Roberta", "modernbert": "ModernBert"}[family]
    config = getattr(transformers, f"{name}Config")(**settings)
    kind = f"{name}ForSequenceClassification" if head else f"{name}Model"
    model = getattr(transformers, kind)(config)
    with torch.no_grad():  # far enough from nothing that orders differ
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def make_embedder(
    folder: Path, family: str = "modernbert", *, seed: int = 0, files: Mapping[str, object] | None = None
) -> Path:
    """Save a text model without a head; ``files`` are further JSON files by path."""
    make_reranker(folder, family, seed=seed, head=False)
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def sentence_layout(pooling: Mapping[str, object] | None = None, **settings: object) -> dict[str, object]:
    """Return the files of sentence-transformers for ``make_embedder``: a pooling, and ``config_sentence_transformers.json``."""
    kinds = ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")
    return {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, **(pooling or {"pooling_mode_mean_tokens": True})},
        "config_sentence_transformers.json": settings,
    }


def tokenizer():
    """Return a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *map(str, range(30))]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", model_max_length=128
    )

"""Small randomly initialised rerankers: the architectures of the real ones, with a word list of our own."""

from __future__ import annotations

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

"""A small randomly initialised language model, and a stream of tasks that it can learn."""

from __future__ import annotations

import json
from pathlib import Path

from cascade_memory.evaluation.tasks.task import FileTask

SIGNS = {"north": "red", "south": "blue"}  # the answer depends on the last word of the task
WORDS = ("[PAD]", "[BOS]", "[EOS]", *SIGNS, *SIGNS.values(), "go", "to", "the", "Answer", "colour", "with", "a", ".", "[UNK]")


def same_word(reply: str, label: str) -> float:
    """Judge an answer of one word."""
    return float(reply.strip() == label)


STREAM = FileTask(name="signs", file="signs.jsonl", judge=same_word, instruction="Answer.")


def make_language_model(folder: Path, *, seed: int = 0, template: str | None = None, longest: int = 512) -> Path:
    """Save a Llama of two layers with a tokenizer of whole words into a folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        config = LlamaConfig(
            vocab_size=len(WORDS),
            intermediate_size=64,
            max_position_embeddings=longest,
            initializer_range=0.2,
            **size,
            **special,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
    words = word_tokenizer()
    words.chat_template = template
    words.save_pretrained(folder)
    return folder


def word_tokenizer():
    """Return a tokenizer of whole words, which puts a token before each text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(single="[BOS] $A", special_tokens=[("[BOS]", 1)])
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "bos_token": "[BOS]", "eos_token": "[EOS]"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def write_signs(folder: Path, n: int) -> Path:
    """Write a stream of tasks, and return its folder."""
    signs = list(SIGNS.items())
    rows = [{"task": f"go to the {sign}", "label": colour} for sign, colour in (signs[i % len(signs)] for i in range(n))]
    (folder / "signs.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder

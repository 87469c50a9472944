"""Load a reranker, or say why it cannot be used."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.encoders.torch_settings import quiet_loading
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.ports.policy import Floats

NEEDS = 'a cross-encoder needs the extra "cross-encoder": pip install "cascade-memory[cross-encoder]"'
_SAMPLED = 64  # numbers of each weight that are part of the identity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Base:
    """A pretrained reranker without its last layer: it returns the pooled vector that this layer would get.

    ``head`` is the weight of that layer without its bias. ``identity`` changes with architecture, tokenizer and weights.
    """

    model: Any  # in single precision, on the device where it was loaded
    serving: Any  # the copy that scores
    tokenizer: Any
    head: Floats
    device: str
    inputs: tuple[str, ...]  # the inputs that the model takes
    half: bool  # scoring, and training with autocast, use bfloat16
    identity: str
    max_tokens: int


def load_base(name: str, *, device: str | None, max_tokens: int, half: bool | None = None) -> Base:
    """Load a reranker from a folder, or by its name on the Hugging Face hub; only a name may cause a download.

    By default it uses CUDA if there is a device, and bfloat16 only there.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise MissingExtra(NEEDS) from error
    here = Path(name).is_dir()
    config = _config(AutoConfig, name, local=here)
    model, missing = _model(AutoModelForSequenceClassification, name, config, local=here)
    tokenizer = _tokenizer(AutoTokenizer, name, local=here)
    place, layer = _head(model, torch)
    if any(key.startswith(f"{place}.") for key in missing):
        raise _no_head(name)
    head = layer.weight.detach().numpy()[0].astype(np.float64)
    identity = _identity(model, tokenizer, config, max_tokens)
    inputs = _inputs(model, config)
    parent, _, last = place.rpartition(".")
    setattr(model.get_submodule(parent), last, torch.nn.Identity())  # the output is what the last layer would get
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    longest = min(max_tokens, _positions(model, config, max_tokens), tokenizer.model_max_length)
    model = model.eval().requires_grad_(requires_grad=False)
    half = chosen.startswith("cuda") if half is None else half
    serving = served(model, chosen, half=half) if half or chosen != "cpu" else model
    return Base(
        model=model,
        serving=serving,
        tokenizer=tokenizer,
        head=head,
        device=chosen,
        inputs=inputs,
        half=half,
        identity=identity,
        max_tokens=longest,
    )


def served(model: Any, device: str, *, half: bool) -> Any:
    """Return a copy of a model for scoring: on the device, without gradients, in bfloat16 if ``half``."""
    import torch

    copied = copy.deepcopy(model).eval().requires_grad_(requires_grad=False)
    copied.to(device)
    for weight in copied.parameters() if half else ():  # not the buffers, since position angles need full precision
        weight.data = weight.data.to(torch.bfloat16)
    return copied


def _config(auto: Any, name: str, *, local: bool) -> Any:
    try:
        config = auto.from_pretrained(name, local_files_only=local, trust_remote_code=False)
    except Exception as error:
        raise InvalidInput(f"{name!r} is not a model: {_first_line(error)}") from error
    kinds: list[str] = getattr(config, "architectures", None) or []
    if not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise _no_head(name)
    if config.num_labels != 1:
        raise InvalidInput(
            f"{name!r} has {config.num_labels} labels, but a reranker has one: the score. "
            "Load one that was trained to rank, or save yours with num_labels=1"
        )
    if hasattr(config, "reference_compile"):
        config.reference_compile = False  # compiling again after every step would cost more time than it saves
    for option in list(vars(config)):  # no dropout while it is trained: it must learn from the scores with which it chose
        if "dropout" in option and isinstance(getattr(config, option), float):
            setattr(config, option, 0.0)
    return config


def _model(auto: Any, name: str, config: Any, *, local: bool) -> tuple[Any, set[str]]:
    try:
        with quiet_loading():
            model, report = auto.from_pretrained(
                name,
                config=config,
                local_files_only=local,
                use_safetensors=True,
                output_loading_info=True,
                trust_remote_code=False,
            )
    except Exception as error:
        raise InvalidInput(f"the weights of {name!r} cannot be loaded: {_first_line(error)}") from error
    return model.float(), set(report["missing_keys"])


def _tokenizer(auto: Any, name: str, *, local: bool) -> Any:
    try:
        tokenizer = auto.from_pretrained(name, local_files_only=local, trust_remote_code=False)
    except Exception as error:
        raise InvalidInput(
            f"{name!r} has no tokenizer beside its weights, and none is downloaded for a folder: "
            f"save it there with tokenizer.save_pretrained({name!r}) ({_first_line(error)})"
        ) from error
    if tokenizer.pad_token is None:
        raise InvalidInput(f"the tokenizer of {name!r} has no padding token: set tokenizer.pad_token and save it again")
    return tokenizer


def _head(model: Any, torch: Any) -> tuple[str, Any]:
    """Return the last layer, which turns the pooled vector into a score, and its name in the model."""
    found = [
        (place, module)
        for place, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module.out_features == 1
    ]
    if not found:
        raise InvalidInput(f"{type(model).__name__} has no last layer with one output, so there is nothing to start theta from")
    return found[-1]


def _no_head(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name!r} has no classification head: it is an encoder that was never trained to rank. "
        "Choose a reranker, for instance Alibaba-NLP/gte-reranker-modernbert-base"
    )


def _identity(model: Any, tokenizer: Any, config: Any, max_tokens: int) -> str:
    digest = hashlib.blake2b(digest_size=8)
    digest.update(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().flatten()[:_SAMPLED].float().numpy().tobytes())
    return f"cross-encoder-1:{config.model_type}:{config.hidden_size}:{max_tokens}:{digest.hexdigest()}"


def _positions(model: Any, config: Any, otherwise: int) -> int:
    """Return for how many tokens the model has positions: RoBERTa and similar models begin to count after the padding index."""
    positions = int(getattr(config, "max_position_embeddings", otherwise))
    for place, module in model.named_modules():
        if place.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return positions - int(module.padding_idx) - 1
    return positions


def _inputs(model: Any, config: Any) -> tuple[str, ...]:
    """Return which outputs of the tokenizer the model reads."""
    parameters = set(inspect.signature(model.forward).parameters)
    typed = int(getattr(config, "type_vocab_size", 2) or 0) > 1
    return tuple(
        name for name in ("input_ids", "attention_mask", "token_type_ids") if name in parameters and (typed or name[0] != "t")
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

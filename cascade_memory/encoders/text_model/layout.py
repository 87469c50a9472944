"""Finds out how a model turns a text into a vector: from its files of sentence-transformers or, without these, by a rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from cascade_memory.encoders.text_model.files import json_list, json_object
from cascade_memory.errors import InvalidInput

# The kinds of pooling, in the order in which their vectors are joined if there are several.
POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_E5 = re.compile(r"(^|[-_])e5-(small|base|large)(-v2|-unsupervised)?$", re.IGNORECASE)  # also multilingual-e5-base
_LONGEST = 8_192  # tokens, where the files set no limit
_WIDEST = 65_536  # numbers of a vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The settings by which a model turns a text into a vector."""

    kind: str  # the type of the model, such as "modernbert"
    dimension: int
    poolings: tuple[str, ...]
    max_tokens: int
    prompt: str  # stands before every text
    passage_prompt: str = field(repr=False)  # stands before a passage that is searched; the identity must not change with it
    pools_prompt: bool  # whether the prompt's tokens count in the pooling
    lower_case: bool


def layout_of(folder: Path) -> Layout:
    """Read from a model's files how it embeds.

    Without ``modules.json``, a text's vector is that of its first token (CLS), as the paper uses gte-modernbert-base; for a
    model that generates text, it is that of its last token, since only that one has seen the whole text.
    """
    config = json_object(folder / "config.json")
    if config is None:
        raise InvalidInput(f"{folder} is not a model: it has no config.json")
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind.isprintable() or len(kind) > 64:
        raise InvalidInput(f"{folder / 'config.json'} names no model_type")
    width = _whole(config.get("hidden_size", config.get("dim")), folder / "config.json", "hidden_size")
    where = _modules(folder)
    pooling = None if where is None else json_object(folder / where / "config.json")
    if where is not None and pooling is None:
        raise InvalidInput(f"{folder / where} has no config.json, which says how to pool")
    poolings = _default_pooling(config) if pooling is None else _poolings(pooling, folder)
    limits = json_object(folder / "sentence_bert_config.json") or {}
    prompt, passage_prompt = _prompts(folder)
    return Layout(
        kind=kind,
        dimension=width * len(poolings),
        poolings=poolings,
        max_tokens=_max_tokens(limits, config, folder),
        prompt=prompt,
        passage_prompt=passage_prompt,
        pools_prompt=pooling is None or pooling.get("include_prompt") is not False,
        lower_case=limits.get("do_lower_case") is True,
    )


def _modules(folder: Path) -> str | None:
    """Return the folder of the pooling's settings; None if the model has no list of modules, or no pooling in it."""
    listed = json_list(folder / "modules.json")
    found: str | None = None
    for module in listed or ():
        about = cast("dict[str, Any]", module) if isinstance(module, dict) else {}
        name, path = str(about.get("type")).rpartition(".")[2], about.get("path")
        if not isinstance(path, str) or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path:
            raise InvalidInput(f"{folder / 'modules.json'} names a module without a path inside the folder")
        if name == "Transformer" and path not in ("", "."):
            raise InvalidInput(
                f"{folder / 'modules.json'}: the transformer's files must lie in the folder itself, not in {path!r}"
            )
        if name == "Pooling":
            found = path
        elif name not in ("Transformer", "Normalize"):
            raise InvalidInput(
                f"{folder / 'modules.json'} has a module {name[:60]!r}, but only Transformer, Pooling and Normalize are read: "
                "pass an object with identity, dimension and embed(texts) that calls sentence-transformers itself"
            )
    return found


def _default_pooling(config: dict[str, Any]) -> tuple[str, ...]:
    kinds = config.get("architectures")
    generates = isinstance(kinds, list) and any(
        str(kind).endswith(("ForCausalLM", "LMHeadModel")) for kind in cast("list[Any]", kinds)
    )
    return ("lasttoken",) if generates else ("cls",)


def _poolings(pooling: dict[str, Any], folder: Path) -> tuple[str, ...]:
    named = pooling.get("pooling_mode")
    if named is not None:
        wanted = cast("list[Any]", [named] if isinstance(named, str) else named if isinstance(named, list) else [None])
    else:
        wanted = [mode for flag, mode in _FLAGS.items() if pooling.get(flag) is True]
    if not wanted or any(mode not in POOLINGS for mode in wanted):
        raise InvalidInput(f"the pooling of {folder} is unknown: it must be one of {', '.join(POOLINGS)}")
    return tuple(mode for mode in POOLINGS if mode in wanted)


def _max_tokens(limits: dict[str, Any], config: dict[str, Any], folder: Path) -> int:
    said = json_object(folder / "tokenizer_config.json") or {}
    numbers = [limits.get("max_seq_length"), config.get("max_position_embeddings"), said.get("model_max_length"), _LONGEST]
    usable = [
        int(number)
        for number in numbers
        if isinstance(number, int | float) and not isinstance(number, bool) and -1e9 < number < 1e9
    ]
    if any(number < 2 for number in usable):
        raise InvalidInput(f"the files of {folder} set a length of {min(usable)} tokens, which fits no text")
    return min(usable)


def _prompts(folder: Path) -> tuple[str, str]:
    """Return the prompt that stands before every text, and the one before passages that are searched.

    A memory compares tasks with tasks, so all texts get the same one: the model's default prompt, otherwise that for queries.
    The models named E5 were trained with prompts that their files do not name, so these are added by the name.
    """
    file = folder / "config_sentence_transformers.json"
    settings = json_object(file) or {}
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or not (default is None or isinstance(default, str)):
        raise InvalidInput(f"{file}: prompts must be an object of texts, and default_prompt_name one of their names")
    named = cast("dict[str, Any]", prompts)
    if not any(named.values()) and default is None and _E5.search(_name_of(folder.resolve())):
        return "query: ", "passage: "
    chosen = named.get("query" if default is None else default, "" if default is None else None)
    passages = named.get("passage", named.get("document", chosen))
    for name, text in ((default or "query", chosen), ("passage", passages)):
        if not isinstance(text, str) or len(text) > 10_000:
            raise InvalidInput(f"{file}: the prompt {name!r} must be a text of at most 10,000 characters")
    return cast("str", chosen), cast("str", passages)


def _name_of(folder: Path) -> str:
    """Return the name of a model: that of its folder or, in the cache of the hub, that of the folder of its snapshots."""
    return folder.parent.parent.name if folder.parent.name == "snapshots" else folder.name


def _whole(number: object, file: Path, name: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _WIDEST:
        raise InvalidInput(f"{file}: {name} must be a whole number from 1 to {_WIDEST:,}, not {str(number)[:60]}")
    return number

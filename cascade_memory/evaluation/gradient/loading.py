"""Loads a causal language model from a folder, or says why it cannot be used, and adds an adapter (LoRA) for training."""

from __future__ import annotations

import hashlib
import inspect
import json
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cascade_memory.encoders import quiet_loading
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench.watching import PeakMemory
from cascade_memory.evaluation.gradient.settings import Training

EXTRA = 'needs the extra "gradient": pip install "cascade-memory[gradient]"'
_SAMPLED = 64  # numbers of each weight that are part of the identity
PROJECTIONS = ("q_proj", "v_proj")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CausalLM:
    """A pretrained causal language model with its tokenizer. Its weights are never changed."""

    name: str
    model: Any
    tokenizer: Any
    device: str  # where the tokens go
    dtype: str
    stops: frozenset[int]  # the tokens that end an answer
    positions: int  # the longest text, in tokens
    keeps_logits: bool  # it can compute the logits of the last positions only
    cache: str  # the name of its argument, and of its result, for what it remembers of the tokens before
    identity: str  # changes with architecture, tokenizer, weights and their type
    peak: PeakMemory

    def logits(self, tokens: list[int], last: int) -> Any:
        """Return the logits after each of the last ``last`` tokens of a text."""
        import torch

        ids = torch.tensor([tokens], device=self.device)
        only = {"logits_to_keep": last} if self.keeps_logits else {}
        found = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **only).logits
        return found[0, -last:].float()


@lru_cache(maxsize=1)  # a second large model would not fit
def load_causal_lm(name: str, *, dtype: str | None = "float32") -> CausalLM:
    """Load a model from a folder, or by its name on the Hugging Face hub; only a name may cause a download.

    On CUDA the weights are bfloat16, spread over all devices if there are several. On a CPU they are of ``dtype``; None is the
    type with which this machine computes fastest.
    """
    if not Path(name).is_dir() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise InvalidInput(f"there is no folder {name}: name one with a causal language model and its tokenizer")
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise MissingExtra(f"a local language model {EXTRA}") from error
    cuda = torch.cuda.is_available()
    peak = PeakMemory(cuda=cuda)
    local = Path(name).is_dir()
    tokenizer = _tokenizer(AutoTokenizer, name, local=local)
    options: dict[str, Any] = {_dtype_option(): torch.bfloat16 if cuda else getattr(torch, dtype or fastest_dtype())}
    if cuda and torch.cuda.device_count() > 1:
        options["device_map"] = "auto"
    model = _model(AutoModelForCausalLM, name, options, local=local)
    if cuda and "device_map" not in options:
        model.to("cuda")
    model.eval().requires_grad_(requires_grad=False)
    if (head := model.get_output_embeddings()) is not None:
        head.register_forward_pre_hook(_in_one_piece)
    takes = inspect.signature(model.forward).parameters
    return CausalLM(
        name=Path(name).resolve().name if local else name,
        model=model,
        tokenizer=tokenizer,
        device=str(model.get_input_embeddings().weight.device),
        dtype=str(model.dtype).removeprefix("torch."),
        stops=_stops(name, model, tokenizer),
        positions=int(getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length),
        keeps_logits="logits_to_keep" in takes,
        cache="cache" if "cache" in takes else "past_key_values",  # newer and older versions of transformers
        identity=_identity(model, tokenizer),
        peak=peak,
    )


def fastest_dtype() -> str:
    """Return "bfloat16" if this machine computes with it, else "float32".

    Most processors with AVX-512, AMX or ARM's bf16 do. On others a product of matrices takes a hundred times as long.
    """
    import torch

    # Builds of PyTorch without oneDNN have no such operator.
    by_processor = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return "bfloat16" if torch.cuda.is_available() or by_processor else "float32"


def _in_one_piece(head: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copy the input of the output layer; if it is a part of another tensor, PyTorch copies the weights for each text.

    ``contiguous`` is not enough: with one text, the last position of it counts as contiguous although its strides are those of
    the whole text.
    """
    del head
    return (given[0].new_empty(given[0].shape).copy_(given[0]), *given[1:])


def _dtype_option() -> str:
    import transformers

    return "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"


def _tokenizer(auto: Any, name: str, *, local: bool) -> Any:
    try:
        return auto.from_pretrained(name, local_files_only=local, trust_remote_code=False)
    except Exception as error:
        raise InvalidInput(
            f"{name!r} has no usable tokenizer beside its weights: save one there with "
            f"tokenizer.save_pretrained({name!r}) ({_first_line(error)})"
        ) from error


def _model(auto: Any, name: str, options: dict[str, Any], *, local: bool) -> Any:
    try:
        with quiet_loading():
            model, report = auto.from_pretrained(
                name,
                local_files_only=local,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                **options,
            )
    except Exception as error:
        raise InvalidInput(
            f"{name!r} is not a causal language model with its weights in safetensors: {_first_line(error)}"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise InvalidInput(
            f"the weights of {name!r} lack {missing[0]!r}, so it is not a complete causal language model: choose one that is"
        )
    return model


def _stops(name: str, model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer: those that the model's settings name, and the tokenizer's."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    listed = named if isinstance(named, list) else [named]
    found = frozenset(int(one) for one in (*listed, tokenizer.eos_token_id) if one is not None)
    if not found:
        raise InvalidInput(f"{name!r} names no token that ends a text: set tokenizer.eos_token and save the tokenizer again")
    return found


def _identity(model: Any, tokenizer: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    digest.update(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    digest.update(str(tokenizer.chat_template).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(weight.detach().flatten()[:_SAMPLED].float().cpu().numpy().tobytes())
    return f"{model.config.model_type}:{digest.hexdigest()}"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class Adapter:
    """Trainable matrices inside a model; they change nothing at first. ``remove`` takes them out again.

    The model's own weights stay as they are.
    """

    def __init__(self, lm: CausalLM, training: Training, seed: int) -> None:
        try:
            from peft import LoraConfig, get_peft_model
        except ImportError as error:
            raise MissingExtra(f"REINFORCE + LoRA {EXTRA}") from error
        _check_projections(lm)
        config = LoraConfig(
            r=training.rank,
            lora_alpha=training.scaling,  # pyright: ignore[reportArgumentType] - any number will do
            target_modules=list(PROJECTIONS),
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
        )
        with _seeded(seed), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # peft, with newer transformers
            self._inside = get_peft_model(lm.model, config)
        self._inside.eval()
        self.weights: dict[str, Any] = {
            name: weight for name, weight in self._inside.named_parameters() if weight.requires_grad
        }

    def switched_off(self) -> AbstractContextManager[Any]:
        """Return a context manager: inside its block, the model computes as it did before the training."""
        return self._inside.disable_adapter()

    def remove(self) -> None:
        """Take the adapter out of the model."""
        self._inside.unload()
        self.weights = {}


def _check_projections(lm: CausalLM) -> None:
    names = sorted(
        {
            place.rpartition(".")[2]
            for place, module in lm.model.named_modules()
            if getattr(module, "weight", None) is not None and module.weight.ndim == 2
        }
    )
    lacking = [one for one in PROJECTIONS if one not in names]
    if lacking:
        raise InvalidInput(
            f"{lm.name} has no layers named {' and '.join(lacking)}, which REINFORCE + LoRA adapts: it has {', '.join(names)}. "
            "Choose a model with separate query and value projections, such as Qwen3 or Llama"
        )


@contextmanager
def _seeded(seed: int) -> Generator[None]:
    """Seed torch's generators inside the block; afterwards they are as before."""
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield

"""The built-in rankers, by name."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cascade_memory.assembly.ranker_options import check_ranker_options
from cascade_memory.bandit.credit import CREDITS, Credit
from cascade_memory.bandit.light import COSINE_WEIGHT, LightPolicy
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.shared_weights import SharedWeights
from cascade_memory.bandit.similarity import FrozenHead, ShowNothing, SimilarityPolicy
from cascade_memory.bandit.uniform import UniformPolicy
from cascade_memory.domain.quoting import quoted
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.encoders.cross_encoder import Base, CrossEncoder, load_base
from cascade_memory.encoders.cross_encoder.encoder import PairText, query_and_case_query
from cascade_memory.encoders.light import ENDS, FEATURES, LightEncoder
from cascade_memory.encoders.recency import RecencyEncoder
from cascade_memory.encoders.text_model.files import names_a_model
from cascade_memory.errors import InvalidInput
from cascade_memory.learning.ranker import Lookup, Ranker
from cascade_memory.ports.policy import Policy

END_WEIGHT = 5.0 * COSINE_WEIGHT  # of the signals "opening" and "closing" before any reward, times how much they say
# The weights of FEATURES before any reward: for a query of one paragraph they order the candidates by cosine.
START = np.array([COSINE_WEIGHT if name == "similarity" else END_WEIGHT if name in ENDS else 0.0 for name in FEATURES])


def _cosine_only(dimension: int, lookup: Lookup) -> CosineEncoder:
    del dimension, lookup
    return CosineEncoder()


def _recency(dimension: int, lookup: Lookup) -> RecencyEncoder:
    del dimension, lookup
    return RecencyEncoder()


def light(*, hindsight: bool = True, shared: bool = False, **options: Any) -> Ranker:
    """Make the default ranker: the light encoder, a ranking head with hindsight, and abstaining.

    With ``shared``, one more head learns from all namespaces of a folder; its weights are the prior mean of the others.
    """
    policy = functools.partial(LightPolicy, len(FEATURES), hindsight=hindsight, start=START, **options)
    weights = SharedWeights(policy) if shared else None
    lean_on = None if weights is None else weights.mean
    return Ranker(
        name="light",
        encoder=LightEncoder,
        policy=lambda: policy(lean_on=lean_on),
        features=FEATURES,
        shared=weights,
    )


def _on_light_features(name: str, policy: Callable[[], Policy]) -> Ranker:
    return Ranker(name=name, encoder=LightEncoder, policy=policy, features=FEATURES)


def untrained() -> Ranker:
    """Make a ranker that always orders as the default does before any reward; like "similarity", it always shows a case."""
    return _on_light_features("untrained", lambda: FrozenHead(START))


def neural_linlogucb(**options: Any) -> Ranker:
    """Make the paper's bandit on the light features, with the initial weights of the default. ``alpha=0`` is greedy."""
    return _on_light_features("neural-linlogucb", lambda: NeuralLinLogUCB(START.copy(), **options))


def linlogucb(**options: Any) -> Ranker:
    """Make LinLogUCB on the light features."""
    return _on_light_features("linlogucb", lambda: LinLogUCB(len(FEATURES), **options))


def neural_logucb(**options: Any) -> Ranker:
    """Make NeuralLogUCB on the light features."""
    return _on_light_features("neural-logucb", lambda: NeuralLogUCB(len(FEATURES), **options))


def neural_linucb(**options: Any) -> Ranker:
    """Make Neural-LinUCB on the light features, which are not trained."""
    return _on_light_features("neural-linucb", lambda: NeuralLinUCB(START.copy(), **options))


def thompson(**options: Any) -> Ranker:
    """Make Thompson sampling on the light features."""
    return _on_light_features("thompson", lambda: ThompsonSampling(START.copy(), **options))


def cross_encoder(
    model: str,
    *,
    bandit: Callable[..., Policy] = NeuralLinLogUCB,
    schedule: Schedule | None = None,
    trained: bool = True,
    encoder_learning_rate: float = 1e-5,
    device: str | None = None,
    half: bool | None = None,
    max_tokens: int = 2_048,
    pair_text: PairText = query_and_case_query,
    **options: Any,
) -> Ranker:
    """Make the paper's ranker: a Hugging Face reranker that is trained online, with a linear head that explores.

    Args:
        model: A folder, or a name on the Hugging Face hub, of a sequence classifier with one label.
        bandit: The head: ``NeuralLinLogUCB``, or ``NeuralLinUCB`` or ``ThompsonSampling`` from ``bandit.rivals``. With
            ``LinLogUCB`` or ``NeuralLogUCB``, the encoder is not trained: they learn from the pretrained reranker's features.
        schedule: When and how the encoder is trained.
        trained: False is the paper's NP-CBR: the pretrained reranker, unchanged; nothing is learned.
        encoder_learning_rate: The learning rate of AdamW; the paper chooses it from 1e-6, 3e-6, 1e-5 and 2e-5.
        device: "cuda", "cpu", ...; None takes CUDA if it is available.
        half: Compute in bfloat16; None does so on CUDA. Processors with AMX also gain (three times as fast in our measurement).
        max_tokens: The largest length of a pair; longer pairs are cut.
        pair_text: Builds the texts that the reranker reads; by default the two tasks, as in the paper.
        options: Options of the bandit.
    """
    on_frozen = bandit in (LinLogUCB, NeuralLogUCB)
    if on_frozen and (schedule is not None or not trained):
        raise InvalidInput(
            "LinLogUCB and NeuralLogUCB learn from the features of an untrained reranker: leave out schedule and trained"
        )
    if not on_frozen:
        options.setdefault("learning_rate", encoder_learning_rate)  # the paper has one eta for both
    loading = threading.Lock()
    loaded: list[Base] = []

    def base() -> Base:
        with loading:
            if not loaded:
                loaded.append(load_base(model, device=device, max_tokens=max_tokens, half=half))
            return loaded[0]

    def encoder(dimension: int, lookup: Lookup) -> CrossEncoder:
        del dimension, lookup
        return CrossEncoder(base(), pair_text=pair_text, learning_rate=encoder_learning_rate)

    def policy() -> Policy:
        head = base().head
        if not trained:
            return FrozenHead(head)
        return bandit(len(head) if on_frozen else head, **options)

    return Ranker(
        name=f"cross-encoder {model}",
        encoder=encoder,
        policy=policy,
        training=(schedule or Schedule()) if trained and not on_frozen else None,
        writes_features=False,
        reencodes=on_frozen,
    )


def similarity() -> Ranker:
    """Make a ranker that orders by cosine and learns nothing."""
    return Ranker(name="similarity", encoder=_cosine_only, policy=SimilarityPolicy)


def uniform() -> Ranker:
    """Make a control for experiments, which draws candidates at random."""
    return Ranker(name="random", encoder=_cosine_only, policy=UniformPolicy)


def zero_shot() -> Ranker:
    """Make the baseline without memory: recalls are logged, but no case is shown."""
    return Ranker(name="zero-shot", encoder=_cosine_only, policy=ShowNothing)


def latest() -> Ranker:
    """Make a ranker that shows the last k cases, whatever the task is: in-context reinforcement learning (ICRL).

    If only successes are stored, as by default, this is ICRLPlus; with ``retain_at=0`` failures are stored too: ICRL.
    """
    return Ranker(name="latest", encoder=_recency, policy=lambda: FrozenHead(np.ones(1)), newest=True)


_CREDITED: Mapping[str, Callable[..., Ranker]] = {
    "auto": light,
    "light": light,
    "neural-linlogucb": neural_linlogucb,
    "linlogucb": linlogucb,
    "neural-logucb": neural_logucb,
    "neural-linucb": neural_linucb,
    "thompson": thompson,
}
BY_NAME: Mapping[str, Callable[..., Ranker]] = {
    **_CREDITED,
    "similarity": similarity,
    "random": uniform,
    "zero-shot": zero_shot,
    "latest": latest,
}


_TAKERS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "auto": (LightPolicy,),
    "light": (LightPolicy,),
    "neural-logucb": (NeuralLogUCB,),
    **dict.fromkeys(("neural-linlogucb", "linlogucb", "neural-linucb", "thompson"), (NeuralLinLogUCB,)),
}


def resolve_ranker(
    ranker: str | Ranker,
    *,
    hindsight: bool,
    shared: bool = False,
    credit: str | Credit = "matched",
    options: Mapping[str, Any] | None = None,
) -> Ranker:
    """Return the ranker that the user chose.

    >>> resolve_ranker("similarity", hindsight=True).name
    'similarity'
    """
    if isinstance(ranker, Ranker):
        if shared and ranker.shared is None:
            raise InvalidInput(f'policy_scope="shared" needs a ranker with shared weights, and {ranker.name!r} has none')
        _check_made(ranker, credit, options)
        return ranker
    ranker = str.__str__(ranker) if isinstance(ranker, str) else ranker  # pyright: ignore[reportUnnecessaryIsInstance]
    known = isinstance(ranker, str) and ranker in BY_NAME  # pyright: ignore[reportUnnecessaryIsInstance]
    if not known and not _names_a_model(ranker):
        raise InvalidInput(
            f"ranker must be one of {', '.join(sorted(BY_NAME))}, a reranker's folder or its name on the Hugging Face hub "
            f"(owner/name), or a Ranker, not {quoted(ranker)}"
        )
    if shared and ranker not in ("auto", "light"):
        raise InvalidInput(f'policy_scope="shared" needs the ranker "light": {ranker!r} has no weights to share')
    takers = _TAKERS.get(ranker, () if known else (cross_encoder, NeuralLinLogUCB))
    given = {} if options is None else check_ranker_options(ranker, options, takers)
    if ranker in _CREDITED or not known:
        given["credit"] = resolve_credit(credit)
    if not known:
        return cross_encoder(ranker, **given)
    if ranker in ("auto", "light"):
        given |= {"hindsight": hindsight, "shared": shared}
    made = BY_NAME[ranker](**given)
    if options:
        _try_out(made)
    return made


def _try_out(ranker: Ranker) -> None:
    """Create a policy now, so that impossible options raise an error here; a recall would hide it by failing open."""
    try:
        ranker.policy()
    except Exception as error:
        raise InvalidInput(f"the ranker {ranker.name!r} cannot be made with these ranker_options: {error}") from error


def _check_made(ranker: Ranker, credit: str | Credit, options: Mapping[str, Any] | None) -> None:
    """Refuse ``credit`` and ``ranker_options`` beside a ``Ranker`` object, which would ignore them."""
    late = [name for name, given in (("credit", credit != "matched"), ("ranker_options", options is not None)) if given]
    if late:
        raise InvalidInput(
            f"{late[0]}= can only be used with a ranker named by a string, but {ranker.name!r} is a Ranker object: set "
            "it when you create that, such as with cascade_memory.assembly.rankers.light(credit=...)"
        )


def resolve_shadow(shadow: str | Ranker | None, *, hindsight: bool, credit: str | Credit = "matched") -> Ranker | None:
    """Return the shadow ranker; refuse rankers that are slow or do not choose among the most similar cases."""
    if shadow is None:
        return None
    is_object = isinstance(shadow, Ranker)  # such an object was created with its own credit function
    ranker = resolve_ranker(shadow, hindsight=hindsight, credit="matched" if is_object else credit)
    if ranker.newest or ranker.shared is not None or not ranker.writes_features:
        raise InvalidInput(
            f"{ranker.name!r} cannot be a shadow: a shadow scores the ranker's candidates at every recall and must be fast. "
            "Choose one that needs no texts, such as 'light', 'similarity' or 'neural-linlogucb'"
        )
    return ranker


def _names_a_model(ranker: object) -> bool:
    return isinstance(ranker, str) and names_a_model(ranker)


def resolve_credit(credit: str | Credit) -> Credit:
    """Return the function that attributes a reward to some of the chosen cases.

    >>> resolve_credit("all").__name__
    'credit_all'
    """
    if callable(credit):
        return credit
    if not isinstance(credit, str) or credit not in CREDITS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f'credit must be "matched", "all", "first" or a function of the outcome, not {quoted(credit)}')
    return CREDITS[credit]

"""Finds the ranker that the user chose. The default one is made without the modules of the others, so that it starts fast."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cascade_memory.assembly.light_ranker import light
from cascade_memory.bandit.credit import CREDITS, Credit
from cascade_memory.domain.quoting import quoted
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.learning.ranker import Ranker

_DEFAULT = ("auto", "light")


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
    if ranker in _DEFAULT and options is None:
        return light(hindsight=hindsight, shared=shared, credit=resolve_credit(credit))
    from cascade_memory.assembly.ranker_options import check_ranker_options
    from cascade_memory.assembly.rankers import BY_NAME, CREDITED, OF_A_MODEL, TAKERS, cross_encoder

    known = _is_known(ranker)
    if not known and not _names_a_model(ranker):
        raise InvalidInput(
            f"ranker must be one of {', '.join(sorted(BY_NAME))}, a reranker's folder or its name on the Hugging Face hub "
            f"(owner/name), or a Ranker, not {quoted(ranker)}"
        )
    if shared and ranker not in _DEFAULT:
        raise InvalidInput(f'policy_scope="shared" needs the ranker "light": {ranker!r} has no weights to share')
    takers = TAKERS.get(ranker, ()) if known else OF_A_MODEL
    given = {} if options is None else check_ranker_options(ranker, options, takers)
    if ranker in CREDITED or not known:
        given["credit"] = resolve_credit(credit)
    if not known:
        _check_there(ranker)
        return cross_encoder(ranker, **given)
    if ranker in _DEFAULT:
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
    if not is_object and shadow not in _DEFAULT and not _is_known(shadow) and _names_a_model(shadow):
        raise _too_slow(shadow)  # whether it can be loaded does not matter
    ranker = resolve_ranker(shadow, hindsight=hindsight, credit="matched" if is_object else credit)
    if ranker.newest or ranker.shared is not None or not ranker.writes_features:
        raise _too_slow(ranker.name)
    return ranker


def _too_slow(shadow: str) -> InvalidInput:
    return InvalidInput(
        f"{quoted(shadow)} cannot be a shadow: a shadow scores the ranker's candidates at every recall and must be fast. "
        "Choose one that needs no texts, such as 'light', 'similarity' or 'neural-linlogucb'"
    )


def _check_there(model: str) -> None:
    """Refuse a cross-encoder that cannot be loaded. This is checked now, since the first recall would hide the error."""
    if model.startswith((".", "/", "~")) and not Path(model).is_dir():
        raise InvalidInput(
            f"ranker: there is no folder {model!r}; name the folder of a reranker, or owner/name on the Hugging Face hub"
        )
    from cascade_memory.encoders.cross_encoder.loading import NEEDS

    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        raise MissingExtra(NEEDS)


def _is_known(ranker: object) -> bool:
    from cascade_memory.assembly.rankers import BY_NAME

    return isinstance(ranker, str) and ranker in BY_NAME


def _names_a_model(ranker: object) -> bool:
    from cascade_memory.encoders.text_model.files import names_a_model

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

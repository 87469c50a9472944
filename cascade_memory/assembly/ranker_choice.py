"""Finds the ranker that the user chose, and checks its options.

The default ranker is made without the modules of the others, so that it starts fast.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import math
import types
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin

from cascade_memory.assembly.light_ranker import light
from cascade_memory.bandit.credit import CREDITS, Credit
from cascade_memory.domain.display import quoted
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.learning.ranker import Ranker

_OWN = frozenset(
    {"self", "options", "model", "dimension", "theta", "start", "hindsight", "lean_on", "credit"}
)  # parameters that users do not set
_DEFAULT = ("auto", "light")


def check_ranker_options(ranker: str, given: object, makers: tuple[Callable[..., Any], ...]) -> dict[str, Any]:
    """Check that one of ``makers`` has a parameter with the name and type of each option; return a copy of the options.

    >>> from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
    >>> check_ranker_options("neural-linlogucb", {"alpha": 0}, (NeuralLinLogUCB,))
    {'alpha': 0}
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"ranker_options must be a mapping, such as {{'alpha': 0.1}}, not a {type(given).__name__}")
    hints = {name: hint for maker in makers for name, hint in _parameters(maker).items()}
    options = dict(cast("Mapping[Any, Any]", given))
    for name, value in options.items():
        if name not in hints:
            close = difflib.get_close_matches(str(name), hints, n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            takes = ", ".join(hints) if hints else "no options"
            raise InvalidInput(f"the ranker {ranker!r} takes no option {name!r}{meant}; it takes {takes}")
        if not _fits(value, hints[name]):
            raise InvalidInput(f"ranker_options: {name!r} must be {_in_words(hints[name])}, not {quoted(value)}")
    return options


def _parameters(maker: Callable[..., Any]) -> dict[str, Any]:
    function: Any = maker.__init__ if inspect.isclass(maker) else maker
    options = {name: one for name, one in inspect.signature(maker).parameters.items() if name not in _OWN}
    # Hints are resolved one by one: the hint of a parameter that users do not set may name a type that is not imported there.
    return {name: eval(str(one.annotation), function.__globals__) for name, one in options.items()}


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint in (float, int):
        kind = Real if hint is float else Integral
        return type(value) is not bool and isinstance(value, kind) and 0.0 <= float(value) < math.inf
    if origin is not None:  # a function
        return callable(value)
    return isinstance(value, hint)


def _in_words(hint: Any) -> str:
    known = {float: "a number of at least 0", int: "a whole number of at least 0", bool: "True or False", str: "a text"}
    if hint in known:
        return known[hint]
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(one) for one in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join("None" if one is type(None) else _in_words(one) for one in get_args(hint))
    return "a function" if origin is not None else f"a {hint.__name__}"


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

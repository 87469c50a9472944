"""The colours of everything that is drawn, for light and for dark pages, and what they mean: the same in every picture.

Texts and lines in these colours have a contrast of at least 4.5 to the page and to its boxes. As hues alone are not enough for
colour-blind readers, a method also has a dash pattern, a marker, and its name at the end of its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# The name of a colour, with its value on a light page and on a dark one.
SHADES: dict[str, tuple[str, str]] = {
    "ink": ("#1b1f24", "#e8eaed"),
    "faint": ("#68707a", "#9da5ae"),
    "page": ("#ffffff", "#14171b"),
    "box": ("#f4f6f8", "#1d2127"),
    "line": ("#d4d9df", "#3a4149"),
    "good": ("#00633f", "#5fdcae"),
    "bad": ("#a83200", "#ff9a6b"),
    "cascade": ("#0062a3", "#5cb8f0"),
    "similarity": ("#b84c00", "#ff9a52"),
    "no-memory": ("#636a73", "#a3abb5"),
    "always": ("#00785a", "#3fd0a5"),
    "random": ("#7d6400", "#dcbb3a"),
    "neural": ("#a3307a", "#ee8cc0"),
    "spare-1": ("#7a4a2b", "#d0a07c"),
    "spare-2": ("#5446b8", "#a9a2f5"),
    "spare-3": ("#0b6e7d", "#63c7d6"),
    "spare-4": ("#ad1f3d", "#ff8da1"),
    "other": ("#b4bac2", "#565e68"),  # of lines in the background only, which need not be told apart
}
_OF_PAGES = ("page", "box", "line")  # never the colour of a line or a text
BLACK, WHITE, FRAME = "#000000", "#ffffff", "#ff3b30"  # on a field whose colour is the same on every page
INK, FAINT, PAGE = (SHADES[name][0] for name in ("ink", "faint", "page"))


@dataclass(frozen=True, slots=True)
class Look:
    """How the line of a method is drawn in a chart: its colour, its dash pattern and its marker."""

    colour: str
    dash: str
    mark: str
    strong: bool = True


def _look(name: str, dash: str, mark: str) -> Look:
    return Look(SHADES[name][0], dash, mark)


_LOOKS = {
    "CASCADE": _look("cascade", "-", "o"),
    "similarity": _look("similarity", "-.", "^"),
    "zero-shot": _look("no-memory", "--", "X"),
    "random": _look("random", ":", "v"),
    "CASCADE, always a case": _look("always", "-", "s"),
    "Neural-LinLogUCB": _look("neural", "--", "D"),
}
_ALSO_CALLED = {"no memory": "zero-shot", "most similar case": "similarity"}
_SPARE = (_look("spare-1", "--", "P"), _look("spare-2", "-.", "*"), _look("spare-3", ":", "h"), _look("spare-4", "-", "p"))
OTHER = Look(SHADES["other"][0], "-", ".", strong=False)
_STRONG = 7  # more lines than these cannot be told apart


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """Give each method a look. A known method has the same in every picture, and no other method ever gets it.

    The other methods get spare colours in the order of the list, until there are too many; the rest is light grey.

    >>> looks(["mine", "similarity"])["similarity"] == looks(["similarity", "most similar case"])["most similar case"]
    True
    """
    known = {method: _LOOKS[name] for method in methods if (name := _ALSO_CALLED.get(method, method)) in _LOOKS}
    spare = iter(_SPARE[: max(0, _STRONG - len(known))])
    return {method: known.get(method) or next(spare, OTHER) for method in methods}


def strong(methods: Sequence[str]) -> list[str]:
    """Return the methods that are not light grey."""
    return [method for method, look in looks(methods).items() if look.strong]


def legend(methods: Sequence[str]) -> dict[str, Look]:
    """Return the entries of a legend for these methods; all light grey methods share one entry."""
    look = looks(methods)
    grey = {"others, see the tables": OTHER} if OTHER in look.values() else {}
    return {**{method: look[method] for method in strong(methods)}, **grey}


# -- CSS -----------------------------------------------------------------------------------------------------------------------


def variables(names: Iterable[str] = SHADES) -> str:
    """Declare CSS variables whose values follow the ``color-scheme`` of the element.

    >>> variables(["cascade"])
    '--cascade:light-dark(#0062a3,#5cb8f0);'
    """
    return "".join(f"--{name}:light-dark({','.join(SHADES[name])});" for name in names)


def page_variables() -> str:
    """Declare the CSS variables of a whole page, whose values follow the reader's system; older browsers know these, too.

    >>> page_variables()[:48], "@media (prefers-color-scheme: dark)" in page_variables()
    (':root { color-scheme: light dark; --ink: #1b1f24', True)
    """
    light, dark = ("; ".join(f"--{name}: {both[place]}" for name, both in SHADES.items()) for place in (0, 1))
    return f":root {{ color-scheme: light dark; {light}; }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}; }} }}\n"


def as_variable(colour: str) -> str:
    """Return the CSS variable of a colour in a picture.

    >>> as_variable("#0062a3")
    'var(--cascade)'
    """
    return f"var(--{_NAMES[colour]})"


def with_variables(svg: str) -> str:
    """Replace the colours of a picture by CSS variables, which the page that shows the picture must declare."""
    for colour in _NAMES:
        svg = svg.replace(colour, as_variable(colour))
    return svg


_NAMES = {light: name for name, (light, _) in SHADES.items() if name not in _OF_PAGES}

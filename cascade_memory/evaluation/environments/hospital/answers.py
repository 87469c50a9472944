"""Judges an answer by its label as the paper's environment does: equal as text, with rounded numbers, and 1 for yes."""

from __future__ import annotations

_AS_NUMBERS = {"True": "1", "False": "0"}


def is_right(answer: str, label: object) -> bool:
    """Compare an answer with the label.

    >>> is_right("True", "1"), is_right("3.14159", 3.14), is_right("[(5,)]", "5")
    (True, True, False)
    """
    return _normal(_AS_NUMBERS.get(answer, answer)) == _normal(str(label))


def _normal(text: str) -> str:
    try:
        return f"{float(text):.2f}"
    except ValueError:
        return text

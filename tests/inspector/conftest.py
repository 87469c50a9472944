"""Fixtures of the inspector's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("starlette")

from inspecting import Browser, Door, door

from cascade_memory import CascadeMemory


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as opened:
        opened.add([("cool some mug", "put it into the fridge"), ("heat some egg", "microwave it")])
        yield opened


@pytest.fixture
def own(memory: CascadeMemory) -> Iterator[Door]:
    with door(memory) as made:
        yield made


@pytest.fixture
def browser(own: Door) -> Browser:
    return own.browser()

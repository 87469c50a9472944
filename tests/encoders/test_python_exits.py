"""Python may exit while a background thread is inside a model: the process still ends with the status of its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cascade_memory.encoders import minilm

_EMBEDS = """
import threading, time
from cascade_memory.encoders.minilm import MiniLMEmbedder

embedder = MiniLMEmbedder()
embedder.prepare()

def forever():
    while True:
        embedder.embed(["heat some cup and put it in cabinet"])

threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
raise SystemExit(3)
"""
_LOADS = """
import time
import onnxruntime, tokenizers  # so that what follows is little but the loading of the weights
from cascade_memory import CascadeMemory

CascadeMemory().warm(wait=False)
time.sleep({seconds})
raise SystemExit(3)
"""
_TRAINS = """
import sys, threading, time
import numpy as np
from cascade_memory.encoders.cross_encoder.encoder import CrossEncoder
from cascade_memory.ports.encoders import Pair
from cascade_memory.encoders.cross_encoder.loading import load_base

encoder = CrossEncoder(load_base(sys.argv[1], device="cpu", max_tokens=64), learning_rate=1e-3)
pair = Pair(query="heat some cup", text="cool some mug", head="heat some cup")
tokens = [encoder.tokenised(pair) for _ in range(8)]

def forever():
    while True:
        encoder.apprentice.step(tokens, np.ones(8), np.ones(8), encoder.head, joint=True, loss="logistic")

threading.Thread(target=forever, daemon=True).start()
time.sleep(0.5)
raise SystemExit(3)
"""


def _ends_with_its_status(script: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.slow
@pytest.mark.skipif(not minilm.is_installed(), reason="needs the extra 'local'")
@pytest.mark.parametrize("script", [_EMBEDS, *(_LOADS.format(seconds=seconds) for seconds in (0.05, 0.1, 0.15))])
def test_python_exits_while_the_default_embedder_is_at_work(script: str):
    _ends_with_its_status(script)


@pytest.mark.slow
def test_python_exits_while_a_cross_encoder_is_trained(tmp_path: Path):
    pytest.importorskip("transformers")
    from tiny_models import make_reranker

    _ends_with_its_status(_TRAINS, str(make_reranker(tmp_path / "model")))

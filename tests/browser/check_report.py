"""Open a report of a small real run in headless Chromium without network: no complaint, nothing to scroll sideways.

    python tests/browser/check_report.py [ROWS.jsonl] [--pictures FOLDER]

Without rows it plays a few tasks of a generated stream. Says so and does nothing where there is no Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from headless_browser import found, headless

from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.bench.tuning import tune
from cascade_memory.evaluation.report.page import write_report
from cascade_memory.evaluation.synthetic import tickets

WIDTHS = (1280, 400)
# Of a page that is too wide, what makes it so: all that sticks out and is in no box that scrolls.
_TOO_WIDE = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll')
    && one.getBoundingClientRect().right > WIDTH + 1)
    .map(one => one.tagName + ': ' + one.textContent.slice(0, 40))"""
_TOO_SMALL = """[...document.querySelectorAll('.panels text')].filter(one => one.getBoundingClientRect().height < 8).length"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def play(folder: Path) -> tuple[Path, Path]:
    lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(60, 0)]
    for file in ("banking77.jsonl", "rca_huawei_module.jsonl"):
        (folder / file).write_text("\n".join(lines))
    methods = ("zero-shot", "random", "similarity", "LinLogUCB", "CASCADE, always a case", "CASCADE")
    rows, tuning = folder / "rows.jsonl", folder / "tuning.jsonl"
    runs = [Run(task, method, seed) for task in ("banking77", "rca") for method in methods for seed in range(3)]
    run(runs, folder, rows, progress=False)
    few = {"learning_rate": (0.001, 0.1), "alpha": (0.1, 0.5)}
    tune(Run("rca", "Neural-LinLogUCB", 0), 1, lambda wanted: run(wanted, folder, tuning, progress=False), few)
    return rows, tuning


def check(page: Path, program: str, pictures: Path | None) -> None:
    with headless(program) as tab:
        for width in WIDTHS:
            for dark in (False, True):
                tab.open(page, width, dark=dark)
                inner, wide = tab.value("[window.innerWidth, document.documentElement.scrollWidth]")
                # A phone's window grows with a page that is too wide for it.
                too_wide = tab.value(_TOO_WIDE.replace("WIDTH", str(width)))
                assert wide <= inner == width, f"at {width} the page is {wide} wide: {too_wide}"
                assert tab.value("document.querySelectorAll('.panels svg').length") > 0
                assert tab.value(_TOO_SMALL) == 0, f"at {width} there are texts that nobody can read"
                say(f"{width} px, {'dark' if dark else 'light'}: {wide} wide")
                if pictures is not None:
                    tab.picture(pictures / f"{width}-{'dark' if dark else 'light'}.png")
        assert tab.complaints == [], tab.complaints
        assert set(tab.requests) == {page.resolve().as_uri()}, tab.requests
    say(f"no complaint, nothing asked for but the page itself ({page.stat().st_size // 1000} kB)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Open a report in headless Chromium.")
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--pictures", type=Path, help="folder for what it looks like")
    options = parser.parse_args()
    program = found()
    if program is None:
        say("no Chromium here: skipped (Debian: apt-get install chromium)")
        return
    with tempfile.TemporaryDirectory() as temporary:
        rows, tuning = (options.rows, None) if options.rows else play(Path(temporary))
        check(write_report(rows, Path(temporary) / "report", tuning), program, options.pictures)


if __name__ == "__main__":
    main()

"""Fifty planted faults: does a run of the tests find each of them?

``python tests/torture/planted_faults.py --marks "not long and not postgres"`` plants one fault after the other into a copy of the
checkout, runs the test files that name its module, then the tests of its room, and prints a line of JSON: which test found it, or
none. What these do not find is planted anew, all of it at once, and the whole suite is run: where that finds nothing either, no test does.

Candidates were drawn by chance from all comparisons, conditions, sums, returned values, checks and calls of each room. Those that
change nothing that can be seen were passed over, and some that break everything were made smaller by hand. A line that was changed since must be changed here, too: the script says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    """A line of the package, and what stands there instead."""

    file: str
    right: str
    wrong: str

    def plant(self, checkout: Path) -> None:
        """Write the fault into a copy of the checkout."""
        path = checkout / "cascade_memory" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            raise SystemExit(f"{self.file} has {text.count(self.right)} times, not once: {self.right}")
        path.write_text(text.replace(self.right, self.wrong), encoding="utf-8")

    def unplant(self, checkout: Path) -> None:
        """Take the fault out again."""
        subprocess.run(["git", "checkout", "-q", "--", f"cascade_memory/{self.file}"], cwd=checkout, check=True)


FAULTS = (
    Fault(
        "assembly/ranker_choice.py", "if not known and not _names_a_model(ranker):", "if not known and _names_a_model(ranker):"
    ),
    Fault("assembly/mirror.py", "ledger.facts.set(_IDENTITY, uuid.uuid4().hex[:12])", "pass"),
    Fault(
        "bandit/ranking_head.py",
        "0.5 * (self.precision * (point - self.prior) ** 2)",
        "0.5 * (self.precision * (point + self.prior) ** 2)",
    ),
    Fault(
        "bandit/neural_bandit.py",
        "[: most - newest]",
        "[: most]",
    ),
    Fault(
        "capabilities/sources/source_records.py",
        "self._shown.note(author, 1.0 if author == heard.reporter else 1.0 / max(self.share(author), 0.02))",
        "pass",
    ),
    Fault(
        "cli/bench_options.py",
        'raise InvalidInput("--retrieval is for the passages of the data, which are not searched with --search")',
        "pass",
    ),
    Fault("cli/arguments.py", "return indented(shortened(visible(message), _LONGEST))", "return visible(message)"),
    Fault(
        "cycle/reuse.py",
        "if number > 1 and used + len(text) > max_total_chars:",
        "if number > 1 and used + len(text) >= max_total_chars:",
    ),
    Fault(
        "capabilities/warnings/action_words.py",
        "listing = (listing or last in _SAYS_WHERE) and",
        "listing = (listing or last not in _SAYS_WHERE) and",
    ),
    Fault("cycle/recall.py", "if int(key) in rows][:size]", "if int(key) in rows][: size - 1]"),
    Fault("domain/validation.py", "return time.time() - value.total_seconds()", "return time.time() + value.total_seconds()"),
    Fault(
        "domain/digests.py", "now.wall >= self.until.wall or now.running >=", "now.wall >= self.until.wall and now.running >="
    ),
    Fault("domain/explanation.py", "by_score[place + 1 :] if other < i]", "by_score[place - 1 :] if other < i]"),
    Fault("encoders/light.py", "* covariance + max(shrinkage, 1e-3)", "* covariance - max(shrinkage, 1e-3)"),
    Fault(
        "encoders/lexical.py",
        "self._tally.add(buckets, distinct=len(texts) == 1)",
        "self._tally.add(buckets, distinct=len(texts) != 1)",
    ),
    Fault("encoders/minilm.py", "if spec is None or not spec.submodule_search_locations:", "if spec is None:"),
    Fault(
        "capabilities/warnings/blaming.py",
        'case.metadata.get("solved") is not False and not case.hidden',
        'case.metadata.get("solved") is not False and case.hidden',
    ),
    Fault(
        "engine/door.py",
        "if self.made is None and self._also is None and not may_hold_secret(text):",
        "if self.made is None and not may_hold_secret(text):",
    ),
    Fault("redaction/marking.py", "while len(self.held) > self._most or", "while len(self.held) >= self._most or"),
    Fault(
        "evaluation/search/stage.py",
        "if judging is None or not isinstance(judge, ByModel):",
        "if judging is not None or not isinstance(judge, ByModel):",
    ),
    Fault(
        "evaluation/environments/hospital/tools.py",
        'raise ValueError("the result is no real number, or it is too large")',
        "pass",
    ),
    Fault(
        "insight/measuring.py",
        "return one.recalls == 1 and one.k == 1 and one.whole and not one.forgot",
        "return one.recalls == 1 and one.k == 1 and one.whole",
    ),
    Fault("insight/report.py", 'else "harms" if points[2] < 0 else', 'else "harms" if points[1] < 0 else'),
    Fault("inspector/gate.py", 'raise Refusal(400, "This form cannot be read.") from None', "pass"),
    Fault(
        "inspector/pages_measured.py",
        "return [(float(ends[i]), float(means[i])) for i in chosen]",
        "return [(float(ends[i]), float(means[-i])) for i in chosen]",
    ),
    Fault(
        "langchain/messages.py",
        'elif steps and message.type in ("human", "tool", "function"):',
        'elif steps and message.type in ("human", "tool"):',
    ),
    Fault("langchain/run_tree.py", "return found is None or not found.root.over", "return found is None or found.root.over"),
    Fault("langchain/nodes.py", 'memory.data.note_failure("recall", error)', "pass"),
    Fault("lazy.py", 'if (error.name or "").split(".")[0] not in optional:', "if False:"),
    Fault(
        "capabilities/warnings/value.py",
        "if worth >= _BEYOND_DOUBT and tally.warned",
        "if worth >= _BEYOND_DOUBT or tally.warned",
    ),
    Fault(
        "learning/learner.py",
        "if snapshot is None or outcomes > WINDOW or forgotten:",
        "if snapshot is None or outcomes > WINDOW:",
    ),
    Fault(
        "ledger/archive.py",
        '    copy.execute("PRAGMA secure_delete = ON")\n    copy.execute("BEGIN")',
        '    copy.execute("BEGIN")',
    ),
    Fault("ledger/undoing.py", "if self._since is not None and free > 0:", "if self._since is not None:"),
    Fault("ledger/actions.py", "take_back(connection, namespace, replace(action, takes_back=now))", "pass"),
    Fault("llama_index/guarding.py", 'getattr(came, "is_error", False) is True', 'getattr(came, "is_error", False) is None'),
    Fault(
        "llama_index/instrumentation.py",
        'self._runs.leave(span_id, well=status == "ok")',
        "self._runs.leave(span_id, well=True)",
    ),
    Fault("looks/svg.py", "for one in (1, 2, 5) if", "for one in (1, 2) if"),
    Fault("mcp_server/guard.py", 'if b"\\\\ud" in body or b"\\\\uD" in body:', 'if b"\\\\ud" in body:'),
    Fault(
        "mcp_server/verbs.py",
        "for name, value in counted.items() if name not in _OF_THE_HOST}",
        "for name, value in counted.items()}",
    ),
    Fault("memory/data.py", 'raise TicketRefused("this code is not good for that, or was used before")', "pass"),
    Fault("memory/cases.py", "if len(pairs) > limit else None)", "if len(pairs) >= limit else None)"),
    Fault(
        "memory/stored_texts.py",
        "return {name: _clean(record, name, value, incoming) for name, value in record.items()}",
        "return dict(record)",
    ),
    Fault("redaction/values.py", "if bare and not value.quoted:", "if bare and value.quoted:"),
    Fault("redaction/finding.py", "done = end + len(_END) if closed < 0 else closed + len(_DASHES)", "done = end + len(_END)"),
    Fault("rewards/answers.py", 'return episode.status != "error" and', "return"),
    Fault("runs/ending.py", "future.add_done_callback(self._under_way.discard)", "pass"),
    Fault(
        "serving/crowd.py",
        "next((one for one in self._known if not one.busy), None)",
        "next((one for one in self._known if one.busy), None)",
    ),
    Fault("snapshots/format.py", "for text in (policy, encoder)) or known < 0:", "for text in (policy, encoder)):"),
    Fault(
        "stores/chroma_answers.py",
        "if not isinstance(model.id, UUID) or model.name != name:",
        "if not isinstance(model.id, UUID):",
    ),
    Fault("visible.py", "return text.isascii() and text.isprintable()", "return text.isascii()"),
)

# Where the tests of a room stand, if not in the folder of the same name.
_TESTS_OF = {
    "assembly": ("memory", "stores", "cli", "concurrency"),
    "domain": ("memory", "cycle", "langchain", "hostile"),
    "engine": ("memory", "redaction", "hostile"),
    "insight": ("memory", "cli"),
    "learning": ("memory", "concurrency"),
    "ledger": ("memory", "hostile"),
    "looks": ("memory", "evaluation"),
    "lazy.py": ("package",),
    "memory": ("memory", "hostile", "mcp_server"),
    "rewards": ("langchain", "package"),
    "runs": ("langchain", "llama_index"),
    "serving": ("inspector", "mcp_server"),
    "snapshots": ("memory", "hostile"),
    "visible.py": ("memory", "cli", "hostile"),
    "cycle": ("cycle", "memory"),
    "encoders": ("encoders", "memory"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Plant the faults, and print who finds them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--marks", required=True, help="the marker expression of the tests that are run")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of these faults only")
    parser.add_argument("--near", action="store_true", help="run the tests of the rooms only, not the whole suite")
    options = parser.parse_args(argv)
    numbers = range(len(FAULTS)) if options.only is None else options.only
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
        left = [number for number in tqdm(numbers, "faults", disable=None) if not _found(checkout, [number], options.marks)]
        if left and not options.near:
            _found(checkout, left, options.marks, everywhere=True)
    print(json.dumps({"marks": options.marks, "faults": len(numbers), "not found by the tests of their rooms": left}))
    return 0


def _found(checkout: Path, numbers: Iterable[int], marks: str, *, everywhere: bool = False) -> bool:
    faults = [FAULTS[number] for number in numbers]
    for fault in faults:
        fault.plant(checkout)
    try:
        wheres = [[]] if everywhere else [where for where in (_naming(checkout, faults[0]), _near(faults[0])) if where]
        by = next((by for where in wheres if (by := _fails(checkout, marks, where, first_only=not everywhere))), [])
    finally:
        for fault in faults:
            fault.unplant(checkout)
    print(json.dumps({"faults": list(numbers), "in": [fault.file for fault in faults], "by": by}), flush=True)
    return bool(by)


def _naming(checkout: Path, fault: Fault) -> list[str]:
    """Return the test files that import the module with the fault."""
    module = "cascade_memory." + fault.file.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    asks = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import [^\n]*\b{name}\b")
    found = [file for file in checkout.glob("tests/**/test_*.py") if asks.search(file.read_text(encoding="utf-8"))]
    return [str(file.relative_to(checkout)) for file in found]


def _near(fault: Fault) -> list[str]:
    room = fault.file.split("/")[0]
    return ["tests/test_contracts.py", "tests/architecture", *(f"tests/{name}" for name in _TESTS_OF.get(room, (room,)))]


def _fails(checkout: Path, marks: str, where: Sequence[str], *, first_only: bool) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--dist", "load", "-m", marks, *where]
    done = subprocess.run(
        [*command, *(["-x"] if first_only else [])],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)


if __name__ == "__main__":
    raise SystemExit(main())

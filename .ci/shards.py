"""Fails unless every test was run: ``python .ci/shards.py whole.txt run.jsonl...``, before which pytest has written them.

The first file is what ``pytest --collect-only -q`` prints, the others are written by ``pytest --speed``.
"""

import json
import sys
from pathlib import Path


def main(whole: str, *runs: str) -> int:
    wanted = {line for line in Path(whole).read_text(encoding="utf-8").splitlines() if "::" in line}
    ran = [{json.loads(line)["test"] for line in Path(run).read_text(encoding="utf-8").splitlines()} for run in runs]
    missing, unknown = wanted - set().union(*ran), set().union(*ran) - wanted
    for test in sorted(missing)[:20]:
        print(f"no run has {test}")
    for test in sorted(unknown)[:20]:
        print(f"the whole suite lacks {test}")
    print(f"{' + '.join(str(len(run)) for run in ran)} tests were run, of {len(wanted)}: {len(missing)} in no run")
    return 1 if missing or unknown or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

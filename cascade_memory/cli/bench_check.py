"""``cascade-memory bench check-model``: what a model and its server can do, before a benchmark asks them thousands of times."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from cascade_memory.cli.bench_own import chat_of, json_object
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.tables import print_table


def add(bench: Commands) -> None:
    """Add the command."""
    check = bench.command("check-model", run, "ask a model small questions, to see which tasks of a benchmark it can play")
    check.add_argument("--model", required=True, metavar="NAME", help="the model's name on its server")
    check.add_argument("--base-url", required=True, metavar="URL", help="address of an OpenAI-compatible server")
    check.add_argument("--sampling", type=json_object, default={}, metavar="JSON", help="settings, as in bench run")
    check.add_argument("--timeout", type=float, metavar="SECONDS", help="how long to wait for a reply (default: 120)")
    about = "tokens of the longest prompt that is tried (default: 8192)"
    check.add_argument("--longest", type=int, default=8_192, metavar="TOKENS", help=about)


def run(options: argparse.Namespace) -> int:
    """Ask the model, and print a table; return 1 if something fails."""
    from cascade_memory.evaluation.model.checking import check_model, summary

    shown = sys.stderr.isatty() and not options.json

    def tell(about: str) -> None:
        if shown:
            sys.stderr.write(f"\r\033[K{about} ...")
            sys.stderr.flush()

    chat = chat_of(options, options.sampling, retries=1)
    try:
        findings = list(check_model(chat, longest=options.longest, tell=tell))
    finally:
        chat.close()
        if shown:
            sys.stderr.write("\r\033[K")
    if options.json:
        print(json.dumps([asdict(one) for one in findings], ensure_ascii=False))
    else:
        rows = [(one.about, one.verdict, one.said) for one in findings]
        print_table(f"{options.model} at {options.base_url}", ("ability", "", "what was found"), rows)
        print(summary(findings))
    return 1 if any(one.verdict == "fails" for one in findings) else 0

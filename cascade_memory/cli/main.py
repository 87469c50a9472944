"""Parses commands and sets the exit code: 0 success, 1 something is wrong with the memory, 2 with the command."""

from __future__ import annotations

import argparse
import functools
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, get_args

from cascade_memory import __version__
from cascade_memory.cli import bench as bench_verbs
from cascade_memory.cli import (
    bench_check,
    bench_outcomes,
    bench_own,
    bench_report,
    bench_setup,
    browsing,
    commands,
    databases,
    deciding,
    forgetting,
    inspecting,
    planning,
    serving,
    sources,
    standing,
    warnings,
)
from cascade_memory.cli.arguments import Parser, positive, refusal, share
from cascade_memory.cli.opening import EMBEDDER, EMBEDDERS, NAMESPACE, URL, add_namespace, add_place
from cascade_memory.domain.episode import SOURCES, Status
from cascade_memory.domain.trust import CHANNELS
from cascade_memory.errors import (
    CascadeError,
    ContentChanged,
    EpisodeClosed,
    InvalidInput,
    UndoRefused,
    UnknownCase,
    UnknownEpisode,
    UnknownWarning,
)
from cascade_memory.evaluation.bench.methods import TUNABLE
from cascade_memory.evaluation.bench.plan import FILE, SHUFFLED, SUITES

_DATA = "the folder with the streams (default: CASCADE_DATA; without it, what comes with the package)"
_ACTOR = "who does it, for the audit log (default: the login name)"


def parser() -> argparse.ArgumentParser:
    """Build the parser for all commands."""
    root = Parser(prog="cascade-memory", description="A case memory that learns from outcomes.")
    root.add_argument("--version", action="version", version=f"cascade-memory {__version__}")
    verbs = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = _command(verbs, "demo", commands.demo, "play a synthetic stream with no memory, with similarity and with CASCADE")
    demo.add_argument("--tasks", type=int, default=400, help="length of the stream (default 400)")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--plot", default="cascade-demo.png", metavar="FILE", help="the file for the picture")

    stats = _on_folder(verbs, "stats", commands.stats, "count cases, episodes and rewards")
    about = f"only this namespace (default: the environment variable {NAMESPACE}, else all)"
    stats.add_argument("--namespace", default=os.environ.get(NAMESPACE) or None, help=about)
    _browsing(verbs)

    report = _on_folder(verbs, "report", commands.report, "show how much the memory helps: lift, calibration, coverage, shadow")
    add_namespace(report)
    report.add_argument("--everywhere", action="store_true", help="all namespaces together")
    planning.add_options(_command(verbs, "plan", planning.plan, "say how many tasks it takes to tell whether a memory helps"))
    _doctor(verbs)
    _on_folder(verbs, "rebuild", commands.rebuild, "build the Chroma folder again from the ledger")

    reindex = _on_folder(verbs, "reindex", commands.reindex, "embed all cases again with another embedder")
    reindex.add_argument("--embedder", required=True, metavar="NAME", help=f"minilm, chroma, hashing, or {bench_setup.A_MODEL}")

    backup = _on_folder(verbs, "backup", commands.backup, "copy the memory into a new folder; it may be in use meanwhile")
    backup.add_argument("target", help="the new folder")

    restore = _command(verbs, "restore", commands.restore, "restore a backup; nothing is removed before the backup is checked")
    restore.add_argument("backup", help="the folder that backup made")
    restore.add_argument("path", help="the folder of the memory; it must not be open anywhere")
    restore.add_argument("--replace", action="store_true", help="replace an existing memory")

    export = _on_folder(verbs, "export", commands.export, "write everything as JSON lines")
    export.add_argument("file", help="target file, or - for standard output")
    export.add_argument("--force", action="store_true", help="replace an existing file")

    import_ = _on_folder(verbs, "import", commands.import_, "read what export wrote; the folder may be new")
    import_.add_argument("file", help="source file, or - for standard input")
    import_.add_argument("--actor", metavar="NAME", help=_ACTOR)

    _deciding(verbs)
    _waiting(verbs)
    _databases(verbs)
    _serve(verbs)
    _inspect(verbs)
    _bench(verbs)

    _forget(verbs)
    return root


def _waiting(verbs: _Verbs) -> None:
    pending = _on_folder(verbs, "pending", commands.pending, "list what agents reported about themselves; confirm or reject it")
    add_namespace(pending)
    pending.add_argument(
        "--confirm", action="append", default=[], metavar="EPISODE@FINGERPRINT", help="the report is true: learn from it"
    )
    pending.add_argument("--actor", metavar="NAME", help=_ACTOR)
    pending.add_argument(
        "--reject", action="append", default=[], metavar="EPISODE", help="the report is false: the task was not solved"
    )
    expired = _on_folder(verbs, "expired", commands.expired, "list cases that were not verified for too long; bring them back")
    add_namespace(expired)
    expired.add_argument("--evicted", action="store_true", help="list those that had to make room instead")
    expired.add_argument("--bring-back", nargs="*", metavar="ID", help="bring these cases back, or all that expired")
    expired.add_argument("--actor", metavar="NAME", help=_ACTOR)


def _doctor(verbs: _Verbs) -> None:
    doctor = _on_folder(verbs, "doctor", commands.doctor, "check that ledger, index and Chroma agree; exit 1 if not")
    doctor.add_argument("--fix", action="store_true", help="repair what can be repaired without losing data")
    doctor.add_argument("--secrets", action="store_true", help="look for secrets in all that is stored instead; exit 1 if any")


def _deciding(verbs: _Verbs) -> None:
    correct = _on_folder(verbs, "correct", deciding.correct, "store the right solution of an episode or of a case", "id")
    correct.add_argument("--solution", required=True, metavar="TEXT", help="the right solution")
    correct.add_argument("--note", metavar="TEXT", help="why, for the audit log")
    confirm = _on_folder(verbs, "confirm", deciding.confirm, "say that the answer of an episode is right", "episode")
    reject = _on_folder(verbs, "reject", deciding.reject, "say that the answer of an episode is wrong", "episode")
    about = {
        "pin": "keep a case: it is never evicted and never expires",
        "unpin": "let a pinned case be evicted and expire",
        "hide": "never show a case; it is kept",
        "unhide": "show a hidden case again",
    }
    flags = [_on_folder(verbs, name, deciding.flag, about[name], "case") for name in about]
    undo = _on_folder(verbs, "undo", deciding.undo, "take an action back that audit lists", "entry")
    for command in (correct, confirm, reject, *flags, undo):
        add_namespace(command)
        command.add_argument("--actor", metavar="NAME", help=_ACTOR)
    about = {
        "quarantine": "show no case of an actor any more, and unlearn what it reported",
        "release": "show the cases of an actor again, whatever its record says",
    }
    for name in about:
        command = _on_folder(verbs, name, standing.decide, about[name])
        add_namespace(command)
        standing.add_options(command)
    add_namespace(_on_folder(verbs, "standings", standing.standings, "list what is known of actors, the worst first"))
    _warnings(verbs)
    audit = _on_folder(verbs, "audit", deciding.audit, "list what people did, newest first, and what can be undone")
    add_namespace(audit)
    _add_length(audit)


def _warnings(verbs: _Verbs) -> None:
    listed = _on_folder(
        verbs, "warnings", warnings.list_, "list the steps at which runs failed, and what came of warning of them"
    )
    add_namespace(listed)
    warnings.add_list_options(listed)
    for name, about in warnings.DECISIONS.items():
        command = _on_folder(verbs, name, warnings.decide, about)
        add_namespace(command)
        warnings.add_options(command, name)


def _add_length(command: argparse.ArgumentParser) -> None:
    command.add_argument("--limit", type=positive, default=20, metavar="N", help="how many (default 20)")
    command.add_argument("--all", action="store_true", help="all of them")
    command.add_argument("--oldest-first", action="store_true")


def _forget(verbs: _Verbs) -> None:
    about = "delete cases, an episode, what a source wrote, or a whole namespace"
    forget = _on_folder(verbs, "forget", forgetting.forget, about)
    add_namespace(forget)
    forgetting.add_options(forget)


def _browsing(verbs: _Verbs) -> None:
    cases = _on_folder(verbs, "list", browsing.list_, "list cases, newest first")
    cases.add_argument("--where", metavar="JSON", help='a metadata filter, such as {"user": "u1"}')
    show = _on_folder(verbs, "show", browsing.show, "show one case whole")
    show.add_argument("case", metavar="CASE", help="its id, as list prints it")
    add_namespace(show)
    episodes = _on_folder(verbs, "episodes", browsing.episodes, "list episodes, newest first")
    episodes.add_argument("--status", choices=get_args(Status), help="only those with this status; settled: with a reward")
    episodes.add_argument("--source", choices=SOURCES, help="only those that were rewarded by this source")
    for command in (cases, episodes):
        add_namespace(command)
        _add_length(command)
        sources.add_filters(command, of_cases=command is cases)
    add_namespace(_on_folder(verbs, "sources", sources.sources, "list who wrote how many cases, and how these did"))
    diff = _on_folder(verbs, "diff", sources.diff, "list the cases that came and went since a moment, with who made them")
    add_namespace(diff)
    diff.add_argument("--since", required=True, metavar="WHEN", help="a date, such as 2026-11-24, or how long ago, such as 7d")
    diff.add_argument("--actor", metavar="NAME", help='only cases that this actor made first; "" for nobody named')
    diff.add_argument("--channel", choices=CHANNELS, help="only cases that came through this door")
    _on_folder(verbs, "namespaces", browsing.namespaces, "list namespaces, and how many cases each holds")


def _databases(verbs: _Verbs) -> None:
    about = "copy a memory from a folder into a PostgreSQL database, or back; the source stays as it is"
    move = _command(verbs, "move", databases.move, about)
    move.add_argument("source", help="the folder or the URL (postgresql://...) of the memory; it must not be open anywhere")
    move.add_argument("target", help="the URL of a database or the folder that is to hold it, and holds no memory yet")
    move.add_argument("--while-open", action="store_true", help="move a database even though others have it open")
    migrate = _command(verbs, "migrate", databases.migrate, "bring the schema of a PostgreSQL database up to date")
    about = f"the URL of the database (default: the environment variable {URL})"
    migrate.add_argument("url", nargs="?", default=os.environ.get(URL), help=about)
    about = "change nothing, and print the statements for a role that may run them; without a URL, those for an empty database"
    migrate.add_argument("--print-sql", action="store_true", help=about)


def _serve(verbs: _Verbs) -> None:
    about = "offer the memory to tool-calling agents over MCP, until stopped"
    serve = verbs.add_parser("serve", help=about, description=f"{about[0].upper()}{about[1:]}.")
    serve.set_defaults(run=serving.serve)
    add_place(serve, option=True)
    serve.add_argument("--transport", choices=["stdio", "http"], default="stdio")
    add_namespace(serve)
    about = f"for a new memory: {', '.join(EMBEDDERS)} (default: the environment variable {EMBEDDER}, else auto)"
    serve.add_argument("--embedder", metavar="NAME", help=about)
    levels = ("debug", "info", "warning", "error")
    about = "what to log on standard error; info: a line for each recall and reward (default warning)"
    serve.add_argument("--log-level", choices=levels, default="warning", help=about)
    serve.add_argument("--k", type=int, default=3, help="the largest number of cases that a recall shows (default 3)")
    serve.add_argument("--read-only", action="store_true", help="cases can be looked up, but nothing can be written")
    serve.add_argument(
        "--trust-agent-rewards", action="store_true", help="learn at once from what agents report about themselves"
    )
    about = "give each recall a signed ticket, and take no report without it"
    serve.add_argument("--tickets", action="store_true", help=about)
    about = "the name that is recorded for a client whose token has no name (default: none)"
    serve.add_argument("--actor", metavar="NAME", help=about)
    http = serve.add_argument_group("with --transport http")
    http.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; any that other machines can reach needs a token"
    )
    http.add_argument("--port", type=int, default=8765)
    http.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with a line for each client, its name and its bearer token, or with one token alone (default: the "
        "environment variable CASCADE_MEMORY_TOKEN)",
    )
    http.add_argument(
        "--rate", type=int, default=600, metavar="N", help="requests per minute and client; 0: no limit (default 600)"
    )


def _inspect(verbs: _Verbs) -> None:
    about = "show the memory in the browser: what it holds, why it decided as it did; with --edit, to correct it"
    inspect = verbs.add_parser("inspect", help=about, description=f"{about[0].upper()}{about[1:]}.")
    inspect.set_defaults(run=inspecting.inspect)
    add_place(inspect)
    add_namespace(inspect)
    inspecting.add_options(inspect)


def _bench(verbs: _Verbs) -> None:
    about = "measure on streams of tasks whether a memory helps, and which kind helps most"
    bench = verbs.add_parser("bench", help=about, description=f"{about[0].upper()}{about[1:]}.")
    inner = bench.add_subparsers(dest="bench", required=True, metavar="VERB")
    for asking in (bench_check, bench_outcomes):
        asking.add_options(functools.partial(_command, inner))
    data = _command(inner, "data", bench_verbs.data, "list which data of the tasks is present, and where to get it")
    data.add_argument("task", nargs="?", help="one task only")
    convert = _command(inner, "convert", bench_verbs.convert, "make the file of a task from the files that its makers publish")
    convert.add_argument("task", help="a task for which bench data names a converter")
    convert.add_argument("source", type=Path, help="the folder with the published files")
    convert.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of data (for CASCADE_DATA)")
    convert.add_argument("--rows", type=positive, metavar="N", help="how many to draw (default: as many as the paper plays)")
    games = _command(inner, "games", bench_verbs.games, "generate the missing household games for ALFWorld's engine")
    games.add_argument("--count", type=int, default=264, help="how many games the folder shall hold (default 264)")
    games.add_argument("--seed", type=int, default=777, help="the same seed gives the same games")
    games.add_argument("--out", type=Path, required=True, metavar="DIR", help="their folder; for bench run: ROWS.work/games")
    run = _command(inner, "run", bench_verbs.run, "play streams with every method; it continues where it was stopped")
    about = "quick takes minutes, the others hours"
    run.add_argument("--suite", choices=[*SUITES, "attacks", "warnings"], default="quick", help=about)
    run.add_argument("--tasks", nargs="+", metavar="TASK", help="only these tasks of the suite")
    run.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods, of any suite")
    _add_extent(run)
    hard = run.add_argument_group("under harder conditions (if you give several values, each is played)")
    about = "how rewards arrive: clean, late=100 (tasks), missing=0.5, flipped=0.2 (shares); these numbers are the defaults"
    hard.add_argument("--rewards", nargs="+", metavar="HOW", help=about)
    about = "wrong cases in the memory: clean (none), start=0.05, along=0.05 (shares of the tasks; start=500: 500 cases)"
    hard.add_argument("--wrong-cases", nargs="+", metavar="HOW", help=about)
    about = "the share of the SIMULATED solver's successes that a wrong case spoils (default 0.5)"
    hard.add_argument("--misled", nargs="+", type=share, metavar="P", help=about)
    about = 'of --suite warnings: when agents do what they were warned of: never (default), or as a "last resort"'
    run.add_argument("--heeds", nargs="+", default=["never"], metavar="HOW", help=about)
    run.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="number of parallel processes")
    run.add_argument("--out", type=Path, default=Path("results/bench.jsonl"), help="the file for the rows")
    bench_setup.add_options(run)
    bench_own.add_options(run)
    replay = _on_folder(
        inner, "replay", bench_verbs.replay, "estimate the mean reward of another policy from the log of a memory"
    )
    replay.add_argument("--policy", required=True, metavar="NAME", help="a ranker such as similarity or zero-shot, or shadow")
    add_namespace(replay)
    run.add_argument("--report", type=Path, metavar="DIR", help="the folder for the report (default: beside the rows)")
    report = _command(
        inner, "report", bench_report.report, "make a page from the rows that shows where memory helps, and where not"
    )
    report.add_argument("rows", type=Path, help="the file that bench run wrote")
    report.add_argument("--out", type=Path, metavar="DIR", help="the folder for the page (default: beside the rows)")
    about = "compare also with these methods, besides zero-shot, similarity, NP-CBR and random"
    report.add_argument("--against", nargs="+", default=(), metavar="METHOD", help=about)
    report.add_argument("--tuning", type=Path, metavar="FILE", help="rows of bench tune to show as well")
    for verb in (data, run, _tune(inner)):
        verb.add_argument("--data", type=Path, metavar="DIR", help=_DATA)


def _tune(verbs: _Verbs) -> argparse.ArgumentParser:
    tune = _command(verbs, "tune", bench_verbs.tune, "choose a method's parameters on the first tasks of a stream")
    tune.add_argument("--task", required=True)
    tune.add_argument("--method", choices=list(TUNABLE), default="Neural-LinLogUCB")
    bench_setup.add_options(tune, tuned=True)
    tune.add_argument("--limit", type=positive, default=300, help="only the first tasks of the stream (default 300)")
    tune.add_argument("--seeds", type=positive, default=1, help="how many orders of them (default 1)")
    tune.add_argument("--learning-rates", type=float, nargs="+", metavar="X", help="values to try (default: the paper's)")
    tune.add_argument("--alphas", type=float, nargs="+", metavar="X", help="values to try (default: the paper's, 0.1 to 1)")
    tune.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="number of parallel processes")
    tune.add_argument("--out", type=Path, default=Path("results/tuning.jsonl"), help="the file for the rows")
    return tune


def _add_extent(run: argparse.ArgumentParser) -> None:
    """Add the options that say how much of each stream is played, and in which order."""
    run.add_argument("--seeds", type=positive, help="how many times each stream is played")
    run.add_argument("--limit", type=positive, help="only the first tasks of each stream")
    about = "shuffled: another order for each seed (default); file: the stream's own for every seed (default of --suite paper)"
    run.add_argument("--order", choices=[SHUFFLED, FILE], help=about)
    run.add_argument("--dry-run", action="store_true", help="with --suite paper: say what it would take, and play nothing")


_WHAT = {
    "id": ("ID", "of the episode or the case"),
    "case": ("ID", "of the case, as list prints it"),
    "episode": ("EPISODE@FINGERPRINT", "as pending prints it: exactly what you have seen is judged"),
    "entry": ("ID", "of the entry, as audit prints it"),
}


class _Verbs(Protocol):
    """The type that ``add_subparsers`` of argparse returns, whose own name is private."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser: ...


def _command(verbs: _Verbs, name: str, run: commands.Command, about: str) -> argparse.ArgumentParser:
    command = verbs.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")
    command.set_defaults(run=run)
    return command


def _on_folder(verbs: _Verbs, name: str, run: commands.Command, about: str, *what: str) -> argparse.ArgumentParser:
    command = _command(verbs, name, run, about)
    add_place(command)
    for one in what:
        command.add_argument(f"--{one}", required=True, metavar=_WHAT[one][0], help=_WHAT[one][1])
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    _print_any_text()
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (InvalidInput, UnknownCase, UnknownEpisode, UnknownWarning, EpisodeClosed, ContentChanged, UndoRefused) as error:
        code, message = 2, str(error)
    except CascadeError as error:
        code, message = 1, str(error)
    except BrokenPipeError:  # the reader of our output, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a full disk or an unreadable folder, for example: a traceback would not help
        code, message = 1, str(error)
    except KeyboardInterrupt:
        code, message = (0, "stopped") if options.command in ("serve", "inspect") else (130, "interrupted")
    sys.stderr.write(f"cascade-memory {options.command}: {refusal(message)}\n")
    return code


def _print_any_text() -> None:
    """Escape what a terminal or a pipe cannot show, instead of failing: the encoding of Windows knows only few letters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")

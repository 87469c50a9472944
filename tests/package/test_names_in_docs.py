"""Every name of ours that a page writes in backticks exists."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import keyword
import re
from collections.abc import Set
from pathlib import Path

import pytest
from command_line import arguments_by_command
from definitions import Definitions, last_name
from pages import FENCE, PAGES, PROJECT, blocks

from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import METHODS

# Code blocks are run; what stands in backticks between them is looked up. A name of ours must be defined in the package (or in
# an example), an attribute must belong to the class of the object before the dot, a keyword to the function that is called, an
# option to the command, and a path must be there. Names of others are listed here, with whose they are.

ELSEWHERE = {
    "Python's library": "asyncio.to_thread threading.Thread",
    "JSON": "null false",
    "LangChain: a class, a function, and what agents and our retriever inherit": (
        "RunnableSequence create_retriever_tool ainvoke invoke with_config callbacks document"
    ),
    "LangChain: a scripted model, and its replies": "GenericFakeChatModel AIMessage",
    "LangChain: what other retrievers have that becomes ours": "vectorstore as_retriever search_kwargs",
    "LangChain: how a chain falls back on another one; LangGraph: what asks a person": "with_fallbacks __interrupt__",
    "LangChain's human in the loop": "HumanInTheLoopMiddleware interrupt_mode per_call",
    "deepagents: its tools": "ls read_file write_file edit_file grep write_todos",
    "deepagents, LangGraph": "general-purpose TodoListMiddleware checkpointer interrupt_on",
    "LangGraph and LangMem": "interrupt_before interrupt_after user_id create_search_memory_tool memories",
    "langchain-experimental's PickBest": (
        "PickBest update_with_delayed_score ToSelectFrom SelectionScorer AutoSelectionScorer"
    ),
    "mem0's memory, as its documentation calls it": "m",
    "LlamaIndex: classes, their arguments, and what our retriever inherits": (
        "ReActAgent AgentWorkflow RetrieverQueryEngine ContextChatEngine RetrieverTool from_args from_defaults ctx "
        "max_iterations wait_for_event aretrieve CodeActAgent handler.cancel_run"
    ),
    "MCP's clients": "get_tools langchain-mcp-adapters claude_desktop_config.json .cursor/mcp.json .vscode/mcp.json",
    "MCP: requests, headers, a package": "initialize ping MCP-Protocol-Version Mcp-Method Mcp-Name llama-index-tools-mcp",
    "MCP's SDK, version 2: what a client knows of the server": "server_info",
    "Hugging Face: the form of a name, and a model": "owner/name Alibaba-NLP/gte-reranker-modernbert-base",
    "vLLM: what a request may ask of it": "chat_template_kwargs enable_thinking",
    "another program": "cp alfworld-download",
    "mkdocs: its settings, and the extra that installs it": "mkdocs.yml docs",
    "extras": "cross-encoder text-model",
    "the published files of the paper's benchmark; their names are put together": (
        "alfworld/alfworld.jsonl scienceworld/scienceworld.jsonl"
    ),
    "files that a benchmark or a trained encoder writes; their names are put together there": (
        "bench.jsonl bench.work/ bench.work/requests results/bench-report/index.html snapshots/encoder-*.safetensors"
    ),
    "rows of a benchmark, whose names are put together: what a judge's requests cost": "judge_requests judge_tokens judge_cost",
    "what the reader fills in": "ann Other module:function",
}
VERBATIM = {
    "LangChain's and msgpack's messages": (
        "AssertionError: Please remove duplicate middleware instances",
        "Type is not msgpack serializable",
    ),
    "messages of ours, shortened or filled in": ("TypeError: CascadeMemory takes no option ...", "declare `cascade: dict`"),
    "a header of HTTP": ("Host: 127.0.0.1:8765",),
    "how deepagents and LangChain are called": (
        'mode="fork"',
        'skip=lambda text: text.startswith("[The messages above")',
    ),
    "how the MCP SDK's client is called": ('Client("http://127.0.0.1:8765/mcp")', 'mode="2026-07-28"'),
    "a message of the MCP SDK's clients": ("Connection closed",),
    "LaTeX": (r"\boxed{}",),
    "where other programs write a password": (
        *('setPassword("...")|.htpasswd|.pgpass|htpasswd -b file ann ...|net use|-password ...'.split("|")),  # noqa: SIM905
        *('getenv("DB_PASSWORD", "...")|PASSWORD \'...\'|IDENTIFIED BY \'...\'|auth=("ann", "...")'.split("|")),  # noqa: SIM905
    ),
    "words of chat templates": ("<|im_end|>", r"<\|im_end\|>"),
    "for mkdocs": ("mkdocs build --strict",),
    "for pip": ('-c constraints.txt -e ".[langchain,local]"',),
}
OBJECTS = {  # what the pages call an instance of which classes
    "memory": ("CascadeMemory",),
    "memory.engine": ("CascadeMemory",),
    "recall": ("Recall",),
    "look": ("Recall",),
    "episode": ("Episode", "Session"),
    "seen": ("Episode",),
}
TEACHING = [page for page in PAGES if page.parent.name != "decisions"]
ALLOWED = {word for words in ELSEWHERE.values() for word in words.split()}
LITERALLY = {text for texts in VERBATIM.values() for text in texts}
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PATH = re.compile(r"[\w.*/-]+(::\w+)?")


@functools.cache
def defined() -> Definitions:
    """Return what the package and the examples define."""
    found = Definitions()
    for folder in ("cascade_memory", "examples"):
        for file in (PROJECT / folder).rglob("*.py"):
            found.visit(ast.parse(file.read_text()))
            found.names |= {file.stem, file.parent.name}
    return found


@functools.cache
def every(what: str) -> frozenset[str]:
    """Return what may stand where a name, a value, an attribute or an argument is expected."""
    if what in ("name", "value"):
        return frozenset({*defined().names, *defined().strings, *(OBJECTS if what == "name" else ())})
    known = defined().arguments if what == "argument" else {**defined().members, "": defined().names}
    return frozenset().union(*known.values())


@functools.cache
def commands() -> dict[tuple[str, ...], set[str]]:
    """Return the options of every command: ``("bench", "run")`` and the like."""
    return {
        words: {option for argument in arguments for option in argument.option_strings}
        for words, arguments in arguments_by_command().items()
    }


@functools.cache
def run_on(page: Path) -> frozenset[str]:
    """Return all words of the blocks of a page: they were run."""
    return frozenset(word for block in blocks(page) for word in re.findall(r"[\w.-]+|\w+", block.code))


def in_backticks(page: Path) -> list[str]:
    """Return what stands in backticks outside of blocks."""
    return [" ".join(found[2].split()) for found in _INLINE.finditer(FENCE.sub("", page.read_text()))]


SETTINGS = (PROJECT / "pyproject.toml").read_text()
MARKERS = {
    line.split(":")[0]
    for line in re.findall(r'"([^"]+)"', re.search(r"^markers = \[(.*)\]$", SETTINGS, re.MULTILINE)[1])  # type: ignore[index]
}
SCRIPTS = (".ci/run", ".ci/matrix")


class Unknown(Exception):
    """What stands in backticks, and is nowhere."""


def check_token(token: str, page: Path) -> None:
    """Raise ``Unknown`` if what stands in backticks names something that does not exist."""
    words = token.split()
    if token in LITERALLY or token in ALLOWED or token in {*METHODS, *HUMAN, *MARKERS} or token in defined().strings:
        return
    if words[0] == "cascade-memory" or ((words[0],) in commands() and len(words) > 1 and words[1].isidentifier()):
        check_command(words[words[0] == "cascade-memory" :])
    elif words[0].startswith("--"):
        options = {option for known in commands().values() for option in known}
        check_options(words, options | defined().strings)
    elif words[0] in SCRIPTS and set(words[1:]) <= set(re.findall(r"\w+", (PROJECT / words[0]).read_text())):
        return
    elif words[0] in ("python", "pytest") and len(words) > 1:
        check_script(words[1:])
    elif words[0] == "pip":
        return  # its extras are checked where blocks are
    elif _PATH.fullmatch(token) and ("/" in token or token.endswith((".py", ".txt", ".md", ".toml"))):
        check_path(token)
    elif words[0] not in ("kill", "chroma"):
        check_code(token, page)


def check_command(words: list[str]) -> None:
    verbs: tuple[str, ...] = ()
    while words and (*verbs, words[0]) in commands():
        verbs, words = (*verbs, words[0]), words[1:]
    is_verb_missing = any(known[: len(verbs)] == verbs and len(known) > len(verbs) for known in commands())
    if words and is_verb_missing and not words[0].startswith("-"):
        raise Unknown(f"there is no command {' '.join((*verbs, words[0]))!r}")
    check_options(words, commands()[verbs])


def check_options(words: list[str], options: set[str]) -> None:
    for word in words:
        if word.startswith("--") and word not in options:
            raise Unknown(f"there is no option {word}")


def check_script(words: list[str]) -> None:
    if words[0] == "-m" and words[1].startswith("cascade_memory."):
        check_script([f"{words[1].replace('.', '/')}.py", *words[2:]])
        return
    if words[0] in ("-n", "-m"):
        if words[0] == "-m" and words[1] not in MARKERS:
            raise Unknown(f"there is no marker {words[1]}")
        return
    check_path(words[0])
    place = PROJECT / words[0]
    text = "".join(file.read_text() for file in ([place] if place.is_file() else place.glob("*.py")))
    check_options(words[1:], set(re.findall(r'"(--[\w-]+)"', text)))


def check_path(token: str) -> None:
    file, _, test = token.partition("::")
    is_there = (PROJECT / file).exists() or (PROJECT / "cascade_memory" / file).exists()
    if not is_there and file.rstrip("/") not in defined().strings:
        raise Unknown(f"there is no file {file}")
    if test and f"def {test}(" not in (PROJECT / file).read_text():
        raise Unknown(f"there is no {test} in {file}")


def check_code(token: str, page: Path) -> None:
    expression = f"{token}None" if token.endswith("=") else token
    for text in (expression, f"{token} pass", f"{token}: pass", f"CascadeMemory({token})"):
        with contextlib.suppress(SyntaxError):
            Checked(page).visit(ast.parse(text))
            return
    if not set(token.split()) <= set(keyword.kwlist) and not any(token in text for text in defined().strings):
        raise Unknown("is no Python, no command, no file, and no text of ours")


class Checked(ast.NodeVisitor):
    """Looks up the names of a piece of code."""

    def __init__(self, page: Path) -> None:
        self._run = run_on(page) | ALLOWED | set(dir(builtins))

    def _check(self, word: str, known: Set[str], what: str) -> None:
        if word not in known and word not in self._run:
            raise Unknown(f"{what} {word!r} does not exist")

    def visit_Name(self, node: ast.Name) -> None:
        is_argument = isinstance(node.ctx, ast.Store) and node.id not in OBJECTS
        self._check(node.id, every("argument" if is_argument else "name"), "the argument" if is_argument else "the name")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = ast.unparse(node)
        if dotted in ALLOWED:
            return
        self.visit(node.value)
        if dotted.startswith("cascade_memory."):
            self._check_dotted(dotted)
            return
        classes = self._type(node.value)
        known = defined().members_of(classes) if classes else every("attribute")
        self._check(node.attr, known, "the attribute")

    def _check_dotted(self, dotted: str) -> None:
        *modules, name = dotted.split(".")
        place = PROJECT.joinpath(*modules)
        text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
        if not (place / name).is_dir() and not (place / f"{name}.py").is_file() and f'"{name}"' not in text:
            raise Unknown(f"there is no {dotted}")

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = last_name(node.func)
        root = re.findall(r"\w+", ast.unparse(node.func))[0]
        if root in ALLOWED or name not in defined().arguments:
            return
        for given in node.keywords:
            self._check(str(given.arg), defined().arguments[name], f"the argument of {name}")

    def visit_keyword(self, node: ast.keyword) -> None:
        self.visit(node.value)  # the argument itself is checked with its function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._run |= {one.arg for one in node.args.args}
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value.split()) == 1:
            self._check(node.value, every("value"), "the value")

    def _type(self, node: ast.expr) -> set[str]:
        if ast.unparse(node) in OBJECTS:
            return set(OBJECTS[ast.unparse(node)])
        if isinstance(node, ast.Await):
            return self._type(node.value)
        if isinstance(node, ast.Attribute):
            return defined().type_of(self._type(node.value), node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):  # stats().open: what memory.stats() returns
            return defined().type_of({"CascadeMemory"}, node.func.id)
        return self._type(node.func) if isinstance(node, ast.Call) else set()


@pytest.mark.parametrize("page", TEACHING, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_name_in_backticks_exists(page: Path):
    found = []
    for token in in_backticks(page):
        try:
            check_token(token, page)
        except Unknown as error:
            found.append(f"`{token}`: {error}")
    assert not found, f"{page.name}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "token",
    [
        "memory.rewards_of()",
        "memory.reward(episode_id, 1.0, sorce='human')",
        "memory.health().chromalag",
        "memory.engine.forgetting(...)",
        "recall.abstains",
        "retain_from_at=",
        "CascadeMemry",
        'CascadeMemory(ranker="lite")',
        "cascade_memory.testing.check_embeder",
        "cascade-memory doctr",
        "cascade-memory data doctor --fixx",
        "bench reply memory",
        "--found-bye nothing",
        "python examples/benchmarks/measuring.py --episode 150",
        "tests/package/test_docs.py::test_nothing",
        "cascade_memory/cycles/",
        "what? ever",
    ],
)
def test_a_name_that_does_not_exist_is_found(token: str):
    with pytest.raises(Unknown):
        check_token(token, PROJECT / "README.md")

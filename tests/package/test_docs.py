"""Every code block of README and docs is run and its output compared; every link leads somewhere; every name exists."""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import functools
import importlib
import importlib.util
import io
import itertools
import json
import keyword
import re
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path

import pytest

from cascade_memory.cli import main
from cascade_memory.cli.main import parser
from cascade_memory.errors import MissingExtra
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import METHODS

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
OPTIONAL = ("langchain", "langchain_core", "langgraph", "llama_index", "langchain_mcp_adapters", "mcp")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    output: str | None  # of the ```text block that stands right behind


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(_FENCE.finditer(text))
    result = []
    for one, following in itertools.zip_longest(found, found[1:]):
        behind = following is not None and following[1] == "text" and not text[one.end() : following.start()].strip()
        output = following[2] if behind and following is not None else None
        result.append(Block(one[1], one[2], text[: one.start()].count("\n") + 1, output))
    return [block for block in result if block.language != "text"]


def same(printed: str, claimed: str) -> bool:
    """Equal but for the last digit of a number, where other processors may round differently."""
    words, others = printed.split(), claimed.split()
    return len(words) == len(others) and all(
        word == other or _close(word, other) for word, other in zip(words, others, strict=True)
    )


def _close(word: str, other: str) -> bool:
    try:
        return "." in word and abs(float(word) - float(other)) <= 0.0021
    except ValueError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_block_does_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    put_stand_ins(page, tmp_path, monkeypatch)
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        printed = io.StringIO()
        place = f"{page.name}:{block.line}"
        with contextlib.redirect_stdout(printed):
            run_block(block, place, names)
        if block.output is not None:
            assert same(printed.getvalue(), block.output), f"{place} prints\n{printed.getvalue()}"


def put_stand_ins(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("langchain") is not None:
        from docs_model import multiplier  # no real model can be asked here: a scripted one answers

        monkeypatch.setattr("langchain.chat_models.init_chat_model", multiplier)
    if importlib.util.find_spec("llama_index") is not None:
        import docs_llm

        monkeypatch.setitem(sys.modules, "llama_index.llms.openai", docs_llm)
    if "./my-reranker" in page.read_text() and importlib.util.find_spec("transformers") is not None:
        from tiny_models import make_reranker  # nor can one be downloaded

        make_reranker(tmp_path / "my-reranker")


def run_block(block: Block, place: str, names: dict[str, object]) -> None:
    if block.language == "python":
        try:
            exec(compile(block.code, place, "exec"), names)
        except MissingExtra as error:
            pytest.skip(str(error))
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] not in OPTIONAL:
                raise
            pytest.skip(str(error))
    elif block.language == "bash":
        run_commands(block.code, place)
    elif block.language == "json":
        json.loads(block.code)
    else:
        pytest.fail(f"{place}: a block of language {block.language!r} is run by nothing")


def run_commands(code: str, place: str) -> None:
    """Call our own commands; of others, check what can be checked without installing or measuring for hours."""
    extras = metadata("cascade-memory").get_all("Provides-Extra") or []
    for line in code.splitlines():
        for command in line.split("&&"):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            if words[0] == "cascade-memory":
                assert main(words[1:]) == 0, f"{place}: {command}"
            elif words[:2] == ["pip", "install"]:
                for asked in re.findall(r"\[([\w,-]+)\]", command):
                    assert set(asked.split(",")) <= set(extras), f"{place}: {command}"
            elif words[0] == "python":
                script = PROJECT / words[1]
                assert script.is_file() or (script / "__main__.py").is_file(), f"{place}: {command}"
            else:
                assert words == ["pytest"] or words[0] in ("export", "mv", "rm"), f"{place}: who runs {command!r}?"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page: Path):
    for target, heading in _LINK.findall(page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not heading or heading in headings(there), f"{page.name} links to {target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the headings of a page as links name them."""
    found = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_the_first_screen_of_readme_has_it_all():
    first = (PROJECT / "README.md").read_text().splitlines()[:40]
    assert any("pip install" in line for line in first)
    assert "```python" in first
    assert "```text" in first


def test_the_first_screen_of_the_measurements_says_what_its_tables_say():
    _, first, rest = (PROJECT / "docs" / "benchmarks.md").read_text().split("\n## ", 2)
    figures = re.findall(r"\d[\d.]* ± \d[\d.]*|\d+\.\d+", first)
    assert len(figures) > 30
    assert [figure for figure in figures if figure not in rest] == []


def test_the_map_of_the_package_is_complete():
    page = (PROJECT / "docs" / "how-it-works.md").read_text()
    for package in (PROJECT / "cascade_memory").glob("*/__init__.py"):
        assert f"\n  {package.parent.name}/ " in page


# -- names in backticks ----------------------------------------------------------------------------------------------------
# Code blocks are run; what stands in backticks between them is looked up. A name of ours must be defined in the package (or in
# an example), an attribute must belong to the class of the object before the dot, a keyword to the function that is called, an
# option to the command, and a path must be there. Names of others are listed here, with whose they are.

ELSEWHERE = {
    "Python's library": "asyncio.to_thread threading.Thread",
    "JSON": "null false",
    "LangChain: a class, a function, and what agents and our retriever inherit": (
        "RunnableSequence create_retriever_tool ainvoke invoke with_config callbacks document"
    ),
    "LangChain: what other retrievers have that becomes ours": "vectorstore as_retriever search_kwargs",
    "LangGraph and LangMem": "interrupt_before interrupt_after user_id create_search_memory_tool memories",
    "langchain-experimental's PickBest": (
        "PickBest update_with_delayed_score ToSelectFrom SelectionScorer AutoSelectionScorer"
    ),
    "mem0's memory, as its documentation calls it": "m",
    "LlamaIndex: classes, their arguments, and what our retriever inherits": (
        "ReActAgent AgentWorkflow RetrieverQueryEngine ContextChatEngine RetrieverTool from_args from_defaults ctx "
        "max_iterations wait_for_event aretrieve"
    ),
    "MCP's clients": "get_tools langchain-mcp-adapters claude_desktop_config.json .cursor/mcp.json .vscode/mcp.json",
    "Hugging Face: the form of a name, and a model": "owner/name Alibaba-NLP/gte-reranker-modernbert-base",
    "vLLM: what a request may ask of it": "chat_template_kwargs enable_thinking",
    "another program": "cp",
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
    "LaTeX": (r"\boxed{}",),
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
ALLOWED = {word for words in ELSEWHERE.values() for word in words.split()}
LITERALLY = {text for texts in VERBATIM.values() for text in texts}
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PATH = re.compile(r"[\w.*/-]+(::\w+)?")


class Definitions(ast.NodeVisitor):
    """What is defined in some files: not what a function calls its variables, which nobody outside can use."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.arguments: dict[str, set[str]] = {}  # of a function, or of a class: those of its constructor, or its fields
        self.members: dict[str, set[str]] = {}  # of a class
        self.bases: dict[str, set[str]] = {}
        self.types: dict[tuple[str, str], set[str]] = {}  # (class or "", name): the words of its annotation
        self.strings: set[str] = set()
        self._class = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._class = self._class, node.name
        self._define(node.name, inside=outer)
        self.members.setdefault(node.name, set())
        self.arguments.setdefault(node.name, set())
        self.bases.setdefault(node.name, set()).update(_last_name(base) for base in node.bases)
        self.generic_visit(node)
        self._class = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        self._define(node.name, inside=self._class)
        self.names |= arguments
        self.arguments.setdefault(self._class if node.name == "__init__" else node.name, set()).update(arguments)
        self._annotate(node.name, node.returns)
        if self._class:
            self.members[self._class] |= {
                one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
            }
        self.strings |= {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
        for one in ast.walk(node):  # a tool of the server: a function within a function, that is registered
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one is not node and one.decorator_list:
                self.names |= {one.name, *(argument.arg for argument in one.args.args)}

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._define(node.target.id, inside=self._class)
            self.arguments.setdefault(self._class, set()).add(node.target.id)
            self._annotate(node.target.id, node.annotation)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._define(node.id, inside=self._class)

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add((node.asname or node.name).split(".")[-1])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)

    def _define(self, name: str, *, inside: str) -> None:
        self.names.add(name)
        if inside:
            self.members.setdefault(inside, set()).add(name)

    def _annotate(self, name: str, annotation: ast.expr | None) -> None:
        if annotation is not None:
            self.types.setdefault((self._class, name), set()).update(re.findall(r"\w+", ast.unparse(annotation)))

    def members_of(self, classes: set[str]) -> set[str]:
        """Return the members of some classes, inherited ones as well."""
        found: set[str] = set()
        seen: set[str] = set()
        while classes:
            found |= {member for one in classes for member in self.members.get(one, ())}
            seen |= classes
            classes = {base for one in classes for base in self.bases.get(one, ())} - seen
        return found

    def type_of(self, classes: set[str], name: str) -> set[str]:
        """Return the classes of ours that an attribute of some classes holds, or that it returns when it is called."""
        words: set[str] = set()
        for one in classes:
            words |= self.types.get((one, name), set()) or self.type_of(self.bases.get(one, set()), name)
        return words & set(self.members)


def _last_name(node: ast.expr) -> str:
    return re.findall(r"\w+", ast.unparse(node))[0] if not isinstance(node, ast.Attribute) else node.attr


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
def commands() -> dict[tuple[str, ...], set[str]]:
    """Return the options of every command: ``("bench", "run")`` and the like."""
    found: dict[tuple[str, ...], set[str]] = {}

    def look(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
        found[words] = {option for action in parser._actions for option in action.option_strings}
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    look(inner, (*words, name))

    look(parser(), ())
    return found


@functools.cache
def run_on(page: Path) -> frozenset[str]:
    """Return all words of the blocks of a page: they were run."""
    return frozenset(word for block in blocks(page) for word in re.findall(r"[\w.-]+|\w+", block.code))


def in_backticks(page: Path) -> list[str]:
    """Return what stands in backticks outside of blocks."""
    return [" ".join(found[2].split()) for found in _INLINE.finditer(_FENCE.sub("", page.read_text()))]


class Unknown(Exception):
    """What stands in backticks, and is nowhere."""


def check_token(token: str, page: Path) -> None:
    """Raise ``Unknown`` if what stands in backticks names something that does not exist."""
    words = token.split()
    if token in LITERALLY or token in ALLOWED or token in {*METHODS, *HUMAN} or token in defined().strings:
        return
    if words[0] == "cascade-memory" or ((words[0],) in commands() and len(words) > 1 and words[1].isidentifier()):
        check_command(words[words[0] == "cascade-memory" :])
    elif words[0].startswith("--"):
        options = {option for known in commands().values() for option in known}
        check_options(words, options | defined().strings)
    elif words[0] in ("python", "pytest") and len(words) > 1:
        check_script(words[1:])
    elif words[0] == "pip":
        return  # its extras are checked where blocks are
    elif _PATH.fullmatch(token) and ("/" in token or token.endswith((".py", ".txt", ".md"))):
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

    def _check(self, word: str, known: set[str], what: str) -> None:
        if word not in known and word not in self._run:
            raise Unknown(f"{what} {word!r} does not exist")

    def visit_Name(self, node: ast.Name) -> None:
        is_argument = isinstance(node.ctx, ast.Store) and node.id not in OBJECTS
        arguments = {one for known in defined().arguments.values() for one in known}
        names = arguments if is_argument else defined().names | defined().strings | set(OBJECTS)
        self._check(node.id, names, "the argument" if is_argument else "the name")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = ast.unparse(node)
        if dotted in ALLOWED:
            return
        self.visit(node.value)
        if dotted.startswith("cascade_memory."):
            self._check_dotted(dotted)
            return
        classes = self._type(node.value)
        every = {member for known in defined().members.values() for member in known}
        self._check(node.attr, defined().members_of(classes) if classes else every | defined().names, "the attribute")

    def _check_dotted(self, dotted: str) -> None:
        *modules, name = dotted.split(".")
        place = PROJECT.joinpath(*modules)
        text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
        if not (place / name).is_dir() and not (place / f"{name}.py").is_file() and f'"{name}"' not in text:
            raise Unknown(f"there is no {dotted}")

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = _last_name(node.func)
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
            self._check(node.value, defined().strings | defined().names, "the value")

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


@pytest.mark.parametrize("page", [PAGES[0], *sorted((PROJECT / "docs").glob("*.md"))], ids=lambda page: page.name)
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
        "cascade-memory doctor --fixx",
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


def imports_of(page: Path) -> set[tuple[str, str]]:
    """What the Python blocks of a page import of ours: (module, name)."""
    trees = [ast.parse(block.code, type_comments=False) for block in blocks(page) if block.language == "python"]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").split(".")[0] == "cascade_memory"]
    return {(str(node.module), alias.name) for node in ours for alias in node.names}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_what_pages_teach_is_importable_from_where_a_user_would_look(page: Path):
    for module, name in imports_of(page):
        assert module.count(".") <= 1, f"{page.name} imports {name} from {module}: export it one level down"
        try:
            exported = importlib.import_module(module).__all__
        except MissingExtra:
            continue
        except AttributeError:
            assert module == "cascade_memory.errors", f"{module} does not say what it exports"
            continue
        assert name in exported or importlib.util.find_spec(f"{module}.{name}") is not None, f"{module} does not export {name}"

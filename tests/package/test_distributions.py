"""What a release uploads: its version, its metadata, its page on PyPI, and what the wheel and the sdist hold."""

from __future__ import annotations

import email
import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import version
from pathlib import Path

import pytest

import cascade_memory

PROJECT = Path(__file__).parents[2]
HOME = "https://github.com/cascade-memory/cascade-memory"
RAW = "https://raw.githubusercontent.com/cascade-memory/cascade-memory"
_TARGET = re.compile(r"\]\(([^)\s]+)|\b(?:src|srcset|href)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path

    def in_wheel(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as packed:
            return set(packed.namelist())

    def in_sdist(self) -> set[str]:
        with tarfile.open(self.sdist) as packed:
            return {one.name.partition("/")[2] for one in packed if one.isfile()}

    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as packed:
            name = next(one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
            return email.message_from_bytes(packed.read(name))


def build(folder: Path) -> Built:
    """Build both files as ``python -m build`` does, but with the hatchling of this environment: tests have no network."""
    for needed in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(needed)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Built(next(folder.glob("*.whl")), next(folder.glob("*.tar.gz")))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("dist"))


def files_of(folder: str) -> set[str]:
    found = (path for path in (PROJECT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PROJECT).as_posix() for path in found}


def test_the_version_stands_in_one_place():
    package = Path(cascade_memory.__file__).parent
    assert [
        path.name for path in package.rglob("*.py") if f'"{cascade_memory.__version__}"' in path.read_text(encoding="utf-8")
    ] == ["__init__.py"]
    assert not re.search(r"^version = ", (PROJECT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version("cascade-memory") == cascade_memory.__version__, "install the package again: its version has changed"


def test_the_changelog_begins_with_this_version():
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0] == cascade_memory.__version__


@pytest.mark.slow
def test_the_metadata_say_what_pypi_shows(built: Built):
    found = built.metadata()
    assert found["Name"] == "cascade-memory"
    assert found["Version"] == cascade_memory.__version__
    assert found["License-Expression"] == "Apache-2.0 AND CC-BY-4.0"
    of_others = ["cascade_memory/encoders/NOTICE-BERT.txt", "cascade_memory/evaluation/bundled/LICENSE-CC-BY-4.0.txt"]
    assert found.get_all("License-File") == ["LICENSE", *of_others]
    assert found["Description-Content-Type"] == "text/markdown"
    addresses = dict(one.split(", ") for one in found.get_all("Project-URL", []))
    assert set(addresses) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    assert {one for one in addresses.values() if one != HOME and not one.startswith(f"{HOME}/")} == set()
    classifiers = found.get_all("Classifier", [])
    oldest = int(str(found["Requires-Python"]).removeprefix(">=3."))
    pythons = {int(one.rpartition(".")[2]) for one in classifiers if one.startswith("Programming Language :: Python :: 3.")}
    assert pythons == set(range(oldest, max(pythons) + 1))
    assert "Typing :: Typed" in classifiers


@pytest.mark.slow
def test_every_link_on_pypi_leads_to_a_file_of_this_release(built: Built):
    page = str(built.metadata().get_payload())
    targets = {one or other for one, other in _TARGET.findall(page)}
    assert len(targets) > 10
    assert {one for one in targets if not one.startswith(("https://", "#"))} == set()
    for place in (f"{HOME}/blob/v{cascade_memory.__version__}/", f"{RAW}/v{cascade_memory.__version__}/"):
        files = {one.removeprefix(place).partition("#")[0] for one in targets if one.startswith(place)}
        assert files
        assert {one for one in files if not (PROJECT / one).exists()} == set()


def test_the_wheel_holds_the_package_and_nothing_else(built: Built):
    found = {name for name in built.in_wheel() if ".dist-info/" not in name}
    assert found == files_of("cascade_memory")
    assert "cascade_memory/py.typed" in found
    assert any(name.endswith(".css") for name in found)  # data files of the report


def test_the_sdist_holds_every_file_that_git_tracks(built: Built):
    if not (PROJECT / ".git").exists():
        pytest.skip("this is no checkout: only git knows which files there should be")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    tracked = {name for name in done.stdout.splitlines() if (PROJECT / name).is_file()}
    assert built.in_sdist() - {"PKG-INFO"} == tracked


def test_an_sdist_holds_its_own_tests(built: Built):
    assert {
        "CHANGELOG.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "constraints.txt",
        ".ci/run",
        "pyproject.toml",
    } <= built.in_sdist()
    assert {name for name in files_of("tests") if not name.endswith(".pyc")} <= built.in_sdist()


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(built: Built, tmp_path: Path):
    again = build(tmp_path)
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.read_bytes() == built.sdist.read_bytes()


def test_readme_shows_on_pypi(built: Built):
    if importlib.util.find_spec("readme_renderer") is None or importlib.util.find_spec("comrak") is None:
        pytest.skip("readme_renderer, which PyPI uses, is not installed; .ci/matrix release checks it with twine")
    from readme_renderer.markdown import render

    shown = render(str(built.metadata().get_payload()))
    assert shown is not None
    assert "<h1>" in shown or "<h1 " in shown
    assert "<pre" in shown

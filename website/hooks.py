"""What mkdocs is told beyond its settings: pages that stand outside of ``docs/``, and links to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

# They stay at the root of the project, where GitHub and PyPI look for them.
AT_THE_ROOT = ("CHANGELOG.md", "SECURITY.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand at the root of the project."""
    root = Path(config["config_file_path"]).parent
    for name in AT_THE_ROOT:
        text = (root / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links that leave ``docs/`` into links within the site; README's counterpart is the site's first page."""
    for name in AT_THE_ROOT:
        markdown = markdown.replace(f"](../{name})", f"]({name})")
    return markdown.replace("](../README.md)", "](index.md)")


def on_post_page(output: str, **_: Any) -> str:
    """Give the search a name for those who hear the page instead of seeing it."""
    nameless = 'data-md-component="search" role="dialog"'
    return output.replace(nameless, f'{nameless} aria-label="Search"')

"""What the site has beside the pages that lie in docs/: its navigation, the reference of every public name, the README.

MkDocs calls the functions named `on_…` while it builds. Navigation is read from the tables of `docs/index.md`, and
public names from the list that a test pins, so that neither is written twice.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/cargobike/cargobike/blob/main"
BROUGHT = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "benchmarks/README.md": "measuring.md",
}
"""Files outside docs/ that are pages of the site, by their path in the repository."""

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\)")


def on_config(config: Any) -> Any:
    """Make the navigation from the tables of the start page."""
    sections: list[dict[str, Any]] = [{"Home": "index.md"}]
    for line in (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            sections.append({line.removeprefix("## "): []})
        elif row := _ROW.match(line):
            next(iter(sections[-1].values())).append({row[1]: _page(Path("docs"), row[2]) or row[2]})
    reference = [{module: f"api/{module}.md"} for module in _public()]
    sections.append({"Public names": reference})
    config.nav = sections
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add pages that lie elsewhere in the repository, and one for each public module."""
    for source, page in BROUGHT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for module, names in _public().items():
        files.append(File.generated(config, f"api/{module}.md", content=_module_page(module, names)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the page that the file has become, or to the repository."""
    source = next((path for path, name in BROUGHT.items() if name == page.file.src_uri), "")
    folder = Path(source).parent if source else Path("docs") / Path(page.file.src_uri).parent

    def point(link: re.Match[str]) -> str:
        target = _page(folder, link[2])
        if target is None:
            inside = os.path.normpath(folder / link[2])
            return f"{link[1]}{REPOSITORY}/{inside}{link[3] or ''}{link[4]}"
        return f"{link[1]}{os.path.relpath(target, Path(page.file.src_uri).parent)}{link[3] or ''}{link[4]}"

    return _LINK.sub(point, markdown)


def _page(folder: Path, link: str) -> str | None:
    """Return the page of the site that a link in a file of a folder means; nothing if there is none."""
    path = os.path.normpath(folder / link)
    if path in BROUGHT:
        return BROUGHT[path]
    inside = path.removeprefix("docs/")
    return inside if inside != path and (ROOT / path).is_file() else None


def _public() -> dict[str, list[str]]:
    """Return the public names by module."""
    folder = str(ROOT / "tests" / "architecture")
    sys.path.insert(0, folder)
    try:
        public: dict[str, str] = importlib.import_module("public_names").PUBLIC
    finally:
        sys.path.remove(folder)
    return {module: names.split() for module, names in public.items()}


def _module_page(module: str, names: list[str]) -> str:
    about = f"::: {module}\n    options:\n      members: false\n      heading_level: 1\n"
    return "\n".join([about, *_blocks(module, names)])


def _blocks(module: str, names: list[str]) -> Iterator[str]:
    """Yield what shows the docstring of each name, found where the thing behind it is written."""
    for name in (name for name in names if not name.startswith("_")):
        thing = getattr(importlib.import_module(module), name, None)
        if thing is None:
            thing = importlib.import_module(f"{module}.{name}")
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__name__ != name:
            yield f"## {name}\n\nAnother name of `{thing.__name__}`.\n"
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            yield f"::: {thing.__module__}.{thing.__qualname__}\n    options:\n      heading_level: 2\n"
        elif inspect.ismodule(thing):
            yield f"## {name}\n\n{inspect.getdoc(thing)}\n"
        else:
            yield f"## {name}\n\n`{thing!r}`\n"

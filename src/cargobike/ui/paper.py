"""Pages that stand alone: one file with its figures, its scripts and its look, which needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from cargobike.analysis.figures.look import Spec
from cargobike.analysis.plots import as_figure, plotly_script
from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import read_path
from cargobike.ui.markup import data_block, script, security_policy, text

_NO_PAGES = (".csv", ".docx", ".ipynb", ".jpg", ".json", ".md", ".pdf", ".png", ".svg", ".txt")


class Figures:
    """The figures of a page, and the links that lead to them."""

    def __init__(self) -> None:
        self.links: list[tuple[str, str]] = []
        self._encoded: dict[str, str] = {}

    def add(self, name: str, spec: Spec) -> tuple[str, str, str]:
        """Add a figure; returns its title, its subtitle and the element in which it will be drawn."""
        heading = spec["layout"].pop("title")
        title = heading["text"].removeprefix("<b>").removesuffix("</b>")
        legend = spec["layout"].get("showlegend", len(spec["data"]) > 1)
        own = spec["layout"].get("margin", {})
        # The title is above the figure, so its room is not needed.
        spec["layout"]["margin"] = {
            "l": 56,
            "r": 16,
            "b": 48,
            **own,
            "t": own["t"] - 70 if own else 40 if legend else 12,
        }
        self._encoded[name] = str(as_figure(spec).to_json())
        # The texts were escaped for Plotly, which reads the same characters as HTML does.
        subtitle = heading.get("subtitle", {}).get("text", "")
        return title, subtitle, f'<div class="figure" id="figure-{name}" data-figure="{name}"></div>'

    def section(self, name: str, word: str, spec: Spec, *, above: str = "", is_wide: bool = False) -> str:
        """Return a section with one figure; a wide one is scrolled where there is no room."""
        if word:
            self.links.append((name, word))
        title, subtitle, element = self.add(name, spec)
        hint = f"<p>{subtitle}</p>" if subtitle else ""
        if is_wide:
            element = f'<div class="scroll"><div class="wide">{element}</div></div>'
        return f'<section id="{name}">{above}<h2>{title}</h2>{hint}{element}</section>'

    def encoded(self) -> str:
        """Return all figures as one JSON object."""
        return "{" + ",".join(f'"{name}":{encoded}' for name, encoded in self._encoded.items()) + "}"


def lay_out(
    *,
    title: str,
    head: str,
    sections: Sequence[str],
    figures: Figures,
    links: Sequence[tuple[str, str]],
    footer: str,
    scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
) -> str:
    """Return a whole page as HTML.

    Args:
        title: What the browser's tab says.
        head: The page's heading, as HTML.
        sections: Its parts, as HTML.
        figures: The figures that the parts contain.
        links: Anchors and words of its menu.
        footer: The last line, as HTML.
        scripts: Names of more scripts of ours, besides the one that draws.
        data: What these read, by the name of the element: JSON.
    """
    codes = [plotly_script(), *(_file(name) for name in ("figures.js", *scripts))]
    menu = "".join(f'<a href="#{anchor}">{text(word)}</a>' for anchor, word in links)
    return "".join(
        [
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
            security_policy(codes),
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title>",
            f"<style>{_file('report.css')}</style></head>",
            f"<body>{head}<nav><div>{menu}</div></nav><main>{''.join(sections)}</main>",
            f"<footer>{footer}</footer>",
            data_block("figure-data", figures.encoded()),
            *(data_block(name, encoded) for name, encoded in (data or {}).items()),
            *(script(code) for code in codes),
            "</body></html>\n",
        ]
    )


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page and return its path: missing folders are made, an existing file is replaced."""
    target = Path(read_path("path", path)).absolute()
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; name a file in it, such as {target / 'report.html'}.")
    if target.suffix.lower() in _NO_PAGES:
        raise InvalidInputError(f"A report is a page of HTML; call it {target.with_suffix('.html').name}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        draft.write_bytes(page.encode("utf-8", "replace"))
        draft.replace(target)  # a reader sees either the old page or the new one
    finally:
        draft.unlink(missing_ok=True)
    return target


def _file(name: str) -> str:
    return resources.files("cargobike.ui.pages").joinpath(name).read_text(encoding="utf-8")

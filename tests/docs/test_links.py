"""Every relative link of the pages leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import snippets

LINK = re.compile(r"(?<!`)\[[^\]]*\]\((?P<target>[^)\s]+)\)|<img[^>]*src=\"(?P<image>[^\"]+)\"")
HEADING = re.compile(r"^#+ +(?P<text>.+?)\s*$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)

PAGES = [*snippets.documents(), snippets.ROOT / "CONTRIBUTING.md", snippets.ROOT / "CHANGELOG.md"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made where our pages are read."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = (match["text"].lower() for match in HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(snippets.ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for match in LINK.finditer(FENCED.sub("", page.read_text(encoding="utf-8"))):
        target = match["target"] or match["image"]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []

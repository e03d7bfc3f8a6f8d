"""Judgements as text, in notebooks and as a page; names in them are text, never markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from cargobike.monitoring import Judgement, Reference
from cargobike.monitoring.showing.page import page_of

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def judgement() -> Judgement:
    random = np.random.default_rng(1)
    usual = {f"x{place}": random.normal(size=1000) for place in range(14)}
    reference = Reference({**usual, EVIL: random.choice(["a", "b"], 1000)}, window=200)
    now = {name: random.normal(5, 1, 200) for name in usual}
    return reference.judge({**now, EVIL: [EVIL] * 200, "more": [1] * 200})


class Checker(HTMLParser):
    """Counts elements, and refuses those that are not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.counts: dict[str, int] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in {"meta", "rect"}:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.opened.pop() == tag


def test_text_names_the_most_unusual_and_counts_the_rest(judgement: Judgement) -> None:
    lines = repr(judgement).splitlines()
    assert lines[0].startswith("ALARM: ")
    assert len(lines) == 12
    assert re.fullmatch(r"  … and \d+ more", lines[-1])


def test_a_notebook_shows_reference_against_now(judgement: Judgement) -> None:
    html = judgement._repr_html_()
    checker = Checker(html)
    assert checker.opened == []
    assert checker.counts["svg"] == 12
    assert "script" not in checker.counts
    assert "… and 3 more columns" in html
    assert "prefers-color-scheme:dark" in html


def test_the_page_is_one_file_with_everything(judgement: Judgement) -> None:
    page = page_of(judgement, reference=EVIL, now="now.parquet", at_s=0.0)
    checker = Checker(page)
    assert checker.opened == []
    assert checker.counts["svg"] == 15
    assert checker.counts["details"] == len(judgement.statistics)
    assert "script" not in checker.counts
    assert not re.search(r"(?:src|href)=|url\(", page)
    assert "more" in page
    assert "prefers-color-scheme:dark" in page

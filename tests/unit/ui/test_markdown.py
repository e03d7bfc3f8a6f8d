from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.ui.markdown import MOST_CHARACTERS, as_html

ALLOWED = {
    "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "div", "pre", "code",
    "a", "strong", "em",
}  # fmt: skip


class Tags(HTMLParser):
    """All tags of a text, and that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        self.open.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(source: str) -> str:
    made = as_html(source)
    tags = Tags()
    tags.feed(made)
    tags.close()
    for name, value in tags.attributes:
        assert name in {"href", "rel", "tabindex", "class", "scope"}, name
        assert name != "href" or (value or "").startswith(("http://", "https://", "/")), value
    return made


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# Title #", "<h3>Title</h3>"),
        ("###### Deep", "<h6>Deep</h6>"),
        ("one\ntwo\n\nthree", "<p>one two</p>\n<p>three</p>"),
        ("- a\n- **b**\n\n1. c", "<ul><li>a</li><li><strong>b</strong></li></ul>\n<ol><li>c</li></ol>"),
        ("[docs](/x?y=1&z=2)", '<p><a href="/x?y=1&amp;z=2" rel="noopener noreferrer">docs</a></p>'),
        ("`a*b*<c>` and *d*", "<p><code>a*b*&lt;c&gt;</code> and <em>d</em></p>"),
        ("snake_case_words stay, 2*3*4 too", "<p>snake_case_words stay, 2*3*4 too</p>"),
        ("```python\nx = 1 < 2\n```\nafter", '<pre tabindex="0"><code>x = 1 &lt; 2</code></pre>\n<p>after</p>'),
    ],
)
def test_what_cards_use_is_shown(source: str, expected: str) -> None:
    assert checked(source) == expected


def test_tables_have_rows_of_one_length() -> None:
    made = checked("| a | b |\n| --- | ---: |\n| 1 | x \\| y |\n| 2 |\n\nend")
    assert '<thead><tr><th scope="col">a</th>' in made
    assert "<td>1</td><td>x | y</td>" in made
    assert "<tr><td>2</td><td></td></tr>" in made
    assert made.endswith("<p>end</p>")
    assert "<thead>" not in checked("|  |  |\n| --- | --- |\n| a | b |")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](//evil.example)",
        '[x](https://a.example/"onmouseover="alert(1))',
        "[<img src=x onerror=alert(1)>](https://a.example)",
        "![x](https://a.example/x.png)",
        "`<b>` **<i>x</i>** *<u>y</u>*",
        "# <svg onload=alert(1)>",
        "| <td onclick=x> | b |\n|---|---|\n| `</td>` | [a](/x) |",
        "```\n</code></pre><script>\n```",
        "\x000\x00 `x` \x001\x00",
        "[**a](/x)**",
        "&lt;script&gt; &amp;",
        "**a *b** c*",
        "*a **b* c**",
        "[`a](/x)`",
    ],
)
def test_nothing_that_is_written_becomes_markup(hostile: str) -> None:
    made = checked(hostile)
    assert "<script" not in made
    assert "<img" not in made


@given(st.text(alphabet="#*_`|-[]()<>\"'&/ \nahttps:.1\\\x00", max_size=200))
def test_any_text_is_harmless(source: str) -> None:
    try:
        checked(source)
    except IndexError:
        raise AssertionError(source) from None


def test_long_texts_are_cut_and_quick() -> None:
    assert len(as_html("a " * MOST_CHARACTERS)) < MOST_CHARACTERS + 100
    spaces = " " * 60_000
    for hard in (*(part * 9000 for part in ("*", "[", "**a ", "| ", "`", "[a](/")), f"# {spaces}x", f"a|b\n{spaces}-x"):
        assert as_html(hard)

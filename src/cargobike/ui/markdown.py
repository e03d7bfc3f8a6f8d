"""Markdown as HTML, safely: a small part of it, of which every text is escaped before anything else is done.

Headings, paragraphs, lists, tables, code, bold, italics, and links to pages of the web or of the dashboard. Whatever
else a text holds, HTML included, is shown as it was written. No expression looks at a character more than a few times,
so that no text takes long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cargobike.ui.markup import text

MOST_CHARACTERS: Final = 200_000
_DEEPEST: Final = 6
_HEADING: Final = re.compile(r"(#{1,6})\s(.*)")
_ITEM: Final = re.compile(r"\s{0,3}(?:[-*+]|\d{1,9}[.)])\s+(.*)")
_CODE: Final = re.compile(r"`([^`]+)`")
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(((?:https?://|/(?!/))[^\s()]*)\)")
_BOLD: Final = re.compile(r"\*\*(\S(?:[^*]*\S)?)\*\*")
_ITALIC: Final = re.compile(r"(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])")
_HIDDEN: Final = re.compile("\x00(\\d+)\x00")
_MARKS: Final = re.compile("(\x00\\d+\x00)")


def as_html(source: str, *, below: int = 2) -> str:
    """Return Markdown as HTML.

    Args:
        source: The text; what is longer than `MOST_CHARACTERS` is cut.
        below: The level of the heading that it stands under: `#` becomes the next one.
    """
    lines = source[:MOST_CHARACTERS].replace("\r\n", "\n").replace("\x00", "").split("\n")
    parts: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.lstrip().startswith("```"):
            place, part = _fenced(lines, place)
        elif heading := _HEADING.fullmatch(line):
            level = min(_DEEPEST, len(heading[1]) + below)
            place, part = place + 1, f"<h{level}>{_inline(heading[2].strip().rstrip('#').strip())}</h{level}>"
        elif "|" in line and place + 1 < len(lines) and _is_rule(lines[place + 1]):
            place, part = _table(lines, place)
        elif _ITEM.fullmatch(line):
            place, part = _items(lines, place)
        elif not line.strip():
            place, part = place + 1, ""
        else:
            place, part = _paragraph(lines, place)
        parts.append(part)
    return "\n".join(part for part in parts if part)


def _fenced(lines: Sequence[str], place: int) -> tuple[int, str]:
    end = place + 1
    while end < len(lines) and lines[end].strip() != "```":
        end += 1
    code = "\n".join(lines[place + 1 : end])
    return end + 1, f'<pre tabindex="0"><code>{text(code)}</code></pre>'


def _table(lines: Sequence[str], place: int) -> tuple[int, str]:
    head = _cells(lines[place])
    end = place + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        end += 1
    rows = []
    for line in lines[place + 2 : end]:
        cells = (_cells(line) + [""] * len(head))[: len(head)]
        rows.append("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in cells) + "</tr>")
    titles = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in head) if any(head) else ""
    top = f"<thead><tr>{titles}</tr></thead>" if titles else ""
    return end, f'<div class="scroll" tabindex="0"><table>{top}<tbody>{"".join(rows)}</tbody></table></div>'


def _is_rule(line: str) -> bool:
    return "-" in line and not line.strip(" \t|:-")


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _items(lines: Sequence[str], place: int) -> tuple[int, str]:
    kind = "ol" if lines[place].lstrip()[:1].isdigit() else "ul"
    items = []
    while place < len(lines) and (item := _ITEM.fullmatch(lines[place])):
        items.append(f"<li>{_inline(item[1])}</li>")
        place += 1
    return place, f"<{kind}>{''.join(items)}</{kind}>"


def _paragraph(lines: Sequence[str], place: int) -> tuple[int, str]:
    words: list[str] = []
    while place < len(lines) and lines[place].strip():
        line = lines[place]
        if words and (line.lstrip().startswith("```") or _HEADING.fullmatch(line) or _ITEM.fullmatch(line)):
            break
        words.append(line.strip())
        place += 1
    return place, f"<p>{_inline(' '.join(words))}</p>"


def _inline(words: str) -> str:
    """Return a line with code, links, bold and italics.

    What is made is put aside, and a mark stays in its place, so that nothing is made across its edges.
    """
    aside: list[str] = []

    def hide(made: str) -> str:
        aside.append(made)
        return f"\x00{len(aside) - 1}\x00"

    def link(match: re.Match[str]) -> str:
        return hide(f'<a href="{text(match[2])}" rel="noopener noreferrer">{_escaped(match[1])}</a>')

    words = _CODE.sub(lambda match: hide(f"<code>{text(match[1])}</code>"), words)
    words = _LINK.sub(link, words)
    words = _BOLD.sub(lambda match: hide(f"<strong>{_escaped(match[1])}</strong>"), words)
    words = _ITALIC.sub(lambda match: hide(f"<em>{_escaped(match[1])}</em>"), words)

    def restored(made: str) -> str:
        return _HIDDEN.sub(lambda match: restored(aside[int(match[1])]), made)

    return restored(_escaped(words))


def _escaped(words: str) -> str:
    """Return words with all but marks escaped; the character that marks is one that `text` removes."""
    return "".join(piece if _HIDDEN.fullmatch(piece) else text(piece) for piece in _MARKS.split(words))

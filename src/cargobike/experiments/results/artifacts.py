"""The files of a trial as a list, which a notebook shows: pictures, tables and texts, each within limits."""

from __future__ import annotations

import base64
import csv
import html
import io
from pathlib import Path
from typing import Final

_LARGEST_PICTURE: Final = 4 << 20
_MOST_SHOWN: Final = 24
_LONGEST_TEXT: Final = 20_000
_MOST_ROWS: Final = 50
_MOST_COLUMNS: Final = 30
_TEXTS: Final = frozenset({".txt", ".md", ".log", ".json", ".yaml", ".yml"})
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


class Artifacts(list[Path]):
    """The paths of a trial's files, sorted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()))
        self._folder = folder

    def _repr_html_(self) -> str:
        parts = [_shown(path, path.relative_to(self._folder).as_posix()) for path in self[:_MOST_SHOWN]]
        if len(self) > _MOST_SHOWN:
            parts.append(f"<p>{len(self) - _MOST_SHOWN} more</p>")
        return "".join(parts) or "<p>no files</p>"


def _shown(path: Path, name: str) -> str:
    """Return a file as HTML; what it holds was written by user code, so all of it is escaped."""
    title = html.escape(name)
    try:
        content = _content(path)
    except OSError as error:
        content = html.escape(str(error))
    return f"<details open><summary>{title}</summary>{content}</details>" if content else f"<p>{title}</p>"


def _content(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(16)
        for magic, kind in _PICTURES:
            if head.startswith(magic):
                body = head + file.read(_LARGEST_PICTURE)
                if len(body) > _LARGEST_PICTURE:
                    return f"<p>larger than {_LARGEST_PICTURE >> 20} MB</p>"
                return (
                    f'<img alt="" src="data:{kind};base64,{base64.b64encode(body).decode()}" style="max-width: 100%">'
                )
        if path.suffix.lower() not in {*_TEXTS, ".csv"}:
            return ""
        text = (head + file.read(_LONGEST_TEXT)).decode("utf-8", "replace")
    if path.suffix.lower() == ".csv":
        return _table(text)
    return f"<pre>{html.escape(text)}</pre>"


def _table(text: str) -> str:
    try:
        rows = list(csv.reader(io.StringIO(text)))[: _MOST_ROWS + 1]
    except csv.Error:
        return f"<pre>{html.escape(text)}</pre>"
    cells = [[html.escape(cell[:500]) for cell in row[:_MOST_COLUMNS]] for row in rows]
    if not cells:
        return "<p>empty</p>"
    head = "".join(f"<th>{cell}</th>" for cell in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

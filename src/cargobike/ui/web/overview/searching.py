"""Search over everything: what products list, kept in memory, and what fits a few words best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cargobike.ui.web.overview.refreshed import Refreshed

_REST_S: Final = 3.0


class Document(NamedTuple):
    """A thing that can be found.

    Attributes:
        kind: What it is: `model`, `table`.
        name: What people call it.
        address: Its page.
        text: What it is, for people.
        tags: Words that people gave it.
        columns: Names of columns, features, fields.
        words: What else finds it: an id, an owner.
        at: When it was made, in seconds since 1970; of equally good ones the newest comes first.
    """

    kind: str
    name: str
    address: str
    text: str = ""
    tags: Sequence[str] = ()
    columns: Sequence[str] = ()
    words: str = ""
    at: float = 0.0


Documents = Callable[[], Iterable[Document]]
"""What a product registers: lists everything of it that can be found."""


class Hit(NamedTuple):
    """A thing that fits, and where the words were: `name`, `tag`, `column`, `description` or `words`."""

    document: Document
    where: str


class Found(NamedTuple):
    """What fits, the best first.

    Attributes:
        hits: A part of it.
        kinds: How many of each kind fit, whatever part was asked for.
        total: How many fit, of the kind that was asked for.
        is_complete: Whether everything was listed by now.
        problems: Why a product could not list what it has.
    """

    hits: list[Hit]
    kinds: dict[str, int]
    total: int
    is_complete: bool
    problems: list[str]


class _Line(NamedTuple):
    """A document and its words in lower case, in the order of what they weigh."""

    document: Document
    name: str
    tags: str
    columns: str
    all: str


_PLACES: Final = ("name", "tag", "column", "description")


class Search:
    """Everything that the sections of a server list."""

    def __init__(self, sections: Mapping[str, Documents]) -> None:
        self._sections = {name: Refreshed(_lines(listed), rest_s=_REST_S) for name, listed in sections.items()}

    def warm(self) -> None:
        """Begin to list everything."""
        for section in self._sections.values():
            section.wake()

    def find(self, text: str, *, kind: str = "", offset: int = 0, limit: int = 20, patience_s: float = 0.5) -> Found:
        """Return what fits all words of a text, in a name, tag, column, description or id.

        Args:
            text: The words; upper and lower case are the same. Without any, the newest things fit.
            kind: Only things of this kind.
            offset: How many hits to skip.
            limit: How many to return.
            patience_s: How long to wait for lists that were never made before.
        """
        is_complete = self._ready(patience_s)
        parts = text.lower().split()
        whole = " ".join(parts)
        fitting: list[tuple[int, float, str, _Line]] = []
        kinds: dict[str, int] = {}
        for section in self._sections.values():
            for line in section.last or ():
                if not all(part in line.all for part in parts):
                    continue
                found = line.document.kind
                kinds[found] = kinds.get(found, 0) + 1
                if kind in ("", found):
                    fitting.append((_rank(line, whole, parts), -line.document.at, line.name, line))
        fitting.sort(key=lambda one: one[:3])
        hits = [Hit(line.document, _where(line, parts)) for *_, line in fitting[offset : offset + limit]]
        problems = [section.problem for section in self._sections.values() if section.problem]
        return Found(hits, dict(sorted(kinds.items())), len(fitting), is_complete, problems)

    def _ready(self, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        rounds = [(section, section.wake()) for section in self._sections.values()]
        for section, one in rounds:
            if section.last is None and not section.problem:
                one.wait(max(0.0, deadline - time.monotonic()))
        return all(section.last is not None or section.problem for section in self._sections.values())


def _lines(listed: Documents) -> Callable[[], list[_Line]]:
    return lambda: [_line(document) for document in listed()]


def _line(document: Document) -> _Line:
    name, tags = document.name.lower(), " ".join(document.tags).lower()
    columns = " ".join(document.columns).lower()
    rest = " ".join((name, tags, columns, document.text.lower(), document.words.lower(), document.kind))
    return _Line(document, name, tags, columns, rest)


def _rank(line: _Line, whole: str, parts: Sequence[str]) -> int:
    """Return how good a hit is, the best 0."""
    if not parts:
        return 0
    if line.name == whole:
        return 0
    if line.name.startswith(whole):
        return 1
    if whole in line.name:
        return 2
    if all(part in line.name for part in parts):
        return 3
    if all(part in line.name or part in line.tags for part in parts):
        return 4
    return 5 if all(part in line.name or part in line.tags or part in line.columns for part in parts) else 6


def _where(line: _Line, parts: Sequence[str]) -> str:
    """Return the place of the first word that is not in the name, or `name`."""
    texts = (line.name, line.tags, line.columns, line.document.text.lower())
    for part in parts:
        place = next((word for word, text in zip(_PLACES, texts, strict=True) if part in text), "words")
        if place != "name":
            return place
    return "name"

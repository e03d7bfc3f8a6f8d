"""What changes in the arguments of a call: names that are different here, and what means nothing here."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cargobike.compat.migrating.edits import Edit, Place
from cargobike.compat.translations import Translation

_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """The text of one argument, with blanks and brackets around it, and where the next one begins."""

    start: Place
    end: Place
    next: Place


class Arguments:
    """Knows where the arguments of calls in a script begin and end.

    Args:
        source: The script.
    """

    def __init__(self, source: str) -> None:
        lines = source.splitlines(keepends=True)
        self._tokens = [
            (_in_bytes(lines, token.start), _in_bytes(lines, token.end), token.string)
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type not in {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        ]

    def edits(self, call: ast.Call, translation: Translation) -> list[Edit] | None:
        """Return what to change in a call's arguments; `None` if it cannot be said, for a `*list` or one too many."""
        given: list[ast.expr | ast.keyword] = sorted(
            [*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset)
        )
        changes = translation.renamed or translation.dropped or translation.accepts is not None
        if any(isinstance(one, ast.Starred) or (isinstance(one, ast.keyword) and one.arg is None) for one in given):
            return None if changes else []
        pieces = list(self._pieces(call))
        if len(pieces) != len(given) or len(call.args) > len(translation.positional or call.args):
            return None
        if translation.accepts is not None and not set(_names(given, translation)) <= translation.accepts:
            return None
        return list(self._changed(given, pieces, translation))

    def _changed(
        self, given: Sequence[ast.expr | ast.keyword], pieces: Sequence[_Piece], translation: Translation
    ) -> Iterator[Edit]:
        for index, (one, piece) in enumerate(zip(given, pieces, strict=True)):
            if isinstance(one, ast.keyword):
                name = str(one.arg)
                if name in translation.renamed:
                    end = one.lineno, one.col_offset + len(name.encode())
                    yield Edit((one.lineno, one.col_offset), end, translation.renamed[name])
            else:
                name = translation.positional[index] if translation.positional else ""
                if name and index and name not in translation.dropped:
                    yield Edit(piece.start, piece.start, f"{translation.renamed.get(name, name)}=")
            if name in translation.dropped:
                is_last = index == len(given) - 1
                yield Edit(pieces[index - 1].end if is_last and index else piece.start, piece.next, "")

    def _pieces(self, call: ast.Call) -> Iterator[_Piece]:
        after: Place = (call.func.end_lineno or 0, call.func.end_col_offset or 0)
        depth, start, end = 0, None, after
        for begin, finish, text in self._tokens:
            if begin < after:
                continue
            if text in _CLOSING:
                depth -= 1
                if not depth:
                    if start is not None:
                        yield _Piece(start, end, end)
                    return
            if depth == 1 and text == ",":
                if start is not None:
                    yield _Piece(start, end, self._next_begin(finish))
                start = None
                continue
            if depth and start is None and not text.startswith("#"):
                start = begin
            if not text.startswith("#"):
                end = finish
            if text in _OPENING:
                depth += 1

    def _next_begin(self, place: Place) -> Place:
        return next(begin for begin, _, _ in self._tokens if begin >= place)


def _names(given: Sequence[ast.expr | ast.keyword], translation: Translation) -> Iterator[str]:
    """Yield what arguments were called; by their old names."""
    for index, one in enumerate(given):
        yield str(one.arg) if isinstance(one, ast.keyword) else translation.positional[index]


def _in_bytes(lines: Sequence[str], place: tuple[int, int]) -> Place:
    line, column = place
    return line, len(lines[line - 1][:column].encode()) if line <= len(lines) else column

"""Tables that fit into a terminal: texts are shortened with `…`, long ones folded; ids and numbers stay whole."""

from __future__ import annotations

from typing import Final

from rich.table import Column, Table
from rich.text import Text

_GAP: Final = 2
_LEAST_SHORTENED: Final = 6
_LEAST_FOLDED: Final = 16


class Grid(Table):
    """A table without lines that knows which of its columns may give way where a terminal is narrow.

    Args:
        shortened: Headings of columns whose texts are cut with `…`.
        folded: Headings of columns whose texts go on in the next line.
        optional: Headings of columns that are left out before anything else would not fit, the first one first.
    """

    def __init__(
        self, *, shortened: tuple[str, ...] = (), folded: tuple[str, ...] = (), optional: tuple[str, ...] = ()
    ) -> None:
        super().__init__(box=None, pad_edge=False, header_style="bold", show_edge=False)
        self._shortened, self._folded, self._optional = shortened, folded, optional

    def fit(self, width: int) -> tuple[int, list[str]]:
        """Give every column its width, so that all of it fits into a terminal of some width if that is possible.

        Returns:
            The width of the whole table, which is larger than the terminal only if nothing can give way any more; the
            terminal then folds its lines. And the headings of the columns that were left out.
        """
        left_out = []
        for heading in self._optional:
            if self._least_width() <= width:
                break
            left_out += [heading for column in self.columns if column.header == heading]
            self._leave_out(heading)
        excess = sum(map(self._natural, self.columns)) + self._gaps - width
        # The last columns give way first: what comes first says what the row is about.
        for column in reversed(self.columns):
            natural = self._natural(column)
            column.width = max(self._least(column), natural - max(0, excess))
            excess -= natural - column.width
            if column.header in self._shortened:
                for text in _texts(column):
                    text.truncate(column.width, overflow="ellipsis")
        return sum(column.width or 0 for column in self.columns) + self._gaps, left_out

    @property
    def _gaps(self) -> int:
        return _GAP * max(0, len(self.columns) - 1)

    def _least_width(self) -> int:
        return sum(map(self._least, self.columns)) + self._gaps

    def _least(self, column: Column) -> int:
        natural, heading = self._natural(column), str(column.header)
        if heading in self._shortened:
            return min(natural, max(_LEAST_SHORTENED, len(heading)))
        if heading in self._folded:
            return min(natural, max(_LEAST_FOLDED, len(heading)))
        return natural

    def _natural(self, column: Column) -> int:
        heading = len(str(column.header)) if self.show_header else 0
        return max([heading, *(text.cell_len for text in _texts(column))])

    def _leave_out(self, heading: str) -> None:
        self.columns = [column for column in self.columns if column.header != heading]
        for index, column in enumerate(self.columns):
            column._index = index


def _texts(column: Column) -> list[Text]:
    return [text for text in column.cells if isinstance(text, Text)]

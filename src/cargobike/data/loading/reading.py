"""Read what is left of an epoch: the order, the blocks and the threads, put together."""

from __future__ import annotations

from collections.abc import Generator

from cargobike.data.loading.ahead import ReadAhead
from cargobike.data.loading.blocks import ArrowBlocks, Blocks, NumpyBlocks
from cargobike.data.loading.columns import Column
from cargobike.data.loading.decoding import first_length
from cargobike.data.loading.options import Options
from cargobike.data.loading.order import Order
from cargobike.data.loading.stats import Stats
from cargobike.data.loading.steps import Portion
from cargobike.data.loading.taking import Taken, take_batches
from cargobike.data.loading.visits import visits
from cargobike.data.sources.source import Source


class Reading:
    """How one loader reads; keeps the memory of one epoch for the next one.

    Args:
        source: What is read.
        columns: What a batch consists of.
        options: How.
        stats: Where is counted what was read, waited for and left out.
    """

    def __init__(self, source: Source, columns: list[Column], options: Options, stats: Stats) -> None:
        self._source = source
        self._columns = columns
        self._options = options
        self._stats = stats
        self._spare: tuple[int, Blocks] | None = None

    @property
    def columns(self) -> list[Column]:
        """What a batch consists of; the first use reads how long lists are that are to have all the same length."""
        self._columns = [column if column.shape != (-1,) else self._widened(column) for column in self._columns]
        return self._columns

    def read(self, part: Portion, order: Order, *, never_empty: bool) -> Generator[Taken, None, None]:
        """Yield the batches of a portion; the threads end with it."""
        options, groups = self._options, self._source.groups
        wished = max(order.most_groups + 1, 2 * order.mix) if options.shuffle else 1 + order.mix
        places = min(wished, len(groups))
        blocks = self._take_blocks(places)
        ahead = ReadAhead(
            self._source,
            list(dict.fromkeys(field.name for column in self._columns for field in column.fields)),
            visits(order, part.stretches()),
            blocks,
            places=places,
            threads=options.threads,
            timeout_s=options.timeout_s,
            skip=options.on_error == "skip",
            stats=self._stats,
        )
        try:
            yield from take_batches(ahead, order, blocks, part.sizes(), never_empty=never_empty)
        finally:
            if ahead.close():  # else a thread writes there for a moment longer
                self._spare = (places, blocks)  # memory that was used before is quicker than new one

    def _take_blocks(self, places: int) -> Blocks:
        spare, self._spare = self._spare, None
        if spare is not None and spare[0] == places:
            return spare[1]
        columns = self.columns
        if self._options.to == "arrow":
            return ArrowBlocks(columns, places)
        rows = max(group.rows for group in self._source.groups)
        return NumpyBlocks(columns, places, rows, pad=self._options.ragged == "pad")

    def _widened(self, column: Column) -> Column:
        name = column.fields[0].name
        for group in range(len(self._source.groups)):
            width = first_length(self._source.read(group, [name])[name])
            if width is not None:
                return column.wide(width)
        return column.wide(0)

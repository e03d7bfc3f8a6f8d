"""Make of a reference's rows everything that is kept of them: a layout, a state, a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.rows.columns import choose_columns
from cargobike.monitoring.rows.pool import MOST_ROWS, Pool
from cargobike.monitoring.rows.reading import opened, sample_of, tables_of
from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.learning import bandwidth_of, learn_layout
from cargobike.monitoring.states.state import State
from cargobike.monitoring.states.summing import Summing

LEARNED_FROM: Final = 100_000
"""How many rows bins and categories are learned from, at most; they are drawn at random from all."""
LEAST_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Made:
    """What is kept of the rows of a reference."""

    summing: Summing
    state: State
    pool: Pool

    @property
    def layout(self) -> Layout:
        """What states count."""
        return self.summing.layout


def make(given: Any, columns: Sequence[str] | None, seed: int) -> Made:
    """Read a reference, and return what is kept of it.

    Args:
        given: A name, path or URL, a frame, a table.
        columns: The columns to judge; all that can be judged if not given.
        seed: What is random is drawn from it.

    Raises:
        InvalidInputError: If it cannot be read, has too few rows or no columns that can be judged.
        NotFoundError: If there is no such file or table.
    """
    random = np.random.default_rng([seed, 0x5E])
    with opened(given, "reference") as source:
        numbers, categories, skipped = choose_columns(source.schema, columns)
        if source.num_rows < LEAST_ROWS:
            raise InvalidInputError(
                f"The reference has {source.num_rows} rows; what is usual can be learned from {LEAST_ROWS} on."
            )
        names = [*numbers, *categories]
        sample = sample_of(source, names, LEARNED_FROM, random)
        layout = msgspec.structs.replace(learn_layout(sample, names, seed), skipped=skipped)
        chosen = np.sort(random.choice(sample.num_rows, min(MOST_ROWS, sample.num_rows), replace=False))
        encoder = Summing(layout).encoder
        rows = sample.take(chosen)
        pool = Pool.of(list(encoder.pieces(rows, encoder.texts(rows))))
        bandwidth = bandwidth_of(pool.numbers.astype(np.float32), pool.codes, seed)
        summing = Summing(msgspec.structs.replace(layout, bandwidth=bandwidth))
        state = State.empty(summing.layout)
        # A sample of all rows is in memory already; else they are read once more.
        for table in [sample] if sample.num_rows == source.num_rows else tables_of(source, names):
            summing.add(state, table)
    return Made(summing, state, pool)

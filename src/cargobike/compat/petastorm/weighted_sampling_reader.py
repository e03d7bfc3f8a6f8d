"""Several readers as one: each row comes from one of them, drawn by weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError


class WeightedSamplingReader:
    """Rows of several readers; it ends as soon as one of them does.

    Which one comes next follows from the seed of the first reader.

    Args:
        readers: At least two, with the same fields.
        probabilities: How often each is drawn; their sum need not be 1.

    Raises:
        InvalidInputError: If they do not fit together; all mistakes at once.
    """

    def __init__(self, readers: Sequence[Any], probabilities: Sequence[float]) -> None:
        notice("petastorm.weighted_sampling_reader.WeightedSamplingReader")
        mistakes = []
        if len(readers) <= 1:
            mistakes.append(f"Two or more readers must be specified. Got {len(readers)}.")
        if len(readers) != len(probabilities):
            mistakes.append("readers and probabilities are expected to be lists of the same length.")
        if any(weight < 0 for weight in probabilities) or not sum(probabilities):
            mistakes.append(f"probabilities={list(probabilities)!r} must be 0 or more, and not all 0.")
        for other in readers[1:]:
            first = readers[0]
            if first.batched_output != other.batched_output:
                mistakes.append("All readers should have the same value of batched_output.")
            if set(first.schema.fields) != set(other.schema.fields):
                mistakes.append("All readers should have the same schema.")
            if first.ngram != other.ngram:
                mistakes.append("All readers should have the same ngram spec.")
        if mistakes:
            raise InvalidInputError("These readers cannot be sampled together.", mistakes)
        self._readers = list(readers)
        self._ends = np.cumsum(np.asarray(probabilities, float) / sum(probabilities))
        seed = getattr(getattr(readers[0], "_options", None), "seed", None) or 0
        self._random = np.random.Generator(np.random.PCG64([seed, len(readers)]))
        self.batched_output = readers[0].batched_output
        self.ngram = readers[0].ngram
        self.schema = readers[0].schema
        self.num_epochs = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        drawn = int(np.searchsorted(self._ends, self._random.random(), side="right"))
        return next(self._readers[min(drawn, len(self._readers) - 1)])

    def next(self) -> Any:
        """Return the next row."""
        return next(self)

    @property
    def last_row_consumed(self) -> bool:
        """Whether one of the readers has no more rows."""
        return any(reader.last_row_consumed for reader in self._readers)

    def stop(self) -> None:
        """Stop all readers."""
        for reader in self._readers:
            reader.stop()

    def join(self) -> None:
        """Wait for the threads of all readers to end."""
        for reader in self._readers:
            reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

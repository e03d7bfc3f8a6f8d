"""The loader: batches of a source, in an order that can be repeated, from any point, by any number of ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import current
from cargobike.data.loading.columns import RAGGED_LISTS, Columns, Form, Ragged, resolve_columns
from cargobike.data.loading.forms import converter
from cargobike.data.loading.options import Options
from cargobike.data.loading.order import Order, usual_mix
from cargobike.data.loading.position import Position
from cargobike.data.loading.reading import Reading
from cargobike.data.loading.shares import Last, Sharing
from cargobike.data.loading.stats import Stats
from cargobike.data.loading.steps import Portion
from cargobike.data.loading.taking import Taken
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.source import Source

if TYPE_CHECKING:
    from cargobike.data.loading.frameworks.torch import TorchDataset


class Loader:
    """Batches of a table, for one rank.

    Iterating yields one epoch, from wherever the loader is; iterating again yields the next one. A batch is a dict of
    arrays that belong to the user. The order of an epoch depends on seed, epoch and the source alone; ranks together
    see every row once and take the same number of steps.

    Args:
        source: What to read: a path, glob, folder or address, a table that was written, a DataFrame, an Arrow table, a
            dict of arrays, or a `Source`.
        batch_size: How many rows a batch has.
        columns: Names, or a dict from the name in a batch to a name or to several names of numbers, which are stacked
            into a matrix; all by default.
        shuffle: Whether rows come in a new random order in each epoch.
        seed: What that order is drawn from.
        to: What arrays are: `"numpy"`, `"torch"`, `"tensorflow"`, `"jax"`, or `"arrow"` for record batches.
        transform: Called with each batch of NumPy arrays; what it returns is handed out, as `to` says.
        ragged: For lists of different lengths: `"error"`, `"pad"` (with zeros, to the longest of the batch) or
            `"list"` (an array of arrays).
        nulls: For nulls: `"error"`, `"nan"` (whole numbers then become floats), a value, or one of these by column.
        last: What becomes of rows that fill no batch: `"keep"` a smaller last batch, `"drop"` them, or `"pad"` the
            last batch with its own rows.
        on_error: `"raise"`, or `"skip"` rows that cannot be read; they are counted in `stats` and `state_dict()`.
        rank: Which rank this is; inside a gang it is known.
        world_size: How many ranks there are.
        mix: How many groups of rows are mixed by a shuffle: more mix better, and need more memory.
        threads: How many decode ahead.
        timeout_s: After how long without an answer of the storage to give up.

    Raises:
        InvalidInputError: If something given cannot be used; all mistakes at once.
        NotFoundError: If there is no such file.

    Example:
        >>> loader = Loader({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}, batch_size=2)
        >>> [batch["x"].tolist() for batch in loader]
        [[1.0, 2.0], [3.0]]
    """

    def __init__(
        self,
        source: object,
        batch_size: int = 1024,
        *,
        columns: Columns = None,
        shuffle: bool = False,
        seed: int = 0,
        to: Form = "numpy",
        transform: Callable[[Any], Any] | None = None,
        ragged: Ragged = "error",
        nulls: Any = "error",
        last: Last = "keep",
        on_error: str = "raise",
        rank: int | None = None,
        world_size: int | None = None,
        mix: int | None = None,
        threads: int = 2,
        timeout_s: float = 600.0,
    ) -> None:
        options = Options(
            batch_size=batch_size,
            columns=columns,
            shuffle=shuffle,
            seed=seed,
            to=to,
            transform=transform,
            ragged=ragged,
            nulls=nulls,
            last=last,
            on_error=on_error,
            mix=mix,
            threads=threads,
            timeout_s=timeout_s,
        )
        self._set_up(open_source(source, on_error=on_error), options, rank, world_size)

    def _set_up(self, source: Source, options: Options, rank: int | None, world_size: int | None) -> None:
        options.check()
        if (rank is None) != (world_size is None):
            raise InvalidInputError(
                f"rank={rank!r} and world_size={world_size!r} were given; give both or none of them."
            )
        member = current() if rank is None else None
        self.rank: int = member.rank if member is not None else rank or 0
        self.world_size: int = member.world_size if member is not None else world_size or 0
        self.options = options
        self.source = source
        self.stats = Stats()
        if source.skips is not None:
            for skip in source.skips.first:
                self.stats.count_skipped(skip.place, 1, skip.reason)
            self.stats.skipped_rows = source.skips.count
        columns = resolve_columns(
            source.schema,
            options.columns,
            to=options.to if options.transform is None or options.to == "arrow" else "numpy",
            ragged=options.ragged,
            nulls=options.nulls,
        )
        self._sharing = Sharing(self.world_size, options.batch_size, options.last)
        self._check_rows()
        mix = options.mix or usual_mix([group.size_bytes for group in source.groups])
        self._position = Position(source, self._sharing, self.rank, shuffle=options.shuffle, seed=options.seed, mix=mix)
        self._names = [column.name for column in columns]
        self._reading = Reading(source, columns, options, self.stats)

    def _check_rows(self) -> None:
        name, rows, ranks = self.source.name, self.source.num_rows, self.world_size
        if not 0 <= self.rank < ranks:
            raise InvalidInputError(f"rank={self.rank} was given; with world_size={ranks} it is from 0 to {ranks - 1}.")
        if not rows:
            raise InvalidInputError(f"{name} has no rows.")
        if rows < ranks:
            raise InvalidInputError(
                f"{name} has {rows:,} rows for {ranks:,} ranks; take at most as many ranks as rows."
            )
        if not self._sharing.steps(rows):
            least = ranks * self.options.batch_size
            raise InvalidInputError(
                f"{name} has {rows:,} rows, fewer than the {least:,} of one batch for each rank, and last='drop' "
                "leaves them all out. Take a smaller batch_size, or last='keep'."
            )

    def __len__(self) -> int:
        """Return how many batches a whole epoch has."""
        return self._sharing.steps(self._position.rows)

    @property
    def batch_size(self) -> int:
        """How many rows a batch has."""
        return self.options.batch_size

    @property
    def epoch(self) -> int:
        """Which epoch the next batch belongs to, from 0."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        if epoch < 0:
            raise InvalidInputError(f"set_epoch({epoch!r}): give a whole number, at least 0.")
        self._position.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is, after the batch that was handed out last: plain data, the same for all ranks."""
        return self._position.state(self.stats.skipped_rows)

    def load_state_dict(self, state: object) -> None:
        """Go where a loader was, which may have had another world size or batch size.

        Seed and `mix` are taken from the state, since the order depends on them.

        Raises:
            InvalidInputError: If it is the state of a loader of something else.
        """
        self.stats.skipped_rows = self._position.load(state).skipped

    def __iter__(self) -> Iterator[Any]:
        return self._iterate()

    def as_torch(self) -> TorchDataset:
        """Return an `IterableDataset` of torch; give it to a `DataLoader` with `batch_size=None`."""
        from cargobike.data.loading.frameworks.torch import TorchDataset  # noqa: PLC0415 - a second to import

        return TorchDataset(self)

    def as_keras(self, x: str | list[str] | None = None, y: str | None = None, weights: str | None = None) -> Any:
        """Return what `keras.Model.fit` takes: pairs of inputs, targets and weights, by their names in a batch.

        Args:
            x: The input, or several, which become a dict; without it batches are given as they are.
            y: The target.
            weights: The weight of each row.
        """
        from cargobike.data.loading.frameworks import keras  # noqa: PLC0415 - seconds to import

        return keras.as_dataset(self, x, y, weights)

    def as_tf_dataset(self) -> Any:
        """Return a `tf.data.Dataset` of batches, with their types and shapes."""
        from cargobike.data.loading.frameworks import tensorflow  # noqa: PLC0415 - seconds to import

        return tensorflow.as_dataset(self)

    def batch_spec(self) -> dict[str, tuple[np.dtype[Any], tuple[int | None, ...]]]:
        """Return type and shape of one row of each array; `None` where the length differs between batches."""
        return {
            column.name: (
                column.dtype if self.options.ragged == "pad" else column.stored,
                (None,) if column.kind == RAGGED_LISTS and self.options.ragged == "pad" else column.shape,
            )
            for column in self._reading.columns
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes this loader again in another process: how to open the source, and where it is."""
        return {
            "source": self.source.spec(),
            "options": self.options,
            "ranks": (self.rank, self.world_size),
            "position": self.state_dict(),
            "worker": self._position.worker,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Loader._set_up(self, open_again(state["source"]), state["options"], *state["ranks"])
        self.load_state_dict(state["position"])
        self._position.worker = state["worker"]

    def for_worker(self, number: int, workers: int) -> Self:
        """Return a loader for one of several processes that divide the steps of this rank among them."""
        other = self.for_rank(self.rank, self.world_size)
        other._position.worker = (number, workers)
        return other

    def for_rank(self, rank: int, world_size: int) -> Self:
        """Return a loader of the same source with the same options and position, for another rank."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        Loader._set_up(other, self.source, self.options, rank, world_size)
        other.load_state_dict(self.state_dict())
        return other

    @property
    def columns(self) -> list[str]:
        """The names of the arrays in a batch."""
        return self._names

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of the source."""
        return self.source.schema

    def _iterate(self) -> Iterator[Any]:
        convert = converter(self.options.to)
        transform = self.options.transform
        self.stats.begin()
        try:
            for batch in self._batches():
                made = batch if transform is None else transform(batch)
                yield made if convert is None else convert(made)
        finally:
            self.stats.end()

    def _batches(self) -> Iterator[Any]:
        """Yield the rest of this epoch; after each batch the position is behind it."""
        position = self._position
        part = position.begin()
        moves, epoch = position.moves, position.epoch
        batches = self._read(part, epoch)
        owner = os.getpid()
        try:
            for done in range(part.steps):
                if os.getpid() != owner:  # the threads were not copied with this process
                    owner, batches = os.getpid(), self._read(part.after(done), epoch)
                batch, rows, repeated = next(batches)
                position.step()
                self._count(rows, repeated)
                if batch is not None:
                    yield batch
                if position.moves != moves:
                    raise InvalidInputError(
                        "This loader was iterated anew or sent elsewhere in the meantime; it has one position, so only "
                        "the newest iterator goes on. Make two loaders to read twice at once."
                    )
        finally:
            batches.close()

    def _read(self, part: Portion, epoch: int) -> Generator[Taken, None, None]:
        position = self._position
        order = Order(
            [group.rows for group in self.source.groups],
            shuffle=self.options.shuffle,
            seed=position.seed,
            epoch=epoch,
            mix=position.mix,
        )
        return self._reading.read(part, order, never_empty=self.world_size > 1)

    def _count(self, rows: int, repeated: int) -> None:
        self.stats.rows += rows
        self.stats.batches += 1
        self.stats.padded_rows += repeated

"""The loader: batches of a source, in an order that can be repeated, from any point, by any number of ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from typing import Any, Self

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.feeding import Consumed, Follower
from cargobike.core.running.member import current
from cargobike.data.loading.ahead import ReadAhead
from cargobike.data.loading.blocks import ArrowBlocks, Blocks, NumpyBlocks
from cargobike.data.loading.columns import Column, Columns, Form, Ragged, resolve_columns
from cargobike.data.loading.decoding import first_length
from cargobike.data.loading.forms import converter
from cargobike.data.loading.options import Options
from cargobike.data.loading.order import Order, usual_mix
from cargobike.data.loading.shares import Last, Sharing, left_after
from cargobike.data.loading.state import VERSION, LoaderState, StageState, read_state
from cargobike.data.loading.stats import Stats
from cargobike.data.loading.steps import Portion
from cargobike.data.loading.taking import Taken, take_batches
from cargobike.data.loading.visits import visits
from cargobike.data.sources.opening import open_source
from cargobike.data.sources.source import Source


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
        self._set_up(open_source(source), options, rank, world_size)

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
        self._columns = resolve_columns(
            source.schema,
            options.columns,
            to=options.to if options.transform is None or options.to == "arrow" else "numpy",
            ragged=options.ragged,
            nulls=options.nulls,
        )
        self._rows = source.num_rows
        self._mix = options.mix or usual_mix([group.size_bytes for group in source.groups])
        self._seed = options.seed
        self._sharing = Sharing(self.world_size, options.batch_size, options.last)
        self._check_rows()
        self._epoch = 0
        self._stages: list[StageState] = []
        self._spare: tuple[int, Blocks] | None = None
        self._iteration = 0
        self._follower: Follower | None = None

    def _check_rows(self) -> None:
        name, rows, ranks = self.source.name, self._rows, self.world_size
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
        return self._sharing.steps(self._rows)

    @property
    def batch_size(self) -> int:
        """How many rows a batch has."""
        return self.options.batch_size

    @property
    def epoch(self) -> int:
        """Which epoch the next batch belongs to, from 0."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        if epoch < 0:
            raise InvalidInputError(f"set_epoch({epoch!r}): give a whole number, at least 0.")
        self._epoch = epoch
        self._stages = []
        self._iteration += 1

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is, after the batch that was handed out last: plain data, the same for all ranks."""
        return LoaderState(
            version=VERSION,
            source=self.source.fingerprint,
            rows=self._rows,
            shuffle=self.options.shuffle,
            seed=self._seed,
            mix=self._mix,
            epoch=self._epoch,
            stages=[stage for stage in self._stages if stage.steps],
            skipped=self.stats.skipped_rows,
        ).to_dict()

    def load_state_dict(self, state: object) -> None:
        """Go where a loader was, which may have had another world size or batch size.

        Seed and `mix` are taken from the state, since the order depends on them.

        Raises:
            InvalidInputError: If it is the state of a loader of something else.
        """
        known = read_state(state)
        mistakes = []
        if known.source != self.source.fingerprint or known.rows != self._rows:
            mistakes.append(
                f"It belongs to another source or to another version of it ({known.rows:,} rows, fingerprint "
                f"{known.source}); {self.source.name} has {self._rows:,} rows, fingerprint {self.source.fingerprint}."
            )
        if known.shuffle != self.options.shuffle:
            mistakes.append(f"It was made with shuffle={known.shuffle}.")
        if mistakes:
            raise InvalidInputError("This state does not fit the loader.", mistakes)
        self._epoch, self._seed, self._mix = known.epoch, known.seed, known.mix
        self._stages = list(known.stages)
        self._iteration += 1
        self.stats.skipped_rows = known.skipped

    def __iter__(self) -> Iterator[Any]:
        return self._iterate()

    def follow(self, follower: Follower) -> None:
        """Tell a trial from now on what is drawn."""
        self._follower = follower

    def consumed(self) -> Consumed:
        """Return what was drawn in this process."""
        return Consumed(self.stats.rows, self.stats.waited_s)

    def for_rank(self, rank: int, world_size: int) -> Self:
        """Return a loader of the same source with the same options and position, for another rank."""
        other = type(self).__new__(type(self))
        Loader._set_up(other, self.source, self.options, rank, world_size)
        other.load_state_dict(self.state_dict())
        return other

    @property
    def columns(self) -> list[str]:
        """The names of the arrays in a batch."""
        return [column.name for column in self._columns]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of the source."""
        return self.source.schema

    def _iterate(self) -> Iterator[Any]:
        convert = converter(self.options.to)
        transform = self.options.transform
        if self._follower is not None:
            self._follower.begins()
        self.stats.begin()
        try:
            for batch in self._batches():
                made = batch if transform is None else transform(batch)
                yield made if convert is None else convert(made)
        finally:
            self.stats.end()

    def _batches(self) -> Iterator[Any]:
        """Yield the rest of this epoch; after each batch the position is behind it."""
        self._iteration += 1
        iteration, epoch, part = self._iteration, self._epoch, self._portion()
        batches = self._read(part)
        owner = os.getpid()
        done = 0
        try:
            while done < part.steps:
                if os.getpid() != owner:  # the threads were not copied with this process
                    owner, batches = os.getpid(), self._read(part.after(done))
                batch, rows, repeated = next(batches)
                done += 1
                self._count(rows, repeated)
                if batch is not None:
                    yield batch
                if self._iteration != iteration:
                    raise InvalidInputError(
                        "This loader was iterated anew or sent elsewhere in the meantime; its position is one, so only "
                        "the newest iterator goes on. Make two loaders to read twice at once."
                    )
            self.set_epoch(epoch + 1)
        finally:
            batches.close()

    def _portion(self) -> Portion:
        """Return what this rank has still to read in this epoch, and begin a stage if rows are shared anew."""
        stages = self._stages
        sharing = self._sharing
        if not stages or stages[-1].stage().sharing != sharing:
            stages.append(
                StageState(world_size=sharing.world_size, batch_size=sharing.batch_size, last=sharing.last, steps=0)
            )
        before = [stage.stage() for stage in stages]
        left = left_after(self._rows, before[:-1])
        return Portion(left, sharing, self.rank, before[-1].steps)

    def _count(self, rows: int, repeated: int) -> None:
        last = self._stages[-1]
        self._stages[-1] = StageState(
            world_size=last.world_size, batch_size=last.batch_size, last=last.last, steps=last.steps + 1
        )
        self.stats.rows += rows
        self.stats.batches += 1
        self.stats.padded_rows += repeated
        if self._follower is not None:
            self._follower.drew()

    def _read(self, part: Portion) -> Generator[Taken, None, None]:
        """Start to read a portion."""
        options, groups = self.options, self.source.groups
        rows = [group.rows for group in groups]
        order = Order(rows, shuffle=options.shuffle, seed=self._seed, epoch=self._epoch, mix=self._mix)
        self._find_widths()
        wished = max(order.most_groups + 1, 2 * self._mix) if options.shuffle else 1 + self._mix
        places = min(wished, len(groups))
        blocks = self._take_blocks(places, max(rows))
        ahead = ReadAhead(
            self.source,
            list(dict.fromkeys(field.name for column in self._columns for field in column.fields)),
            visits(order, part.stretches()),
            blocks,
            places=places,
            threads=options.threads,
            timeout_s=options.timeout_s,
            skip=options.on_error == "skip",
            stats=self.stats,
        )
        try:
            yield from take_batches(ahead, order, blocks, part.sizes(), never_empty=self.world_size > 1)
        finally:
            self._spare = (places, blocks)  # memory that was used before is quicker than new one

    def _take_blocks(self, places: int, rows: int) -> Blocks:
        spare, self._spare = self._spare, None
        if spare is not None and spare[0] == places:
            return spare[1]
        if self.options.to == "arrow":
            return ArrowBlocks(self._columns, places)
        return NumpyBlocks(self._columns, places, rows, pad=self.options.ragged == "pad")

    def _find_widths(self) -> None:
        """Learn how many values lists have that are to have all the same number, from the first one in the source."""
        self._columns = [column if column.shape != (-1,) else self._widened(column) for column in self._columns]

    def _widened(self, column: Column) -> Column:
        name = column.fields[0].name
        for group in range(len(self.source.groups)):
            width = first_length(self.source.read(group, [name])[name])
            if width is not None:
                return column.wide(width)
        return column.wide(0)

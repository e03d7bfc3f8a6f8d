"""Readers: rows as namedtuples (`make_reader`), or row groups as namedtuples of arrays (`make_batch_reader`)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.errors import (
    NoDataAvailableError,
    PetastormMetadataError,
    StoppedError,
    UnfinishedError,
)
from cargobike.compat.petastorm.ngram import NGram
from cargobike.compat.petastorm.reading.making import Made, maker, picking_of
from cargobike.compat.petastorm.reading.options import ReaderOptions
from cargobike.compat.petastorm.reading.planning import (
    Shard,
    even_share,
    groups_kept,
    in_parts,
    shard_of,
    whole_groups,
)
from cargobike.compat.petastorm.selectors import groups_selected
from cargobike.compat.petastorm.stored.metadata import read_metadata, schema_in
from cargobike.compat.petastorm.stored.places import open_places, places_of
from cargobike.compat.petastorm.transform import transform_schema
from cargobike.compat.petastorm.unischema import Unischema
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.loading.groups import GroupReader
from cargobike.data.sources.cached import CachedSource
from cargobike.data.sources.source import Source
from cargobike.storage import open_storage


def make_reader(
    dataset_url: Any,
    schema_fields: Any = None,
    reader_pool_type: str = "thread",
    workers_count: int = 10,
    pyarrow_serialize: bool = False,
    results_queue_size: int = 50,
    seed: int | None = None,
    shuffle_rows: bool = False,
    shuffle_row_groups: bool = True,
    shuffle_row_drop_partitions: int = 1,
    predicate: Any = None,
    rowgroup_selector: Any = None,
    num_epochs: int | None = 1,
    cur_shard: int | None = None,
    shard_count: int | None = None,
    shard_seed: int | None = None,
    cache_type: str | None = "null",
    cache_location: str | None = None,
    cache_size_limit: int | None = None,
    cache_row_size_estimate: int | None = None,
    cache_extra_settings: dict[str, Any] | None = None,
    hdfs_driver: str = "libhdfs3",
    transform_spec: Any = None,
    filters: Any = None,
    storage_options: dict[str, Any] | None = None,
    zmq_copy_buffers: bool = True,
    filesystem: Any = None,
    convert_early_to_numpy: bool = False,
) -> Reader:
    """Read a data set that has a schema of petastorm's, row by row.

    Args:
        dataset_url: The address of its folder, or addresses of files: `file://`, `s3://`, `hdfs://`, or a path.
        schema_fields: Fields and regular expressions of whole names, an `NGram`, or `None` for all fields.
        reader_pool_type: `"thread"`, `"process"` (threads too: reading happens outside the interpreter's lock) or
            `"dummy"` (one thread).
        workers_count: How many threads read ahead, at most.
        pyarrow_serialize: Without effect.
        results_queue_size: Without effect: two row groups more than there are threads wait.
        seed: What all orders are drawn from; `None` is 0.
        shuffle_rows: Whether rows of a row group are shuffled.
        shuffle_row_groups: Whether row groups are.
        shuffle_row_drop_partitions: Into how many parts row groups are cut before they are shuffled.
        predicate: Which rows to read.
        rowgroup_selector: Which row groups to read, by an index that was built before.
        num_epochs: How often to read all; `None` for no end.
        cur_shard: Which shard to read: every `shard_count`-th row group.
        shard_count: How many shards there are.
        shard_seed: Without effect: which row groups belong to a shard depends on no seed.
        cache_type: `"null"`, or `"local-disk"` to keep row groups on this machine once they were read.
        cache_location: The folder of the cache.
        cache_size_limit: How many bytes it may hold.
        cache_row_size_estimate: Without effect.
        cache_extra_settings: Without effect.
        hdfs_driver: Without effect.
        transform_spec: What to make of each row, a dict.
        filters: What rows have to pass, as Arrow has it: `[("year", ">", 2020)]`.
        storage_options: What to give to fsspec.
        zmq_copy_buffers: Without effect.
        filesystem: A file system of Arrow's or fsspec's to use.
        convert_early_to_numpy: Without effect: it always is.

    Raises:
        PetastormMetadataError: If there is no schema; it is a `RuntimeError`.
        NoDataAvailableError: If there are fewer row groups than shards.
        InvalidInputError: If something given cannot be used; it is a `ValueError`.
        UntrustedError: If the schema's pickle names anything that no schema needs.
    """
    notice("petastorm.make_reader")
    return Reader(dataset_url, _options(locals()), batched=False)


def make_batch_reader(
    dataset_url_or_urls: Any,
    schema_fields: Any = None,
    reader_pool_type: str = "thread",
    workers_count: int = 10,
    results_queue_size: int = 50,
    seed: int | None = None,
    shuffle_rows: bool = False,
    shuffle_row_groups: bool = True,
    shuffle_row_drop_partitions: int = 1,
    predicate: Any = None,
    rowgroup_selector: Any = None,
    num_epochs: int | None = 1,
    cur_shard: int | None = None,
    shard_count: int | None = None,
    shard_seed: int | None = None,
    cache_type: str | None = "null",
    cache_location: str | None = None,
    cache_size_limit: int | None = None,
    cache_row_size_estimate: int | None = None,
    cache_extra_settings: dict[str, Any] | None = None,
    hdfs_driver: str = "libhdfs3",
    transform_spec: Any = None,
    filters: Any = None,
    storage_options: dict[str, Any] | None = None,
    zmq_copy_buffers: bool = True,
    filesystem: Any = None,
    convert_early_to_numpy: bool = False,
) -> Reader:
    """Read Parquet files, a row group at a time, as a namedtuple of arrays; see `make_reader` for the arguments.

    Columns are numbers, text, times and lists of numbers. A predicate and a `TransformSpec` take a DataFrame of pandas
    for each row group.
    """
    notice("petastorm.make_batch_reader")
    return Reader(dataset_url_or_urls, _options(locals()), batched=True)


def _options(given: dict[str, Any]) -> ReaderOptions:
    names = ReaderOptions.__dataclass_fields__
    options = ReaderOptions(**{name: value for name, value in given.items() if name in names})
    options.check()
    return options


class Reader:
    """Rows of a data set, or its row groups.

    Args:
        dataset_url: Where it is.
        options: How to read it.
        batched: Whether row groups are handed out as arrays.

    Attributes:
        schema: The fields of what is handed out.
        ngram: The windows that are formed, if any.
        num_epochs: How often all is read.
        last_row_consumed: Whether all was taken.
        stopped: Whether it was stopped.
    """

    def __init__(self, dataset_url: Any, options: ReaderOptions, *, batched: bool) -> None:
        places = places_of(dataset_url, options.filesystem, options.storage_options)
        metadata = read_metadata(places[0])
        self._source = open_places(places)
        self.is_batched_reader = batched
        self.ngram: NGram | None = options.schema_fields if isinstance(options.schema_fields, NGram) else None
        stored = self._stored_schema(metadata, places[0].shown, options)
        self.schema: Unischema = stored
        if options.transform_spec is not None:
            self.schema = transform_schema(stored, options.transform_spec)
        self._groups, decided = groups_kept(self._source, stored, options.predicate, options.filters)
        self._groups = groups_selected(options.rowgroup_selector, metadata, self._source, self._groups)
        self._shard: Shard | None = shard_of(options.cur_shard, options.shard_count, len(self._source.groups))
        predicate = None if decided else options.predicate
        self._picking = picking_of(predicate, options.filters, self._source.partitions, stored, batched=batched)
        pieces = whole_groups(self._source, self._groups, self._shard)
        if not pieces:
            warnings.warn("No matching data is available after predicates, selectors and shards.", stacklevel=3)
        self._options = options
        self._read_from: Source = self._source
        if options.cache_type == "local-disk":
            storage = open_storage(str(options.cache_location))
            self._read_from = CachedSource(self._source, storage, options.cache_size_limit or 0)
        self._stored = stored
        self.num_epochs = options.num_epochs
        self.last_row_consumed = False
        self.stopped = False
        self._epoch = 0
        self._set_pieces(pieces)

    def _stored_schema(self, metadata: dict[bytes, bytes], shown: str, options: ReaderOptions) -> Unischema:
        """Return the fields that are read."""
        if self.is_batched_reader:
            schema = Unischema.from_arrow_schema(self._source.schema)
            if self.ngram is not None:
                raise InvalidInputError("make_batch_reader forms no windows of rows; take make_reader for an NGram.")
        else:
            schema = schema_in(metadata, shown)
            missing = [name for name in schema.fields if name not in self._source.schema.names]
            if missing:
                raise PetastormMetadataError(
                    f"The files of {shown} lack fields of the schema: {', '.join(missing)}. Was it written partly?"
                )
        fields = options.schema_fields
        if self.ngram is not None:
            self.ngram.resolve_regex_field_names(schema)
            names = self.ngram.get_field_names_at_all_timesteps()
            return schema.create_schema_view([schema.fields[name] for name in names])
        if fields is None:
            return schema
        given = list(fields)
        view = schema.create_schema_view(given)
        if not view.fields:
            shown_given = ", ".join(str(each[0] if isinstance(each, tuple) else each) for each in given)
            raise StoppedError(
                f"No fields matching the criteria {shown_given!r} were found in {shown}; there are "
                f"{', '.join(schema.fields)}.{nearest(shown_given, schema.fields)}"
            )
        return view

    def _set_pieces(self, pieces: Any) -> None:
        options = self._options
        overlap = 0 if self.ngram is None else self.ngram.length - 1
        self._reading: GroupReader[Made] = GroupReader(
            self._read_from,
            list(self._stored.fields),
            maker(self._stored, self.schema, options.transform_spec, self.ngram, batched=self.is_batched_reader),
            pieces=in_parts(pieces, options.shuffle_row_drop_partitions, overlap),
            shuffle_groups=options.shuffle_row_groups,
            shuffle_rows=options.shuffle_rows and self.ngram is None,
            seed=options.seed or 0,
            picking=self._picking,
            threads=options.threads,
        )
        self._groups_left = self._read()
        self._rows: Iterator[Any] = iter(())

    def _read(self) -> Iterator[Made]:
        """Yield what was made of each row group, epoch after epoch, without those of which no row is wanted."""
        rounds = itertools.count() if self.num_epochs is None else range(self.num_epochs)
        for _ in rounds:
            taken = 0
            epoch, self._epoch = self._epoch, self._epoch + 1
            for made in self._reading.read(epoch):
                taken += made.rows
                if made.rows:
                    yield made
            if not taken and self.num_epochs is None:
                raise NoDataAvailableError(
                    f"No row of {self._source.name} is wanted, so num_epochs=None would read for ever. "
                    "Look at the predicate, the filters and the selector."
                )

    def next_columns(self) -> Made | None:
        """Return the next row group, decoded, for loaders that take whole ones; `None` at the end."""
        self._check_running()
        made = next(self._groups_left, None)
        if made is None:
            self.last_row_consumed = True
        return made

    def share_evenly(self) -> tuple[Shard, int] | None:
        """Have shards differ by at most one row from now on, if that can be known; returns the shard, and all rows.

        Ranks that train together wait for each other at each step, so they have to take equally many.
        """
        if self._shard is None or self._epoch or self._picking is not None or self.ngram is not None:
            return None
        if self._options.transform_spec is not None and self.is_batched_reader:
            return None  # it may add and drop rows
        self._set_pieces(even_share(self._source, self._groups, self._shard))
        return self._shard, sum(self._source.groups[group].rows for group in self._groups)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        self._check_running()
        row = next(self._rows, None)
        while row is None:
            made = next(self._groups_left, None)
            if made is None:
                self.last_row_consumed = True
                raise StopIteration
            self._rows = self._rows_of(made)
            row = next(self._rows, None)
        return row

    def next(self) -> Any:
        """Return the next row."""
        return next(self)

    def _rows_of(self, made: Made) -> Iterator[Any]:
        if made.windows is not None:
            return iter(made.windows)
        row = self.schema._get_namedtuple()
        if self.is_batched_reader:
            return iter([row(**made.columns)])
        return map(row._make, zip(*(made.columns[name] for name in self.schema.fields), strict=True))

    def _check_running(self) -> None:
        if self.stopped:
            raise StoppedError(
                "Trying to read a sample after a reader created by make_reader/make_batch_reader has stopped. Take "
                "rows inside its `with` block, or make another reader."
            )

    @property
    def batched_output(self) -> bool:
        """Whether each item holds the arrays of a row group."""
        return self.is_batched_reader

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What was waited for so far, and how far the reader is."""
        stats = self._reading.stats
        return {
            "output_queue_size": 0,
            "waited_s": stats.waited_s,
            "epoch": self._epoch,
            "peak_bytes": stats.peak_bytes,
        }

    def reset(self) -> None:
        """Begin anew, once all was taken; the order is that of the next epochs.

        Raises:
            UnfinishedError: If not all was taken; it is a `NotImplementedError`.
        """
        if self.stopped:
            return
        if not self.last_row_consumed:
            raise UnfinishedError(
                "Currently do not support resetting a reader while in the middle of iteration: take all rows first, or "
                "make another reader."
            )
        self.last_row_consumed = False
        self._groups_left = self._read()

    def stop(self) -> None:
        """Stop reading; the threads end when they have finished what they are doing."""
        self.stopped = True
        close = getattr(self._groups_left, "close", None)
        if close is not None:
            close()

    def join(self) -> None:
        """Wait for the threads to end."""
        self._reading.join()
        self._source.close()

    def cleanup_cache(self) -> None:
        """Leave the cache as it is: the next reader uses it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()


def rows_in(columns: dict[str, Any]) -> int:
    """Return how many rows columns have."""
    return int(np.shape(next(iter(columns.values())))[0]) if columns else 0

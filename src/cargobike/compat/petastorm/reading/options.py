"""What `make_reader` and `make_batch_reader` were asked for, checked as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from cargobike.compat.petastorm.ngram import NGram
from cargobike.core.errors import InvalidInputError, nearest

POOLS: Final = ("thread", "process", "dummy")
CACHES: Final = ("null", "local-disk")


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """The arguments that both readers share; `make_reader` says what each means."""

    schema_fields: Any = None
    reader_pool_type: str = "thread"
    workers_count: int = 10
    seed: int | None = None
    shuffle_rows: bool = False
    shuffle_row_groups: bool = True
    shuffle_row_drop_partitions: int = 1
    predicate: Any = None
    rowgroup_selector: Any = None
    num_epochs: int | None = 1
    cur_shard: int | None = None
    shard_count: int | None = None
    cache_type: str | None = "null"
    cache_location: str | None = None
    cache_size_limit: int | None = None
    transform_spec: Any = None
    filters: Any = None
    storage_options: dict[str, Any] | None = None
    filesystem: Any = None

    def check(self) -> None:
        """Refuse what cannot be done.

        Raises:
            InvalidInputError: With all mistakes.
        """
        mistakes = []
        if self.reader_pool_type not in POOLS:
            near = nearest(str(self.reader_pool_type), POOLS)
            mistakes.append(f"Unknown reader_pool_type: {self.reader_pool_type!r}; give one of {POOLS}.{near}")
        if self.cache_type is not None and self.cache_type not in CACHES:
            near = nearest(str(self.cache_type), CACHES)
            mistakes.append(f"Unknown cache_type: {self.cache_type!r}; give one of {CACHES}.{near}")
        if self.cache_type == "local-disk":
            mistakes += self._mistakes_of_cache()
        if type(self.workers_count) is not int or self.workers_count < 1:
            mistakes.append(f"workers_count={self.workers_count!r}: give a whole number, at least 1.")
        if self.num_epochs is not None and (type(self.num_epochs) is not int or self.num_epochs < 1):
            mistakes.append(f"num_epochs={self.num_epochs!r}: give a whole number, at least 1, or None for no end.")
        if self.seed is not None and (type(self.seed) is not int or self.seed < 0):
            mistakes.append(f"seed={self.seed!r}: give a whole number, at least 0.")
        fields = self.schema_fields
        if fields is not None and (isinstance(fields, str) or not isinstance(fields, Iterable | NGram)):
            mistakes.append(
                "schema_fields: Fields must be either None, an iterable collection of Unischema fields and regular "
                f"expressions, or an NGram object; {fields!r:.80} was given."
            )
        if isinstance(fields, NGram) and not fields.timestamp_overlap and self.shuffle_row_drop_partitions != 1:
            mistakes.append("An NGram with timestamp_overlap=False needs shuffle_row_drop_partitions=1.")
        if mistakes:
            raise InvalidInputError("The reader cannot be made.", mistakes)

    def _mistakes_of_cache(self) -> list[str]:
        mistakes = []
        if not self.cache_location:
            mistakes.append("cache_type='local-disk' needs cache_location, a folder of this machine.")
        if type(self.cache_size_limit) is not int or self.cache_size_limit < 1:
            mistakes.append("cache_type='local-disk' needs cache_size_limit, a number of bytes.")
        if self.shuffle_row_drop_partitions != 1:
            mistakes.append("cache_type='local-disk' needs shuffle_row_drop_partitions=1.")
        return mistakes

    @property
    def threads(self) -> int:
        """How many threads read: as many as there were workers, and not many more than there are cores."""
        return 1 if self.reader_pool_type == "dummy" else min(self.workers_count, 2 * (os.cpu_count() or 1))

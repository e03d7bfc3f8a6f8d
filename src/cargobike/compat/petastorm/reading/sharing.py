"""Shards of a reader that feed ranks which wait for each other: equal numbers of batches, whatever the row groups."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.compat.petastorm.reading.planning import Shard
from cargobike.data.loading.shares import Sharing
from cargobike.data.loading.steps import Portion


def batch_sizes(rows: int, shard: Shard, batch_size: int) -> Iterator[int]:
    """Yield how many rows each batch of an epoch has in one shard; all shards have as many batches.

    Example:
        >>> [list(batch_sizes(11, Shard(number, 2), 5)) for number in (0, 1)]
        [[4, 1], [5, 1]]
    """
    sharing = Sharing(shard.count, batch_size)
    return (size for size, _ in Portion([(0, rows)], sharing, shard.number).sizes())

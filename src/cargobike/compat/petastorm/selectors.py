"""Which row groups to read, by indexes that `build_rowgroup_index` made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from cargobike.compat.petastorm.errors import PetastormMetadataError
from cargobike.compat.petastorm.stored.indexes import read_indexes
from cargobike.compat.petastorm.stored.known import PickleError
from cargobike.compat.petastorm.stored.metadata import ROWGROUPS_INDEX_KEY
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.sources.partitions import PartitionedSource


class RowGroupSelectorBase(ABC):
    """Says which indexes it needs, and which row groups to read."""

    @abstractmethod
    def get_index_names(self) -> list[str]:
        """Return the names of the indexes that are looked at."""

    @abstractmethod
    def select_row_groups(self, index_dict: Mapping[str, Any]) -> set[int]:
        """Return the positions of the row groups to read, from the indexes by name."""


class SingleIndexSelector(RowGroupSelectorBase):
    """Row groups that have one of some values.

    Args:
        index_name: Which index.
        values_list: The values.
    """

    def __init__(self, index_name: str, values_list: Sequence[Any]) -> None:
        self._index_name = index_name
        self._values_list = list(values_list)

    def get_index_names(self) -> list[str]:
        """Return the index's name."""
        return [self._index_name]

    def select_row_groups(self, index_dict: Mapping[str, Any]) -> set[int]:
        """Return the row groups that have one of the values."""
        indexer = index_dict[self._index_name]
        return {group for value in self._values_list for group in indexer.get_row_group_indexes(value)}


class _Several(RowGroupSelectorBase):
    def __init__(self, single_index_selectors: Sequence[RowGroupSelectorBase]) -> None:
        self._selectors = list(single_index_selectors)
        if not self._selectors:
            raise InvalidInputError("At least one selector has to be given.")

    def get_index_names(self) -> list[str]:
        """Return the names of all indexes."""
        return [name for selector in self._selectors for name in selector.get_index_names()]


class IntersectIndexSelector(_Several):
    """Row groups that all of some selectors choose."""

    def select_row_groups(self, index_dict: Mapping[str, Any]) -> set[int]:
        """Return the row groups that all choose."""
        return set.intersection(*(set(each.select_row_groups(index_dict)) for each in self._selectors))


class UnionIndexSelector(_Several):
    """Row groups that one of some selectors chooses."""

    def select_row_groups(self, index_dict: Mapping[str, Any]) -> set[int]:
        """Return the row groups that at least one chooses."""
        return set().union(*(each.select_row_groups(index_dict) for each in self._selectors))


def groups_selected(
    selector: Any, metadata: Mapping[bytes, bytes], source: PartitionedSource, groups: Sequence[int]
) -> list[int]:
    """Return those of some groups that a selector chooses; all if there is none.

    Raises:
        InvalidInputError: If there is no such index.
    """
    if selector is None:
        return list(groups)
    if not isinstance(selector, RowGroupSelectorBase):
        raise InvalidInputError("rowgroup_selector parameter is expected to be derived from RowGroupSelectorBase.")
    try:
        indexes = read_indexes(metadata.get(ROWGROUPS_INDEX_KEY))
    except PickleError as error:
        raise PetastormMetadataError(f"The index of {source.name} is broken. {error}") from None
    unknown = [name for name in selector.get_index_names() if name not in indexes]
    if unknown:
        raise InvalidInputError(
            f"Some of required indexes are not available in {source.name}, which has {sorted(indexes)}; make them with "
            "build_rowgroup_index.",
            [f"{name!r} is unknown.{nearest(str(name), indexes)}" for name in unknown],
        )
    chosen = set(selector.select_row_groups(indexes))
    return [group for group in groups if source.row_group(group).position in chosen]

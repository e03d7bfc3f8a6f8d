"""`hops.util`: grids, and how many workers there are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from cargobike.compat.hops.translating.arguments import lists_of
from cargobike.compat.hops.translating.place import Place
from cargobike.compat.noticing import formerly

__all__ = ["connect", "grid_params", "num_executors", "num_param_servers"]


@formerly("hops.util.grid_params")
def grid_params(dict: Mapping[str, Sequence[Any]]) -> Mapping[str, list[Any]]:
    """Return lists of equal length, row by row all combinations of the values.

    Example:
        >>> grid_params({"a": [1, 2], "b": [5, 6]})
        {'a': [1, 1, 2, 2], 'b': [5, 6, 5, 6]}
    """
    lists = lists_of(dict, "util.grid_params")
    columns = zip(*itertools.product(*lists.values()), strict=True)
    return {name: list(column) for name, column in zip(lists, columns, strict=True)}


@formerly("hops.util.num_executors")
def num_executors() -> int:
    """Return how many workers calls of `hops.experiment` have."""
    return Place().executors


@formerly("hops.util.num_param_servers")
def num_param_servers() -> int:
    """Return how many of the workers `hops.experiment.parameter_server` makes servers."""
    return Place().servers


def connect(*args: object, **kwargs: object) -> None:
    """Accept what a script says about a Hopsworks server; there is none to connect to."""

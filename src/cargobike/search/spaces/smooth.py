"""Which spaces suit a Gaussian process; told without NumPy, which a search may not have loaded yet."""

from __future__ import annotations

from cargobike.search.spaces.space import Searchspace

_MOST_PARAMETERS = 20


def is_smooth(space: Searchspace) -> bool:
    """Tell whether a space suits a Gaussian process: continuous numbers only, not too many, and no conditions."""
    parameters = space.parameters.values()
    are_smooth = all(parameter.count is None and not parameter.condition for parameter in parameters)
    return are_smooth and 0 < len(parameters) <= _MOST_PARAMETERS

"""Refuses wrong arguments of a space's methods in words that say what to give."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cargobike.core.errors import NotFoundError, SpaceError, nearest, nearest_names
from cargobike.core.values.numbers import describe


def check_generator(rng: object) -> None:
    """Refuse to draw with what is no generator of random numbers."""
    if not callable(getattr(rng, "random", None)):
        raise SpaceError(
            f"sample draws one set with a generator, such as space.sample(random.Random(5)); {describe(rng)} was "
            "given. For several sets: space.get_random_parameter_values(5)"
        )


def check_by_name(params: object) -> None:
    """Refuse parameters that are not given by name."""
    if not isinstance(params, Mapping):
        raise SpaceError(f"parameters must be a dict by name; {describe(params)} was given")


def check_vector(vector: Any, size: int) -> None:
    """Refuse a vector that is no place in a space of so many parameters."""
    if not hasattr(vector, "__len__") or isinstance(vector, str | bytes | Mapping):
        raise SpaceError(f"a vector must hold {size} numbers; {describe(vector)} was given")
    if len(vector) != size:
        raise SpaceError(f"the vector has {len(vector)} numbers, the space {size} parameters")
    try:
        has_hole = any(unit is not None and math.isnan(unit) for unit in vector)
    except TypeError:
        raise SpaceError(f"the vector {vector!r} must hold numbers, and None where there is no parameter") from None
    if has_hole:
        raise SpaceError(f"the vector {list(vector)!r} holds NaN, which is nowhere in a space")


def no_such_parameter(name: object, names: Iterable[str]) -> NotFoundError:
    """Return the error for a parameter that the space does not have."""
    there = list(names)
    words = f"The space has no parameter {name!r}; it has {', '.join(there) or 'none'}.{nearest(str(name), there)}"
    return NotFoundError(words, wanted=str(name), nearest=nearest_names(str(name), there))

"""Hypothesis strategies for search spaces, shared by the tests of this room."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from cargobike.search.spaces.space import Searchspace

names = st.sampled_from(["lr", "self", "add", "names", "sample", "weight-decay", "x y", "ü", "class", "specs"])
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
plain_scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | finite | st.text(string.printable, max_size=5)
plain_values = plain_scalars | st.tuples(plain_scalars, plain_scalars)


@st.composite
def doubles(draw: st.DrawFn) -> Any:
    scale = draw(st.sampled_from(["linear", "log", "reverse-log"]))
    if scale == "linear":
        low = draw(st.floats(-1e6, 1e6))
        high = low + draw(st.floats(1e-3, 1e6))
    elif draw(st.booleans()) and scale == "reverse-log":
        low = draw(st.floats(0, 0.9))
        high = draw(st.floats(low + 0.01, 0.9999))
    else:
        low = draw(st.floats(1e-9, 1e3))
        high = low * draw(st.floats(1.5, 1e6))
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["step"] = (high - low) / draw(st.integers(1, 50))
    if draw(st.booleans()):
        options["points"] = draw(st.integers(1, 5))
    return ("DOUBLE", [low, high], scale, options)


@st.composite
def integers(draw: st.DrawFn) -> Any:
    scale = draw(st.sampled_from(["linear", "log", "reverse-log"]))
    low = draw(st.integers(-(10**6), 10**6) if scale == "linear" else st.integers(1, 10**6))
    high = low + draw(st.integers(1, 10**9))
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["step"] = draw(st.integers(1, high - low))
    if draw(st.booleans()):
        options["points"] = draw(st.integers(1, 5))
    return ("INTEGER", [low, high], scale, options)


def _unique(values: list[Any]) -> list[Any]:
    seen: dict[str, Any] = {}
    for value in values:
        key = repr(value) if not isinstance(value, int | float) or isinstance(value, bool) else repr(float(value))
        seen.setdefault("0.0" if key == "-0.0" else key, value)
    return [value for value in seen.values() if not isinstance(value, tuple)] or [0]


discretes = st.lists(st.integers(-50, 50) | finite, min_size=1, max_size=5).map(
    lambda values: ("DISCRETE", _unique(values))
)
categoricals = st.lists(plain_scalars, min_size=1, max_size=5).map(lambda values: ("CATEGORICAL", _unique(values)))
small = st.integers(1, 4).map(lambda high: ("INTEGER", [0, high])) | categoricals | discretes


@st.composite
def spaces(draw: st.DrawFn, specs: Any = None, max_size: int = 6) -> Searchspace:
    """Spaces with conditions: each parameter may depend on one or two that were declared before it."""
    space = Searchspace()
    for name in draw(st.lists(names, max_size=max_size, unique=True)):
        spec = draw(specs if specs is not None else doubles() | integers() | small)
        parents = [parent for parent, p in space.parameters.items() if p.count is not None]
        when: dict[str, Any] = {}
        for parent in draw(st.lists(st.sampled_from(parents), max_size=2, unique=True)) if parents else []:
            count = space[parent].count or 1
            indices = draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2))
            when[parent] = [space[parent].at(index) for index in indices]
        options = spec[-1] if isinstance(spec[-1], dict) else {}
        rest = spec[:-1] if isinstance(spec[-1], dict) else spec
        space.add(name, (*rest, {**options, "when": when}) if when else spec)
    return space

"""Namedtuples of rows: the same class for the same names, since TensorFlow compares classes."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any


@functools.cache
def namedtuple_of(schema: str, names: tuple[str, ...]) -> Any:
    """Return the class of a schema's rows."""
    return namedtuple(f"{schema}_view", names)

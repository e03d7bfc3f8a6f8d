"""Search spaces, and the files that they are read from."""

from __future__ import annotations

from cargobike.search.spaces.formats import SpaceFile, read_space
from cargobike.search.spaces.space import Parameter, Searchspace

__all__ = ["Parameter", "Searchspace", "SpaceFile", "read_space"]

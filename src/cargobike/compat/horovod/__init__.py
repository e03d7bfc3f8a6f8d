"""The names of Horovod over our own calls."""

from __future__ import annotations

from cargobike.compat.horovod.runner import run

__all__ = ["run"]

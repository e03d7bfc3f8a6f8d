"""Maggy's random search, by the path that slides imported it from."""

from __future__ import annotations

from cargobike.compat.maggy.optimizer.randomsearch import RandomSearch

__all__ = ["RandomSearch"]

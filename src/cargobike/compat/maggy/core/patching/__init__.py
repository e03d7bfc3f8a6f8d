"""Maggy's loaders of `maggy.core.patching`."""

from __future__ import annotations

from cargobike.compat.maggy.core.patching.dataloader import MaggyDataLoader, MaggyPetastormDataLoader

__all__ = ["MaggyDataLoader", "MaggyPetastormDataLoader"]

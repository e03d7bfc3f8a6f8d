"""The door of models for other products: what `core/registering/modelling.py` asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cargobike.core.registering.modelling import Trained
from cargobike.models import packing
from cargobike.models.exchange.front import export_to, import_from
from cargobike.models.front import get
from cargobike.models.naming import check_name
from cargobike.models.recovering import made_by
from cargobike.models.registering import register
from cargobike.models.registering import register_packed as _register_packed
from cargobike.models.version import ModelVersion

__all__ = ["check_name", "export_to", "get", "import_from", "made_by", "pack", "register", "register_packed"]


def pack(folder: Path, name: str, model: Any = None, **said: Any) -> None:
    """Write a model and what is said about it into a folder of this machine, to be registered later."""
    packing.pack(folder, name, model, **said)


def register_packed(folder: Path, trained: Trained) -> ModelVersion:
    """Register what `pack` wrote; the same trial's model is registered once, however often this is called."""
    return _register_packed(folder, trained)

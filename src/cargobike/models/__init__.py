"""Keep models: versions that never change, aliases that move, gates before they do. The names below are public.

`register` keeps a model, `get` finds a version, `list` finds all, `best` the best by a metric. The modules of this room
are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.core.signatures import Field, Signature
    from cargobike.models.exchange.front import export_to, import_from
    from cargobike.models.flavours.flavour import Flavour, Given, Saved
    from cargobike.models.front import best, get, history, list, remove, remove_alias, retain
    from cargobike.models.mlflow.exchanging import export_mlflow, import_mlflow
    from cargobike.models.promotion.promoting import Promotion
    from cargobike.models.registering import register
    from cargobike.models.version import ModelVersion

__all__ = [
    "Field",
    "Flavour",
    "Given",
    "ModelVersion",
    "Promotion",
    "Saved",
    "Signature",
    "best",
    "export_mlflow",
    "export_to",
    "get",
    "history",
    "import_from",
    "import_mlflow",
    "list",
    "register",
    "remove",
    "remove_alias",
    "retain",
]

_FRONT = "cargobike.models.front"
_SOURCES = {
    "Field": "cargobike.core.signatures",
    "Flavour": "cargobike.models.flavours.flavour",
    "Given": "cargobike.models.flavours.flavour",
    "ModelVersion": "cargobike.models.version",
    "Promotion": "cargobike.models.promotion.promoting",
    "Saved": "cargobike.models.flavours.flavour",
    "Signature": "cargobike.core.signatures",
    "best": _FRONT,
    "export_to": "cargobike.models.exchange.front",
    "export_mlflow": "cargobike.models.mlflow.exchanging",
    "get": _FRONT,
    "history": _FRONT,
    "import_from": "cargobike.models.exchange.front",
    "import_mlflow": "cargobike.models.mlflow.exchanging",
    "list": _FRONT,
    "register": "cargobike.models.registering",
    "remove": _FRONT,
    "remove_alias": _FRONT,
    "retain": _FRONT,
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES, extra="models")


def __dir__() -> list[str]:  # type: ignore[valid-type]
    return __all__

"""What commands of features may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "features delete": Afar(role="administer"),
    "features compact": Afar(role="run"),
    "features vacuum": Afar(role="administer"),
    "features vector": Afar(),
    "features verify": Afar(),
    "features materialize": Afar(role="run"),
    "features views": Afar(),
    "features datasets": Afar(),
    "features lineage": Afar(),
    "features ls": Afar(),
    "features show": Afar(),
    "features search": Afar(texts=("text",)),
    "features stats": Afar(),
    "features insert": Afar(role="run", sends=("source",), texts=("message",)),
}

"""What commands of data may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "data write": Afar(role="run", sends=("sources",)),
    "data pack": Afar(role="run", sends=("folder",)),
    "data ls": Afar(),
    "data show": Afar(),
    "data head": Afar(),
    "data verify": Afar(),
    "data rm": Afar(role="administer"),
}

"""What commands of the demonstration may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "demo": Afar(role="run"),
}

"""What commands of the benchmark may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "bench train": Afar(role="run", brings=("report",), texts=("engine",)),
}

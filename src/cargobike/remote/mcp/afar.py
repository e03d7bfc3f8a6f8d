"""What commands of this room may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "mcp": Afar(
        only_here="it speaks to an assistant on this machine; give the server behind it: `cargobike mcp --server`"
    )
}

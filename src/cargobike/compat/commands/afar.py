"""What commands of older libraries may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "migrate": Afar(only_here="it rewrites a script of yours and uses no project."),
    "horovodrun": Afar(only_here="it starts a program of yours with all that lies around it; use `cargobike search`."),
}

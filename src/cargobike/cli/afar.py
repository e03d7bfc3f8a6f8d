"""What commands of the command line itself may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "ui": Afar(only_here="it is the server; open its address in a browser."),
    "lineage": Afar(),
    "tokens create": Afar(role="administer"),
    "tokens ls": Afar(role="administer"),
    "tokens revoke": Afar(role="administer"),
    "version": Afar(),
}

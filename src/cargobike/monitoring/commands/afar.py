"""What commands of monitoring may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "drift": Afar(role="run", sends=("reference", "now"), brings=("report",), texts=("columns", "alarm")),
    "monitor ls": Afar(),
    "monitor show": Afar(),
    "monitor report": Afar(brings=("output",)),
    "monitor ack": Afar(role="run", texts=("note",)),
    "monitor label": Afar(role="run", sends=("labels",)),
    "monitor start": Afar(role="run", sends=("reference",), texts=("alarm", "webhook", "email", "smtp", "command")),
    "monitor stop": Afar(role="run"),
    "monitor rm": Afar(role="administer"),
    "monitor compare": Afar(),
}

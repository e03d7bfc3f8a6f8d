"""What commands of experiments may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

_LISTENS: Final = "it listens on a port of the machine that it runs on; open the dashboard of the server instead."

AFAR: Final = {
    "run": Afar(
        role="run",
        sends=("function", "space"),
        texts=("param", "name", "description", "engine", "arguments"),
        keeps=True,
    ),
    "search": Afar(
        role="run",
        sends=("command", "space"),
        texts=("param", "pattern", "report", "env", "name", "description", "engine", "file"),
        keeps=True,
    ),
    "ls": Afar(),
    "show": Afar(),
    "compare": Afar(),
    "tag": Afar(raised={"tags": "run", "remove": "run"}),
    "note": Afar(texts=("text",), raised={"text": "run"}),
    "logs": Afar(),
    "tensorboard": Afar(only_here=_LISTENS),
    "stop": Afar(role="run"),
    "resume": Afar(role="run", sends=("space",)),
    "reproduce": Afar(role="run"),
    "export": Afar(brings=("target",)),
    "import": Afar(role="run", sends=("archive",)),
    "rm": Afar(role="administer"),
    "doctor": Afar(role="run", raised={"reindex": "administer", "allow_index": "administer"}),
}

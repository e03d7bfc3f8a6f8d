"""What commands of models may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "models ls": Afar(),
    "models show": Afar(),
    "models verify": Afar(),
    "models register": Afar(
        role="run", sends=("model", "factory", "files", "example"), texts=("description", "trial"), keeps=True
    ),
    "models promote": Afar(role="run", texts=("when",)),
    "models compare": Afar(),
    "models export": Afar(brings=("path",)),
    "models import": Afar(role="run", sends=("path",)),
    "models tag": Afar(raised={"tags": "run", "remove": "run"}),
    "models note": Afar(texts=("text",), raised={"text": "run"}),
    "models card": Afar(sends=("file",), raised={"file": "run", "reset": "run"}),
    "models rm": Afar(role="administer"),
}

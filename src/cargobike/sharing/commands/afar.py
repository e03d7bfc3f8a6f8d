"""What commands of sharing may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

_JOINING: Final = ("secret_file", "members")

AFAR: Final = {
    "share publish": Afar(role="run", sends=("source",), texts=("description", "license_", "web_seeds")),
    "share find": Afar(role="run", sends=_JOINING, texts=("words", "peers")),
    "share show": Afar(),
    "share who": Afar(role="run", sends=_JOINING),
    "share get": Afar(role="run", sends=_JOINING, brings=("to",)),
    "share ls": Afar(),
    "share serve": Afar(role="run", sends=_JOINING),
    "share status": Afar(),
    "share limit": Afar(role="administer", texts=("send", "receive", "peer", "hours")),
    "share pause": Afar(role="run"),
    "share resume": Afar(role="run"),
    "share stop": Afar(role="run"),
    "share rendezvous": Afar(role="run", sends=_JOINING),
    "share trust": Afar(role="administer"),
    "share mute": Afar(role="administer"),
    "share block": Afar(role="administer"),
    "share forget": Afar(role="administer"),
    "share publishers": Afar(),
    "share rate": Afar(role="run", texts=("comment_",)),
    "share comment": Afar(role="run", texts=("text",)),
    "share withdraw": Afar(role="administer", texts=("why",)),
    "share torrent": Afar(brings=("to",)),
    "share key": Afar(raised={"replace": "administer"}),
}

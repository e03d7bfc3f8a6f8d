"""`cargobike share`."""

from __future__ import annotations

import typer

from cargobike.sharing.commands.finding import find, ls, show, who
from cargobike.sharing.commands.judging import block, comment, forget, mute, publishers, rate, trust
from cargobike.sharing.commands.publishing import key, publish, torrent, withdraw
from cargobike.sharing.commands.transferring import get, limit, pause, rendezvous, resume, serve, status, stop

share = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_COMMANDS = (
    publish, find, show, who, get, ls, serve, status, limit, pause, resume, stop, rendezvous,
    trust, mute, block, forget, publishers, rate, comment, withdraw, torrent, key,
)  # fmt: skip

for _command in _COMMANDS:
    share.command(_command.__name__)(_command)

"""The process of a TensorBoard server: serves, and meanwhile keeps event files up to date with the journals."""

from __future__ import annotations

import logging
import os
import select
import sys
import types
from pathlib import Path

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.tensorboard.curves_view import CurvesView
from cargobike.experiments.tensorboard.host_guard import guarded
from cargobike.experiments.tensorboard.server import TensorboardOrder
from cargobike.store.files.mirror import refresh
from cargobike.ui.web.access import access_for
from cargobike.workers.processes import die_with_parent

_FOLLOW_EVERY_S = 1.0
_RELOAD_EVERY_S = 2

log = logging.getLogger(__name__)


def main() -> None:
    """Carry out the orders on standard input, until that is closed."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=TensorboardOrder)
    die_with_parent(order.owner)
    views = []
    try:
        for root in order.experiments:
            view = CurvesView(ExperimentFolder(Path(root)))
            try:
                if view.open():
                    views.append(view)
            except CargobikeError as error:
                log.warning("%s cannot be shown: %s", view.folder.id, error)
        _follow(views)
        _say(f"at {_serve(order)}")
        while not select.select([sys.stdin], [], [], _FOLLOW_EVERY_S)[0]:
            _follow(views)
        _follow(views)
    except (CargobikeError, ImportError, OSError, ValueError) as error:
        _say(f"sorry {error}")
    finally:
        for view in views:
            view.close()
        os._exit(0)  # TensorBoard's threads cannot be ended


def _follow(views: list[CurvesView]) -> None:
    for view in views:
        try:
            refresh(view.folder.project)
            while view.update():
                pass
        except (CargobikeError, ArithmeticError, ValueError) as error:
            log.warning("%s cannot be followed: %s", view.folder.id, error)


def _serve(order: TensorboardOrder) -> str:
    """Start the server in threads of this process; returns its address."""
    # TensorBoard imports TensorFlow if it is installed: many seconds, for files that it can read without it.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    try:
        from tensorboard import program  # noqa: PLC0415 - an extra, and only for this process
    except ImportError as error:
        raise ImportError(
            f"the library tensorboard is needed ({error}). Install it: pip install 'cargobike[tensorboard]'"
        ) from error
    access = access_for(order.host, names=order.allow_hosts)
    make_server = program.create_port_scanning_werkzeug_server
    server = program.TensorBoard(server_class=lambda app, flags: make_server(guarded(app, access), flags))
    arguments = {
        "logdir": order.logdir,
        "host": order.host,
        "port": str(order.port),
        "reload_interval": str(_RELOAD_EVERY_S),
        "reload_multifile": "true",
    }
    server.configure(argv=["tensorboard", *(f"--{name}={value}" for name, value in arguments.items())])
    try:
        return str(server.launch())
    except program.TensorBoardServerException as error:
        raise OSError(str(error)) from error


def _say(text: str) -> None:
    sys.stdout.write(" ".join(text.split()) + "\n")
    sys.stdout.flush()

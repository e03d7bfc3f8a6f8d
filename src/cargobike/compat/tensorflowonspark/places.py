"""Where the nodes of a cluster live, and what belongs to it on the driver's machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cargobike.compat.tensorflowonspark.reservation import Desk
from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import LOOPBACK
from cargobike.engines.capabilities import Elsewhere
from cargobike.engines.engine import Engine
from cargobike.engines.local.engine import LocalEngine
from cargobike.engines.spark.engine import SparkEngine
from cargobike.engines.spark.session import context_of
from cargobike.experiments.tensorboard.server import TensorboardServer


class Place:
    """Where the nodes of a cluster live.

    Attributes:
        context: The SparkContext, `None` without Spark.
        engine: What starts them.
        default_fs: The file system that paths without a scheme are on.
        is_here: Whether all of them, and all that feed them, are on this machine.
        desk: Where `reservation.Client` asks for the end of a stream.
    """

    def __init__(self, context: Any, engine: str | Engine, default_fs: str, *, is_here: bool) -> None:
        self.context, self.engine, self.default_fs, self.is_here = context, engine, default_fs, is_here
        self.tensorboard_url: str | None = None
        self._to_close: list[Any] = []
        self.desk = Desk(LOOPBACK if is_here else _reached(engine))
        self._to_close.append(self.desk)

    def free_slots(self) -> None:
        """Have nodes on Spark give their slots back, which tasks that feed them need."""
        if isinstance(self.engine, SparkEngine):
            self.engine.free_slots()

    def show(self, log_dir: str) -> None:
        """Start TensorBoard."""
        server = TensorboardServer(Path(log_dir), [])
        self._to_close.append(server)
        self.tensorboard_url = server.address()

    def close(self) -> None:
        """End what was started here; may be called twice."""
        while self._to_close:
            self._to_close.pop().close()


def find(sc: object, engine: str | Engine | None, *, tensorboard: bool, log_dir: str | None) -> Place:
    """Return where nodes are to live.

    Raises:
        InvalidInputError: If Spark and another engine were given, or TensorBoard has nothing to show.
    """
    if sc is not None and engine is not None:
        raise InvalidInputError("sc and engine were given; give one of them.")
    if tensorboard and log_dir is None:
        raise InvalidInputError("tensorboard=True was given without log_dir; give the folder that it is to show.")
    place = _on_spark(sc) if sc is not None else _here(engine or "local")
    if log_dir is not None:
        place.show(log_dir)
    return place


def _reached(engine: str | Engine) -> str:
    """Return the address of this machine that the machines of an engine reach."""
    if isinstance(engine, Elsewhere):
        return engine.listening.reach or engine.listening.bind
    return LOOPBACK


def _here(engine: str | Engine) -> Place:
    is_here = engine == "local" or isinstance(engine, LocalEngine)
    return Place(None, engine, "file://", is_here=is_here)


def _on_spark(sc: object) -> Place:
    context: Any = context_of(sc)
    default_fs = str(context._jsc.hadoopConfiguration().get("fs.defaultFS"))
    if default_fs.startswith("file://"):
        default_fs = "file://"
    engine = SparkEngine(context, detaches=True)
    return Place(
        context,
        engine,
        default_fs.rstrip("/") if default_fs != "file://" else default_fs,
        is_here=engine.cluster.is_local,
    )

"""A train function made ready to travel to a worker."""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import linecache
import os
import sys
from types import ModuleType
from typing import Any

import cloudpickle
import msgspec

from cargobike.core.asked import Asked
from cargobike.core.errors import FunctionError
from cargobike.core.registering.feeding import Feed
from cargobike.experiments.asking.function import Train
from cargobike.experiments.asking.libraries import libraries_needed
from cargobike.experiments.trial.payload import Payload, remember

PARAMETER_SERVER = "cargobike.training.parameter_server:serve"
"""What parameter servers run, as `module:name`."""


class Shipment(msgspec.Struct, frozen=True, kw_only=True):
    """The train function as it travels, and what the driver has to know about it."""

    title: str
    function: bytes
    libraries: tuple[str, ...]
    wants_reporter: bool
    source: str
    file: str = ""


def make_payload(
    asked: Asked,
    shipment: Shipment,
    *,
    data: Feed | None = None,
    travels: bool = False,
    judged_by_reports: bool = False,
) -> Payload:
    """Return what a runner needs to call the function; `travels` if it may run where the user's modules are not."""
    goals = asked.aim.goals
    return Payload(
        function=shipment.function,
        sys_path=[os.path.abspath(path) for path in sys.path],
        argv=sys.argv,
        launch_dir=os.getcwd(),
        preload=list(shipment.libraries),
        sources=unsaved_sources(),
        metric=asked.aim.metric,
        judged_by_reports=judged_by_reports,
        direction=asked.aim.direction or "max",
        value_is_optional=asked.is_single or bool(goals.objectives),
        needed_metrics=list(goals.names),
        wants_reporter=shipment.wants_reporter,
        own_directory=asked.keeping.working_directory == "trial",
        force_checkpoints_every_s=0.0 if asked.keeping.durability == "power" else 1.0,
        server=PARAMETER_SERVER if asked.placement.gang.servers else "",
        options=asked.placement.gang.options,
        data=data,
        modules=_own_modules() if travels else {},
    )


def _own_modules() -> dict[str, tuple[str, str, bool]]:
    from cargobike.experiments.asking.own_modules import own_modules  # noqa: PLC0415 - workers on this machine have the files

    return own_modules()


def ship(train: Train) -> Shipment:
    """Make a function ready to travel."""
    return Shipment(
        title=train.title,
        function=pickle_function(train),
        libraries=tuple(libraries_needed(train)),
        wants_reporter=train.wants_reporter,
        source=train.source(),
        file=getattr(getattr(train.plain, "__code__", None), "co_filename", ""),
    )


def pickle_function(train: Train) -> bytes:
    """Turn the function into bytes.

    Raises:
        FunctionError: Naming the part that cannot travel, if it can be found.
    """
    try:
        data = _dumps(train.function)
    except Exception as error:
        culprit = _find_culprit(train)
        raise FunctionError(
            f"The function {train.title} cannot be sent to a worker: {culprit or error}",
            ["make such things (locks, open files, connections, generators) inside the function instead"],
        ) from error
    return data


def _find_culprit(train: Train) -> str:
    parts: dict[str, Any] = {}
    function = train.function
    if isinstance(function, functools.partial):
        parts |= {f"the argument {key!r} of the partial": value for key, value in function.keywords.items()}
        parts |= {f"argument {i} of the partial": value for i, value in enumerate(function.args)}
    owner = getattr(function, "__self__", function)
    parts |= {f"its attribute {key!r}": value for key, value in getattr(owner, "__dict__", {}).items()}
    plain = train.plain
    if inspect.isfunction(plain):
        captured = inspect.getclosurevars(plain)
        parts |= {f"the variable {key!r} of its closure": value for key, value in captured.nonlocals.items()}
        parts |= {f"the global {key!r} that it uses": value for key, value in captured.globals.items()}
    for part, value in parts.items():
        try:
            _dumps(value)
        except Exception:  # noqa: BLE001 - any failure means that this is the part
            return f"{part} is a {type(value).__name__}, which cannot be pickled"
    return ""


def unsaved_sources() -> dict[str, str]:
    """Return sources that exist in memory only (notebook cells), for tracebacks in workers."""
    sources: dict[str, str] = {}
    for name, entry in list(linecache.cache.items()):
        if len(entry) == 4 and entry[2] and not os.path.exists(name):
            sources[name] = "".join(entry[2])
    return sources


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Sends cached functions of a script or notebook by value, and modules of unusual kinds by name.

    Left alone, cloudpickle would send `functools.cache`'s wrapper by name, and no worker has a script as a module. And
    it would refuse `torch.classes`, a module of a class of its own, which it finds in every function that uses `torch`
    and has `.classes` anywhere in it.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType) and type(obj) is not ModuleType and sys.modules.get(obj.__name__) is obj:
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, functools._lru_cache_wrapper) and getattr(obj, "__module__", None) == "__main__":
            return remember, (obj.__wrapped__, dict(obj.cache_parameters()))
        return super().reducer_override(obj)


def _dumps(value: object) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()

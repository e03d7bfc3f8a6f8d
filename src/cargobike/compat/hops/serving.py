"""Servings of hops over our deployments."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cargobike import serving
from cargobike.compat.hops import model
from cargobike.compat.hopsworks.paths import read_text
from cargobike.compat.hsml import numbering, servings
from cargobike.compat.hsml.model import refuse_transformer
from cargobike.compat.hsml.predictors import instances_of
from cargobike.compat.hsml.servings import Served
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError, UntrustedError

_HERE: Final = "hops.serving"
_MODEL: Final = re.compile(r"(?:^|.*/)Models/(?P<name>[^/]+)(?:/(?P<version>\d+))?(?:/(?P<file>.+))?/?")
_STATES: Final = {
    "created": "Stopped",
    "starting": "Starting",
    "serving": "Running",
    "releasing": "Updating",
    "stopping": "Stopping",
    "stopped": "Stopped",
    "lost": "Failed",
}
_OLD: Final = ("artifact_path", "serving_name", "serving_type", "model_version", "batching_enabled", "topic_name")
_NEW: Final = (
    "serving_name",
    "model_path",
    "model_server",
    "model_version",
    "artifact_version",
    "predictor",
    "transformer",
    "kserve",
    "batching_enabled",
    "topic_name",
)


class Serving:
    """What is served, as hops's users read it: `id`, `name`, `status`, `model_version` and more."""

    def __init__(self, served: Served) -> None:
        self.id = served.id
        self.name = served.name
        self.status = _STATES[servings.state(served.name)]
        self.artifact_path = self.model_path = served.path
        self.model_name = served.model
        self.model_version = served.number
        self.model_server = self.serving_type = served.server
        self.predictor = served.script or None
        self.requested_instances = served.instances
        self.kafka_topic_dto = None

    def __repr__(self) -> str:
        return f"Serving({self.name!r}, {self.status}, {self.model_name} version {self.model_version})"


@formerly(f"{_HERE}.create_or_update")
def create_or_update(*args: Any, **said: Any) -> None:
    """Define what is to be served, or change it; `start` serves it.

    Both orders of arguments work: `(serving_name, model_path, model_server, model_version=1, …, predictor=script)`, and
    up to 2.1 `(artifact_path, serving_name, serving_type="TENSORFLOW", model_version=1, …)`. A name has no `/`, a path
    has.

    Raises:
        InvalidInputError: If it cannot be served like this.
        NotFoundError: If there is no such model.
    """
    asked = _arguments(args, said)
    refuse_transformer(asked.get("transformer"))
    path, script = str(asked["path"]), asked.get("predictor")
    found = _MODEL.fullmatch(path)
    if path.endswith(".py"):
        script = path
    if found is None and script is None:
        raise InvalidInputError(
            f"{path!r} is no path of a model; give the path that model.export returned, such as 'Models/mnist'."
        )
    name = found["name"] if found and numbering.versions(found["name"]) else ""
    if found and not name and script is None:
        raise NotFoundError(f"There is no model {found['name']!r}: model.export(path, {found['name']!r}) keeps one.")
    number = int((found["version"] if found else None) or asked.get("model_version") or 1)
    servings.define(
        str(asked["name"]),
        model=name,
        number=number if name else None,
        server=str(asked["server"] or "TENSORFLOW").upper(),
        script=str(script or ""),
        text=_script(str(script), name, number) if script else "",
        instances=int(asked.get("instances") or 1),
        logs=asked.get("inference_logging", "ALL") is not None,
        topic="",
        path=path,
    )


@formerly(f"{_HERE}.start")
def start(serving_name: str) -> None:
    """Serve it; it goes on when this process ends, until it is stopped."""
    servings.start(serving_name)


@formerly(f"{_HERE}.stop")
def stop(serving_name: str) -> None:
    """End its processes."""
    servings.stop(serving_name)


@formerly(f"{_HERE}.delete")
def delete(serving_name: str) -> None:
    """Stop it, and forget it with everything it has kept."""
    servings.remove(serving_name)


@formerly(f"{_HERE}.exists")
def exists(serving_name: str) -> bool:
    """Tell whether it was defined."""
    return servings.found(serving_name) is not None


@formerly(f"{_HERE}.get_status")
def get_status(serving_name: str) -> str:
    """Return how it is doing: `Running`, `Stopped`, `Starting`, `Stopping`, `Updating` or `Failed`."""
    return _STATES[servings.state(serving_name)]


@formerly(f"{_HERE}.get_all")
def get_all() -> list[Serving]:
    """Return everything that was defined, by name."""
    return [Serving(one) for one in servings.every()]


@formerly(f"{_HERE}.make_inference_request")
def make_inference_request(serving_name: str, data: Mapping[str, Any], verb: str = ":predict") -> dict[str, Any]:
    """Return `{"predictions": …}`.

    Args:
        serving_name: What is asked.
        data: `{"instances": […]}` or `{"inputs": […]}`; other fields, such as `signature_name`, mean nothing here.
        verb: `":predict"`, `":classify"` or `":regress"`: the method of `class Predict`.
    """
    if verb not in {":predict", ":classify", ":regress"}:
        raise InvalidInputError(f"verb={verb!r} was given; there are ':predict', ':classify' and ':regress'.")
    return servings.ask(serving_name, instances_of(dict(data), None), verb[1:])


def get_id(serving_name: str) -> int | None:
    """Return its number; `None` if it was not defined."""
    served = servings.found(serving_name)
    return None if served is None else served.id


def get_kafka_topic(serving_name: str) -> str | None:
    """Return `None`: requests are logged to files; `cargobike.serving.read_log(name)` reads them."""
    return servings.get(serving_name).topic or None


def get_version(serving_name: str) -> int:
    """Return the version of the model that is served."""
    return servings.get(serving_name).number


get_model_version = get_version


def get_type(serving_name: str) -> str:
    """Return `PYTHON`, `TENSORFLOW` or what was given."""
    return servings.get(serving_name).server


get_model_server = get_type


def get_artifact_path(serving_name: str) -> str:
    """Return the path that was given."""
    return servings.get(serving_name).path


get_model_path = get_artifact_path


def get_model_name(serving_name: str) -> str:
    """Return the model that is served."""
    return servings.get(serving_name).model


def get_predictor(serving_name: str) -> str | None:
    """Return the path of the script that answers, if there is one."""
    return servings.get(serving_name).script or None


def describe(serving_name: str) -> None:
    """Print what is served, and how it is doing."""
    served = servings.get(serving_name)
    words = str(serving.deployment(served.name).status()) if servings.was_started(served.name) else "never started"
    sys.stdout.write(f"{Serving(served)}\n{words}\n")


@formerly(f"{_HERE}.export")
def export(model_path: str, model_name: str, model_version: int = 1, overwrite: bool = False, **more: Any) -> str:
    """Keep a file or folder as a version of a model: what `model.export` was called up to 1.0."""
    return model.export(model_path, model_name, model_version, overwrite)


def _arguments(args: tuple[Any, ...], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for under one set of names, whichever order was used."""
    is_old = "artifact_path" in said or "serving_type" in said or (bool(args) and "/" in str(args[0]))
    names = _OLD if is_old else _NEW
    if len(args) > len(names):
        raise InvalidInputError(f"create_or_update takes {', '.join(names)} and more by name.")
    given = {**dict(zip(names, args, strict=False)), **said}
    asked = {
        **given,
        "name": given.get("serving_name"),
        "path": given.get("model_path") or given.get("artifact_path"),
        "server": given.get("model_server") or given.get("serving_type"),
    }
    mistakes = [f"{what} is missing" for what in ("name", "path") if not asked[what]]
    if asked["name"] and not re.fullmatch(r"[A-Za-z0-9]+", str(asked["name"])):
        mistakes.append(f"the name {asked['name']!r} has other characters than letters and digits")
    if mistakes:
        raise InvalidInputError(
            "create_or_update(serving_name, model_path, model_server) was called wrongly:", mistakes
        )
    return asked


def _script(path: str, name: str, number: int) -> str:
    """Return the text of a script: a file of the model, of the project or of this machine."""
    if name:
        version = numbering.find(name, number)[1]
        folder = version.folder() / "model"
        found = _MODEL.fullmatch(path)
        for inner in filter(None, (found["file"] if found else None, path, Path(path).name)):
            file = folder / str(inner).lstrip("/")
            if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
                if version.is_imported:
                    raise UntrustedError(
                        f"{version.reference} was brought in from elsewhere, and so was its script. If you trust who "
                        "made it, give a copy of the script by its path."
                    )
                return file.read_text(encoding="utf-8")
    return read_text(path)

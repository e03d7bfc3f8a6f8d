"""Deployments that are defined before they are started: what older libraries call a serving, kept in the project."""

from __future__ import annotations

import re
import time
from typing import Any, Final

import msgspec

from cargobike import models, serving
from cargobike.compat.hopsworks.paths import project_url, read_text, storage
from cargobike.compat.hsml.numbering import find, model_name
from cargobike.compat.hsml.predictors import INPUTS, VERB, Files, Script
from cargobike.core import settings
from cargobike.core.errors import DeploymentError, InvalidInputError, NotFoundError, nearest
from cargobike.core.registering.tracing import Thing

FOLDER: Final = "compat/servings"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be served.

    Attributes:
        name: The deployment's name.
        id: A number, as the older libraries had them.
        model: The model as scripts call it; empty for a script alone.
        number: Its version as scripts know it.
        server: `PYTHON` or `TENSORFLOW`.
        script: The path of the script, if there is one.
        predictor: The model of ours that answers: `name:version`.
        instances: How many processes answer.
        logs: Whether requests are logged.
        topic: The name of the log.
        path: The path of the model that was given.
        at: When it was defined.
    """

    name: str
    id: int
    model: str = ""
    number: int = 0
    server: str = "PYTHON"
    script: str = ""
    predictor: str = ""
    instances: int = 1
    logs: bool = True
    topic: str = ""
    path: str = ""
    at: float = 0.0


def define(
    name: str,
    *,
    model: str = "",
    number: int | None = None,
    server: str = "PYTHON",
    script: str = "",
    text: str = "",
    instances: int = 1,
    logs: bool = True,
    topic: str = "",
    path: str = "",
) -> Served:
    """Define a deployment, or change one; one that runs goes on with the new version without losing a request.

    Raises:
        InvalidInputError: If it cannot be served like this.
        NotFoundError: If there is no such model.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} was given as the name of a deployment: letters, digits, '-', '_' and '.'.")
    version: models.ModelVersion | None = None
    if model:
        number, version = find(model, number)
    reference = version.reference if version else ""
    if script:
        answering: Script | Files = Script(text or read_text(script), script, reference, number or 0)
    elif version is not None:
        answering = Files(reference)
    else:
        raise InvalidInputError("There is nothing to serve: give a model, or a script with class Predict.")
    before = found(name)
    made_from = [Thing("model", version.name, str(version.version))] if version else []
    kept = models.register(
        f"{model_name(name)[:50]}-predictor",
        answering,
        description=f"Answers requests of the deployment {name}.",
        made_from=made_from,
    )
    served = Served(
        name=name,
        id=before.id if before else max((one.id for one in every()), default=0) + 1,
        model=model,
        number=number or 0,
        server=server,
        script=script,
        predictor=kept.reference,
        instances=max(int(instances or 1), 1),
        logs=logs,
        topic=topic,
        path=path,
        at=time.time(),
    )
    storage().write(_path(name), msgspec.json.encode(served))
    if before is not None and is_running(name):
        handle = serving.deployment(name)
        handle.roll(kept)
        handle.scale(served.instances)
    return served


def found(name: str) -> Served | None:
    """Return what was defined under a name; `None` if nothing was."""
    data = storage().read(_path(name))
    return None if data is None else msgspec.json.decode(data, type=Served)


def get(name: str) -> Served:
    """Return what was defined under a name.

    Raises:
        NotFoundError: If nothing was; says which names are near.
    """
    served = found(name)
    if served is None:
        names = [one.name for one in every()]
        raise NotFoundError(
            f"There is no deployment {name!r}; there are {', '.join(names) or 'none yet'}.{nearest(name, names)}"
        )
    return served


def every() -> list[Served]:
    """Return everything that was defined, by name."""
    entries = sorted(entry.path for entry in storage().list(FOLDER) if entry.path.endswith(".json"))
    read = [storage().read(path) for path in entries]
    return [msgspec.json.decode(data, type=Served) for data in read if data is not None]


def start(name: str) -> None:
    """Serve what was defined; it goes on when this process ends. Nothing happens if it is being served."""
    served = get(name)
    if is_running(name):
        return
    serving.deploy(
        name,
        served.predictor,
        replicas=served.instances,
        log=served.logs,
        environment={settings.PROJECT: project_url()},
        limits={"batch": 1} if served.script else None,
        detach=True,
    )


def stop(name: str) -> None:
    """End its processes; nothing happens if there are none."""
    get(name)
    if was_started(name):
        serving.deployment(name).stop()


def remove(name: str) -> None:
    """Stop a deployment, and forget it with everything it has kept."""
    get(name)
    if was_started(name):
        serving.deployment(name).remove()
    storage().delete(_path(name))


def state(name: str) -> str:
    """Return the state of a deployment of ours; `created` if it was never started."""
    get(name)
    return serving.deployment(name).status().state if was_started(name) else "created"


def is_running(name: str) -> bool:
    """Tell whether requests are answered."""
    return was_started(name) and serving.deployment(name).status().state in {"serving", "releasing"}


def was_started(name: str) -> bool:
    """Tell whether there is a deployment of ours."""
    try:
        serving.deployment(name)
    except NotFoundError:
        return False
    return True


def ask(name: str, instances: Any, verb: str = "predict", timeout_s: float = 60.0) -> dict[str, Any]:
    """Return `{"predictions": …}` for the instances of a request."""
    if not is_running(name):
        raise DeploymentError(f"{name} is not being served ({state(name)}); start it first.")
    row = {INPUTS: instances} if verb == "predict" else {INPUTS: instances, VERB: verb}
    answer = serving.deployment(name).predict(row, timeout_s=timeout_s)
    return answer if isinstance(answer, dict) and "predictions" in answer else {"predictions": answer}


def _path(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} was given as the name of a deployment: letters, digits, '-', '_' and '.'.")
    return f"{FOLDER}/{name}.json"

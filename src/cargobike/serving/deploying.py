"""`serving.deploy` and its kin: from what a user asked for to a deployment that serves."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import ipaddress
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import DeploymentError, InvalidInputError, MissingLibraryError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.modelling import model_keeper
from cargobike.core.registering.steps import own_step, step_token
from cargobike.serving.handle import Deployment
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.serving.record import DeploymentRecord, all_folders, find_record, folder_of
from cargobike.serving.replica.pipeline import pack_functions
from cargobike.serving.specification import Limits, Logging, Scaling, Specification
from cargobike.serving.supervising.config import Local, Scope, SupervisorConfig
from cargobike.serving.supervising.finding import find_version
from cargobike.serving.supervising.hosting import GRACE_S
from cargobike.serving.supervising.launching import await_end, launch
from cargobike.store.files import project as projects

Rows = Callable[[list[Any]], Sequence[Any]]
SCOPES: Final[tuple[Scope, ...]] = ("predict", "administer")

_END_S: Final = 15.0

_owned: dict[str, tuple[int, Deployment]] = {}
"""Deployments that end with this process, by the folder of each."""


@own_step("serving.deploy", recover="cargobike.serving.recovering:recover_deploy")
def deploy(
    name: str,
    model: Any,
    *,
    replicas: int | tuple[int, int] | Scaling = 1,
    host: str = "127.0.0.1",
    port: int = 0,
    grpc: int | None = None,
    view: Any = None,
    before: Rows | None = None,
    after: Rows | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    log: bool | float | Logging | Mapping[str, Any] = True,
    token: str | bool | Mapping[str, Sequence[Scope]] | None = None,
    tls: tuple[str, str] | None = None,
    trust: bool = False,
    environment: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    retry: bool = True,
    detach: bool = False,
) -> Deployment:
    """Serve a model: returns when the first replica is loaded, warm and takes requests.

    Args:
        name: The deployment's name in the project.
        model: `digits@champion`, `digits:3`, what `models.register` returned; or a plain function from a list of rows
            to a list of answers, which is then registered as a model with the deployment's name.
        replicas: How many processes predict: a number, the fewest and the most, or a `Scaling`.
        host: The address to listen on. Beyond this machine a token is needed, and made if none is given.
        port: The port; 0 for any that is free.
        grpc: Another port, for the Open Inference Protocol over gRPC; 0 for any that is free, `None` to do without.
        view: A feature view: requests hold keys, and its features are looked up.
        before: A function from the rows of a request to those that the model takes.
        after: A function from the model's answers to those that callers get.
        limits: What requests may take: a `Limits`, or some of its fields by name.
        log: What of requests and answers is kept: everything, nothing, a share, or a `Logging`.
        token: What callers must send: a text, `True` to make one, or texts with their scopes, `predict` and
            `administer`.
        tls: Files of a certificate and its key, to encrypt.
        trust: Whether code of a model that was brought in from elsewhere may run.
        environment: Environment variables of the replicas; their values are kept out of the journal.
        resources: For Kubernetes: `{"cpu": "1", "memory": "1Gi"}`.
        retry: Whether a request whose replica died may be given to another.
        detach: Whether it goes on when this process ends; in a pipeline it always does.

    Raises:
        InvalidInputError: If something of this cannot be; lists all mistakes.
        NotFoundError: If there is no such model, version or alias.
        MissingLibraryError: If gRPC is asked for and not installed.
        DeploymentError: If the model cannot be loaded, the port is taken, or the deployment is being served already.

    Example:
        >>> from cargobike import serving
        >>> with serving.deploy("double", lambda rows: [2 * row for row in rows]) as deployment:  # doctest: +SKIP
        ...     deployment.predict([1, 2])
        [2, 4]
    """
    project = projects.prepare()
    mistakes: list[str] = []
    specification = Specification(
        name=_name(name, mistakes),
        model="",
        host=_host(host, mistakes),
        port=_port(port, mistakes),
        grpc_port=None if grpc is None else _port(grpc, mistakes, "grpc"),
        scaling=_scaling(replicas, mistakes),
        limits=_record("limits", limits, Limits, mistakes),
        logging=_logging(log, mistakes),
        view=_view(view),
        functions=_functions(before, after, mistakes),
        retry=retry,
        tls_certificate=_file(tls[0] if tls else "", mistakes),
        tls_key=_file(tls[1] if tls else "", mistakes),
        trust=trust,
        resources=dict(resources or {}),
        environment=dict.fromkeys(environment or {}, ""),
    )
    if port and port == grpc:
        mistakes.append(f"port={port!r}, grpc={grpc!r}: HTTP and gRPC need a port each")
    tokens, shown = _tokens(token, host, mistakes)
    if mistakes:
        raise InvalidInputError("This cannot be deployed:", mistakes)
    _check_libraries(specification)
    reference, version = _model(model, name)
    specification = msgspec.structs.replace(specification, model=reference, version=version)
    local = Local(tokens, dict(environment or {}), _paths())
    return launch_deployment(project, specification, local, detach=detach, token=shown)


def launch_deployment(
    project: ProjectFolder,
    specification: Specification,
    local: Local | None,
    *,
    detach: bool,
    token: str = "",
    grace_s: float = GRACE_S,
) -> Deployment:
    """Start the supervisor of a deployment, and wait until it serves.

    Args:
        project: Where it is kept.
        specification: What is asked for.
        local: What must not be in the journal; `None` to go on with what the journal and the machine have kept.
        detach: Whether it goes on when this process ends.
        token: What the handle sends.
        grace_s: How long its processes go on without a supervisor.
    """
    name = specification.name
    detach = detach or bool(step_token())  # what a step has made outlives the process that made it
    config = SupervisorConfig(
        project=str(project.root.absolute()),
        name=name,
        specification=b"" if local is None else msgspec.json.encode(specification),
        local=local,
        owner=0 if detach else os.getpid(),
        grace_s=grace_s,
        step=step_token(),
    )
    started, pid = launch(config, folder_of(project, name), specification.limits.load_s)
    deployment = Deployment(name, project, token=token, pid=pid)
    if started.error:
        if not started.url:
            await_end(pid, _END_S)
        elif not detach:
            deployment.stop()
        raise DeploymentError(started.error)
    if not detach:
        _owned[str(folder_of(project, name).root)] = (os.getpid(), deployment)
    return deployment


def deployment(name: str, *, token: str = "") -> Deployment:
    """Return the handle of a deployment of the project, whether it runs or not.

    Args:
        name: Its name.
        token: What it asks callers for, if it does.

    Raises:
        NotFoundError: If there is none with that name.
    """
    project = projects.current()
    find_record(project, name)
    return Deployment(name, project, token=token)


def list_deployments() -> list[Deployment]:
    """Return the handles of all deployments of the project, by name."""
    project = projects.current()
    return [Deployment(folder.id, project) for folder in all_folders(project)]


@own_step("serving.start", recover="cargobike.serving.recovering:recover_start")
def start(name: str, *, detach: bool = False) -> Deployment:
    """Start a deployment again that was stopped or lost, as it was: the same version, the same port.

    Raises:
        NotFoundError: If there is none with that name.
        MissingLibraryError: If it speaks gRPC, which is not installed here.
        DeploymentError: If it is being served already, or cannot be.
    """
    project = projects.current()
    record: DeploymentRecord = find_record(project, name)
    _check_libraries(record.specification)
    return launch_deployment(project, record.specification, None, detach=detach)


@atexit.register
def _stop_owned() -> None:
    for pid, owned in list(_owned.values()):
        if pid == os.getpid():
            owned.stop()


def _name(name: Any, mistakes: list[str]) -> str:
    if not isinstance(name, str) or not DEPLOYMENTS.id.fullmatch(name):
        mistakes.append(f"name={name!r}: up to 63 letters, digits, '-', '_' and '.', the first a letter or a digit")
    return str(name)


def _host(host: str, mistakes: list[str]) -> str:
    try:
        ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        mistakes.append(f"host={host!r}: an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them")
    return "127.0.0.1" if host == "localhost" else host


def _port(port: Any, mistakes: list[str], what: str = "port") -> int:
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        mistakes.append(f"{what}={port!r}: a number from 0 (any that is free) to 65535")
        return 0
    return port


def _check_libraries(specification: Specification) -> None:
    """Say now what the front would find out in its own process."""
    needed = {"grpc": "grpcio", "google.protobuf": "protobuf"} if specification.grpc_port is not None else {}
    for name, package in needed.items():
        try:
            is_there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            words = f"gRPC needs {package}, which is not installed: pip install 'cargobike[grpc]'"
            raise MissingLibraryError(words, name=name)


def _scaling(replicas: Any, mistakes: list[str]) -> Scaling:
    if isinstance(replicas, int) and not isinstance(replicas, bool):
        scaling = Scaling(least=replicas, most=max(replicas, 1))
    elif isinstance(replicas, Scaling):
        scaling = replicas
    elif isinstance(replicas, Sequence) and len(replicas) == 2 and all(isinstance(each, int) for each in replicas):
        scaling = Scaling(least=replicas[0], most=replicas[1])
    else:
        mistakes.append(f"replicas={replicas!r}: a number, the fewest and the most such as (1, 4), or a Scaling")
        return Scaling()
    if not 0 <= scaling.least <= scaling.most or scaling.most < 1:
        mistakes.append(
            f"replicas={replicas!r}: the fewest must be at least 0 and at most the most, which is at least 1"
        )
    if not scaling.target > 0:
        mistakes.append(f"replicas: target={scaling.target!r} must be above 0")
    return scaling


def _record(what: str, given: Any, kind: type[Any], mistakes: list[str]) -> Any:
    if given is None or isinstance(given, kind):
        return given or kind()
    try:
        unknown = set(given) - set(kind.__struct_fields__)
        if unknown:
            names = ", ".join(kind.__struct_fields__)
            mistakes.append(f"{what}: there is no {', '.join(map(repr, sorted(unknown)))}; there is {names}")
            return kind()
        return msgspec.convert(dict(given), kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        mistakes.append(f"{what}={given!r}: {error}")
        return kind()


def _logging(log: Any, mistakes: list[str]) -> Logging:
    if isinstance(log, bool):
        return Logging(sample=1.0 if log else 0.0)
    if isinstance(log, int | float):
        if not 0.0 <= log <= 1.0:
            mistakes.append(f"log={log!r}: a share of requests, from 0 to 1")
        return Logging(sample=float(log))
    logging: Logging = _record("log", log, Logging, mistakes)
    return logging


def _view(view: Any) -> str:
    if view is None or isinstance(view, str):
        return view or ""
    return f"{view.name}:{view.version}"


def _functions(before: Any, after: Any, mistakes: list[str]) -> bytes:
    for what, function in (("before", before), ("after", after)):
        if function is not None and not callable(function):
            mistakes.append(f"{what}={function!r}: a function from a list to a list of the same length")
            return b""
    try:
        return pack_functions(before, after)
    except Exception as error:  # noqa: BLE001 - whatever a user's object does when it is pickled
        mistakes.append(f"before, after: cannot be sent to other processes: {type(error).__name__}: {error}")
        return b""


def _file(path: str, mistakes: list[str]) -> str:
    if path and not os.path.isfile(path):
        mistakes.append(f"tls: there is no file {path!r}")
    return os.path.abspath(path) if path else ""


def _tokens(token: Any, host: str, mistakes: list[str]) -> tuple[dict[str, list[Scope]], str]:
    """Return the SHA-256 of tokens with their scopes, and the token that the handle sends."""
    if isinstance(token, Mapping):
        given: dict[str, list[Scope]] = {str(text): list(scopes) for text, scopes in token.items()}
    elif isinstance(token, str):
        given = {token: list(SCOPES)}
    elif token or (token is None and not _is_loopback(host)):
        given = {secrets.token_urlsafe(24): list(SCOPES)}
    else:
        given = {}
    for text, scopes in given.items():
        if len(text) < 16:
            mistakes.append("token: at least 16 characters")
        if not scopes or any(scope not in SCOPES for scope in scopes):
            mistakes.append(f"token: scopes {scopes!r}; there is {' and '.join(SCOPES)}")
    hashed = {hashlib.sha256(text.encode()).hexdigest(): scopes for text, scopes in given.items()}
    return hashed, next((text for text, scopes in given.items() if "predict" in scopes), "")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _model(model: Any, name: str) -> tuple[str, int]:
    """Return what is served as a reference, and the version that it means; a function is registered first."""
    if isinstance(model, str):
        return model, find_version(model).version
    if not hasattr(model, "predictor"):
        model = model_keeper().register(name, model)
    return f"{model.name}:{model.version}", int(model.version)


def _paths() -> tuple[str, ...]:
    return tuple(os.path.abspath(path) for path in sys.path)

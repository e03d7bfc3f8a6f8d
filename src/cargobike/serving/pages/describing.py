"""Deployments as the dashboard shows them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from cargobike.core.errors import CargobikeError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.times import on_calendar
from cargobike.serving.handle import Deployment
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.serving.pages.answers import (
    DeploymentDetails,
    DeploymentLine,
    DeploymentPage,
    LastRequests,
    MomentAnswer,
    ReplicaAnswer,
    RequestLine,
    Tail,
    TrafficAnswer,
    VersionAnswer,
)
from cargobike.serving.record import DeploymentRecord, find_record, folder_of
from cargobike.serving.status import Status, Traffic
from cargobike.serving.supervising.finding import model_name
from cargobike.store.files.locking import holds_lock

Known = tuple[str, DeploymentRecord | StoreError]
"""The name of a deployment, and what its journal says, or why it cannot be read."""

_MOMENTS = 100
_NO_TRAFFIC = Traffic()


def found(project: ProjectFolder, name: str) -> Deployment:
    """Return the handle of a deployment.

    Raises:
        NotFoundError: If there is none with that name.
    """
    if not DEPLOYMENTS.id.fullmatch(name):
        raise NotFoundError(f"There is no deployment {name!r} in this project.", wanted=name)
    find_record(project, name)
    return Deployment(name, project)


def listed(project: ProjectFolder, known: Sequence[Known], words: str, offset: int, limit: int) -> DeploymentPage:
    """Return a part of the deployments in whose name or model a text occurs, by name."""
    wanted = words.strip().lower()
    fitting = [(name, record) for name, record in known if wanted in _words(name, record)]
    shown = [line_of(project, name, record) for name, record in fitting[offset : offset + limit]]
    return DeploymentPage(shown, len(fitting), offset, limit)


def details(project: ProjectFolder, name: str, *, may_change: bool) -> DeploymentDetails:
    """Return everything about one deployment."""
    handle = found(project, name)
    status, record = handle.status(), find_record(project, name)
    specification = record.specification
    settings = {key: msgspec.to_builtins(getattr(specification, key)) for key in ("limits", "scaling", "logging")} | {
        "view": specification.view,
        "retry": specification.retry,
        "tls": bool(specification.tls_certificate),
    }
    return DeploymentDetails(
        deployment=_line(status),
        model_name=model_name(status.model),
        previous=status.previous,
        candidate=status.candidate,
        routes={str(version): share for version, share in status.routes.items()},
        shadow=status.shadow,
        replicas=[ReplicaAnswer(*msgspec.structs.astuple(replica)) for replica in status.replicas],
        least=status.least,
        most=status.most,
        figures=[VersionAnswer(*msgspec.structs.astuple(figures)) for figures in status.figures],
        last_error=status.last_error,
        trouble=status.trouble,
        settings=settings,
        history=[MomentAnswer(_iso(moment.at), moment.text) for moment in reversed(record.history[-_MOMENTS:])],
        may_change=may_change and status.state in {"serving", "releasing"},
    )


def tail(project: ProjectFolder, name: str, lines: int) -> Tail:
    """Return the last lines of what its processes printed."""
    return Tail(found(project, name).logs(lines=lines))


def last_requests(project: ProjectFolder, name: str, limit: int) -> LastRequests:
    """Return the last requests that were kept, the newest first; only who asked when, and what became of it."""
    found(project, name)
    try:
        from cargobike.serving.inference_log.reading import read_last  # noqa: PLC0415 - needs pyarrow

        rows = read_last(name, limit, project=project).to_pylist()
    except (CargobikeError, ImportError, OSError) as error:
        return LastRequests([], str(error))
    lines = [
        RequestLine(
            row["request_id"], row["at"].isoformat(), row["latency_ms"], row["version"], row["status"], row["row"]
        )
        for row in reversed(rows)
    ]
    return LastRequests(lines, "")


def line_of(project: ProjectFolder, name: str, record: DeploymentRecord | StoreError) -> DeploymentLine:
    """Return a deployment as lists show it; its supervisor is asked only if there may be one."""
    try:
        if isinstance(record, StoreError):
            raise record
        if record.is_stopped or not _may_run(project, name):
            return _at_rest(name, record)
        return _line(Deployment(name, project).status())
    except (CargobikeError, OSError) as error:
        words = " ".join(str(error).split())[:200]
        return DeploymentLine(name, "unreadable", words, 0, "", 0, 0, _traffic(_NO_TRAFFIC))


def _may_run(project: ProjectFolder, name: str) -> bool:
    folder = folder_of(project, name)
    # Most of many deployments have no lock; to see that costs a tenth of trying to take it.
    return os.path.exists(f"{folder.root}/{folder.lock.name}") and holds_lock(folder)


def _at_rest(name: str, record: DeploymentRecord) -> DeploymentLine:
    state = "stopped" if record.is_stopped else "lost"
    return DeploymentLine(
        name, state, record.specification.model, record.current, record.url, 0, 0, _traffic(_NO_TRAFFIC)
    )


def _words(name: str, record: DeploymentRecord | StoreError) -> str:
    return (name if isinstance(record, StoreError) else f"{name} {record.specification.model}").lower()


def _line(status: Status) -> DeploymentLine:
    return DeploymentLine(
        name=status.name,
        state=status.state,
        model=status.model,
        version=status.version,
        url=status.url,
        ready=status.ready,
        wanted=status.wanted,
        traffic=_traffic(status.traffic),
    )


def _traffic(traffic: Traffic) -> TrafficAnswer:
    return TrafficAnswer(**{field: getattr(traffic, field) for field in TrafficAnswer.__struct_fields__})


def _iso(at: float) -> str:
    return on_calendar(at).isoformat(timespec="milliseconds")

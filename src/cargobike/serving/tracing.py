"""Which versions deployments serve: edges that keep what is served from being deleted."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.serving.record import DeploymentRecord, all_records
from cargobike.serving.supervising.finding import model_name


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield the versions of models, and the views, that the deployments of a project serve or may go back to."""
    for name, record in all_records(project):
        if not isinstance(record, StoreError):  # `cargobike deployments show` says what is wrong with it
            yield from _edges_of(name, record)


def _edges_of(name: str, record: DeploymentRecord) -> Iterator[Edge]:
    made = Thing("deployment", name)
    specification = record.specification
    model = model_name(specification.model)
    roles = {record.previous: "to roll back to", record.candidate: "being brought in", record.current: ""}
    roles.setdefault(record.awaited, "being brought in")
    for version in sorted({*roles, *record.routed} - {0}):
        detail = "stopped" if record.is_stopped else roles.get(version, "")
        yield Edge(made, Thing("model", model, str(version)), "serves", detail)
    if specification.view:
        view, _, view_version = specification.view.partition(":")
        yield Edge(made, Thing("view", view, view_version), "serves")

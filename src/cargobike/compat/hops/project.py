"""`hops.project`: a project needs no server."""

from __future__ import annotations

from cargobike.compat.hops.translating.files import ProjectFiles, project_name
from cargobike.compat.hops.translating.gone import no_longer
from cargobike.compat.noticing import formerly

__all__ = ["connect", "create", "get_project_info", "get_project_info_as_shared", "project_id_as_shared"]

_WHY = "A project is a folder or an address, made when it is first written to: project.use('s3://bucket/team')."

create = no_longer("hops.project.create", _WHY)


@formerly("hops.project.connect")
def connect(project: str, host: str | None = None, *args: object, **kwargs: object) -> None:
    """Accept what a script says about a Hopsworks server; the project in use stays, and must be the one it names."""
    ProjectFiles().inner("", project)


def get_project_info(project_name: str) -> dict[str, str]:
    """Return the project's name, and where it lies."""
    files = ProjectFiles()
    files.inner("", project_name)
    return {"projectName": project_name, "projectId": project_name, "path": files.root}


def get_project_info_as_shared(project_name: str) -> dict[str, str]:
    """Return the project's name, and where it lies."""
    return get_project_info(project_name)


def project_id_as_shared(name: str | None = None) -> str:
    """Return the project's name: it has no number."""
    return get_project_info(name or project_name())["projectId"]

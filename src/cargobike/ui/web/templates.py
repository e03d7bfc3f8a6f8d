"""HTML made from templates in which all text is escaped."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Annotated, Any

import jinja2
from fastapi import Depends, Request
from starlette.responses import HTMLResponse, Response

from cargobike.core.layout import ProjectFolder
from cargobike.core.version import __version__
from cargobike.store.files.shared import shared_url
from cargobike.ui.web.permissions import role_in
from cargobike.ui.web.roles import Role
from cargobike.ui.web.section import Section


class Templates:
    """The templates of the shell, by their names, and those of each section, as `SECTION/NAME`."""

    def __init__(self, project: ProjectFolder, sections: Sequence[Section]) -> None:
        self._project = project
        self._caller = Role.READ
        own = jinja2.PackageLoader("cargobike.ui", "pages/templates")
        products = {section.name: jinja2.PackageLoader(section.package) for section in sections if section.pages}
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader([own, jinja2.PrefixLoader(products)]),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for section in sections:
            self._environment.filters.update(section.filters)
        self._environment.globals.update(version=__version__, links=[link for each in sections for link in each.links])

    def for_caller(self, role: Role) -> Templates:
        """Return templates that show what a caller may do."""
        mine = copy.copy(self)
        mine._caller = role
        return mine

    def page(self, name: str, **context: Any) -> Response:
        """Return a page, with the project's name at the top."""
        return HTMLResponse(self._render(name, {"project": project_name(self._project), **context}))

    def login_page(self) -> Response:
        """Return the page on which the token is shown; it reveals nothing about the project."""
        return HTMLResponse(self._render("login.html", {"project": ""}))

    def error_page(self, status: int, why: str) -> Response:
        """Return a page that says what went wrong."""
        words = "There is no page at this address." if why == "Not Found" else why
        return HTMLResponse(self._render("error.html", {"project": "", "status": status, "why": words}), status)

    def _render(self, name: str, context: dict[str, Any]) -> str:
        shown = {"caller": self._caller, **context}
        return self._environment.get_template(name).render(shown).encode("utf-8", "replace").decode("utf-8")


def project_name(project: ProjectFolder) -> str:
    """Return a project's name for people: its address on shared storage, or the folder that it lies in."""
    if url := shared_url(project):
        return url
    return (project.root.parent if project.root.name == ".cargobike" else project.root).name or str(project.root)


async def _templates(request: Request) -> Templates:
    templates: Templates = request.app.state.templates
    return templates.for_caller(role_in(request.scope))


Pages = Annotated[Templates, Depends(_templates)]
"""The parameter by which a route that answers with a page gets the templates."""

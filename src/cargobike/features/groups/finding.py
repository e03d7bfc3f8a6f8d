"""Find groups by name, and list them."""

from __future__ import annotations

from collections.abc import Iterable

from cargobike.core.errors import InvalidInputError, NotFoundError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.keeping import KeptTable
from cargobike.core.registering.steps import Kept, open_kept
from cargobike.core.registering.tracing import Thing
from cargobike.features.definition import Definition
from cargobike.features.groups.definitions import all_definitions
from cargobike.features.groups.group import Group
from cargobike.features.groups.origins import Named
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


def list_groups(folder: ProjectFolder | None = None) -> list[Group]:
    """Return the groups of a project by name, each in its newest version; no table is opened.

    Args:
        folder: The project; by default the one in use.
    """
    folder = folder if folder is not None else project.current()
    newest = {definition.name: definition for definition in all_definitions(storage_of(folder))}
    return [make_group(definition, folder) for definition in newest.values()]


def group(name: str, version: int | None = None, *, folder: ProjectFolder | None = None) -> Group:
    """Return a group of the project.

    Args:
        name: Its name.
        version: The version of its definition; by default the newest.
        folder: The project; by default the one in use.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    folder = folder if folder is not None else project.current()
    definitions = all_definitions(storage_of(folder))
    versions = {definition.version: definition for definition in definitions if definition.name == name}
    if not versions:
        names = sorted({definition.name for definition in definitions})
        has = f"It has {_listed(names)}." if names else "It has none yet; features.create_group(…) makes one."
        raise NotFoundError(
            f"There is no feature group {name!r} in {folder.root}. {has}{nearest(str(name), names)}",
            wanted=name,
            nearest=nearest_names(str(name), names),
        )
    if version is not None and version not in versions:
        raise NotFoundError(
            f"The group {name!r} has no version {version}; it has {_listed(map(str, versions))}.",
            wanted=f"{name} version {version}",
            nearest=[str(one) for one in versions],
        )
    return make_group(versions[max(versions) if version is None else version], folder)


def search(text: str, folder: ProjectFolder | None = None) -> list[tuple[Group, list[str]]]:
    """Return the groups in whose words a text occurs, each with where: name, description, tags, owner, features.

    Args:
        text: What to look for; upper and lower case are the same.
        folder: The project; by default the one in use.
    """
    wanted = text.strip().lower()
    matches = []
    for one in list_groups(folder):
        places = [place for place, words in words_of(one.definition) if wanted in words.lower()]
        if places:
            matches.append((one, places))
    return matches


def make_group(definition: Definition, folder: ProjectFolder) -> Group:
    """Return a group, whose queries may name other groups and the tables of its project."""
    return Group(definition, storage_of(folder), lambda name: named_rows(name, folder))


def named_rows(name: str, folder: ProjectFolder) -> Named | None:
    """Return the rows that a name in a query stands for: a group, or else a table of the project, `higgs` or `higgs:3`.

    `None` if it is neither; DuckDB may know it as a file.
    """
    try:
        one = group(name, folder=folder)
        return Named(one.dataset(), Thing("group", one.name, str(one.version)))
    except NotFoundError:
        pass
    if "/" in name:
        return None
    try:
        table: KeptTable = open_kept(Kept("table", name), folder)
    except (NotFoundError, InvalidInputError):
        return None
    return Named(table.read(), Thing("table", name.partition(":")[0], str(table.version)))


def words_of(definition: Definition) -> list[tuple[str, str]]:
    """Return the words by which a group is found, each with where it stands."""
    said = [("name", definition.name), ("description", definition.description), ("owner", definition.owner)]
    said += [("tag", tag) for tag in definition.tags]
    return said + [(f"feature {name}", name) for name in (*definition.key, *definition.features)]


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:20]) + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")

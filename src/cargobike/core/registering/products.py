"""What the products of this house bring with them, and which products there are.

A product describes itself in a `Product`: plain words and paths of modules. Reading such a description loads no
module behind it; `load` does, when a command is called, a page is asked for or an index is opened.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cargobike.core.registering.lazy import load

if TYPE_CHECKING:
    from cargobike.core.registering.kinds import Kind

ENTRY_POINTS: Final = "cargobike.products"
"""The group of entry points by which another package adds products: `name = "package.module:PRODUCT"`."""

PRODUCTS: Final = (
    "cargobike.demo.product:PRODUCT",
    "cargobike.experiments.product:PRODUCT",
    "cargobike.data.product:PRODUCT",
    "cargobike.features.product:PRODUCT",
    "cargobike.models.product:PRODUCT",
    "cargobike.serving.product:PRODUCT",
    "cargobike.monitoring.product:PRODUCT",
    "cargobike.pipelines.product:PRODUCT",
    "cargobike.sharing.product:PRODUCT",
    "cargobike.bench.product:PRODUCT",
    "cargobike.compat.product:PRODUCT",
    "cargobike.remote.product:PRODUCT",
    "cargobike.cli.product:PRODUCT",
)
"""The products that Cargobike itself has, in the order in which people meet them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the command line: the function, or group of commands, that has its name in a module.

    Where Python claims the name (`import`), the function has a `_` behind it.
    """

    name: str
    module: str
    help: str
    """The line in the list of commands."""
    after: str = ""
    """The command behind which it is listed; else behind all that were registered before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a product registers. Every path is `package.module` or `package.module:name`; an empty one means nothing."""

    name: str
    """Its folder, its part of an address, and the owner of its tables: lower case, no blanks."""
    title: str
    """What people call it."""
    extra: str = ""
    """What is installed with Cargobike, in brackets, so that it has its libraries; empty if it needs none."""
    commands: tuple[Command, ...] = ()
    kind: str = ""
    """The `Kind` of the things that it keeps in a project."""
    tables: str = ""
    """The `Tables` that it keeps in the index."""
    feeder: str = ""
    """The `Feeder` that writes what is given to a train function as `data` into a project."""
    keeper: str = ""
    """The `TableKeeper` that writes rows of other products as tables: a module with its functions."""
    models: str = ""
    """The `ModelKeeper` that keeps models which other products make or serve: a module with its functions."""
    trials: str = ""
    """A function from what a person calls a trial to a `TrainedTrial`, for the product that keeps models."""
    views: str = ""
    """The `ViewKeeper` that looks up features for other products: a module with its functions."""
    edges: str = ""
    """The `Edges` that it knows: a function that yields what was made from what in a project."""
    logs: str = ""
    """The `LogKeeper` by which other products follow what deployments were asked: a module with its functions."""
    followed: Mapping[str, str] = field(default_factory=dict)
    """What else can be followed as logs can: the path of a `LogKeeper` by the kind of its things."""
    triggers: Mapping[str, str] = field(default_factory=dict)
    """What looks whether something happened that sets off a pipeline: the path of a `Look` by the trigger's kind."""
    opened: Mapping[str, str] = field(default_factory=dict)
    """What opens things that a pipeline keeps by reference: the path of a function `(id, project)` by their kind."""
    pages: str = ""
    """What gives the web server its pages and routes."""
    find_page: str = ""
    """A function from what a person calls one of its things (an id, a name) to the address of that thing's page.

    Raises `NotFoundError` if there is no such thing.
    """
    thing_pages: Mapping[str, str] = field(default_factory=dict)
    """The address of the page of a thing in lineage by its kind, with `{name}`, `{version}` or `{id}` (both) in it."""
    afar: str = ""
    """What its commands may do for callers on other machines: a mapping from their words to `Afar`."""
    list_names: str = ""
    """A function that yields what its things can be called, each with a few words about it, for shells to complete."""


@functools.cache
def own_products() -> tuple[Product, ...]:
    """Return the products that Cargobike itself has."""
    return tuple(load(path) for path in PRODUCTS)


@functools.cache
def products() -> tuple[Product, ...]:
    """Return all products: our own, then those that installed packages add.

    A package whose description cannot be loaded is named in a warning and left out; nothing else depends on it.
    """
    mine = own_products()
    return (*mine, *_others({product.name for product in mine}))


@functools.cache
def kinds() -> tuple[Kind, ...]:
    """Return the kinds of things that the products keep in a project."""
    return tuple(load(product.kind) for product in products() if product.kind)


def kind_of(folder: Path) -> Kind:
    """Return the kind of the thing that lies in a folder of a project.

    Raises:
        KeyError: If no product keeps its things there.
    """
    return {kind.folder: kind for kind in kinds()}[folder.parent.name]


def commands(described: tuple[Product, ...]) -> dict[str, Command]:
    """Return the commands of products by name, in the order in which they are listed; the first of a name counts."""
    listed: dict[str, Command] = {}
    for product in described:
        for command in product.commands:
            if command.name in listed:
                continue
            names = list(listed)
            place = names.index(command.after) + 1 if command.after in listed else len(names)
            items = list(listed.items())
            listed = dict([*items[:place], (command.name, command), *items[place:]])
    return listed


def _others(taken: set[str]) -> Iterator[Product]:
    # Reading the metadata of all packages takes a moment that a command of our own need not wait for.
    from importlib.metadata import entry_points  # noqa: PLC0415

    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            product = point.load()
        except Exception as error:  # noqa: BLE001 - the other products work without it
            _log.warning("The product %s (%s) cannot be loaded: %r", point.name, point.value, error)
            continue
        if not isinstance(product, Product) or product.name in taken:
            _log.warning("The product %s (%s) is left out: no Product, or its name is taken", point.name, point.value)
            continue
        taken.add(product.name)
        yield product

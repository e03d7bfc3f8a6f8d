"""Features that a product looks up for others: where what keeps features and what serves models meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products


class Lookup(Protocol):
    """Finds the features of a view by their keys: one prepared plan, used from one thread."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What a row must have so that its features can be found."""
        ...

    @property
    def request_fields(self) -> tuple[str, ...]:
        """What a row must have besides, for features that are computed from the request."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The features of a row that was found, in the order in which a model takes them."""
        ...

    def rows(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the features for each request, in their order; what is not there is `None`."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class ViewKeeper(Protocol):
    """The door of the product that keeps features."""

    def open_lookup(self, view: str, project: ProjectFolder) -> Lookup:
        """Return the look-up of a view, `team_value` or `team_value:2`; raises `NotFoundError`."""
        ...


def view_keeper() -> ViewKeeper:
    """Return the door of the product that keeps features."""
    keeper: ViewKeeper = next(load(product.views) for product in products() if product.views)
    return keeper

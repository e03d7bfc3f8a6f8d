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

    def open_lookup(self, view: str, project: ProjectFolder, *, dataset: str = "") -> Lookup:
        """Return the look-up of a view.

        Args:
            view: Its name, `team_value`, or name and version, `team_value:2`.
            project: The project that has it.
            dataset: The training dataset, `team_value:3`, for which its transformations were fitted; by default the
                last one. Name the one that the model was trained on: a later one has other means and categories.

        Raises:
            NotFoundError: If there is no such view, or it was not fitted for that dataset.
            InvalidInputError: If it has transformations that were never fitted, or functions that cannot be imported.
            StoreError: If a group was never materialized on this host.
        """
        ...

    def bound_to_host(self, view: str, project: ProjectFolder) -> dict[str, str]:
        """Return the groups of a view whose rows other hosts cannot look up, each with where they are.

        Raises:
            NotFoundError: If there is no such view.
        """
        ...


def view_keeper() -> ViewKeeper:
    """Return the door of the product that keeps features."""
    keeper: ViewKeeper = next(load(product.views) for product in products() if product.views)
    return keeper

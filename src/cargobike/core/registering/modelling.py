"""Models that a product keeps for others: where what trains, what keeps and what serves models meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.core.registering.tracing import Thing
from cargobike.core.signatures import Signature

Predictor = Callable[[list[Any]], Sequence[Any]]
"""Takes a list of rows as `Signature` describes them, and returns one answer for each, in their order.

A predictor with an attribute `stream` can also answer one row piece by piece: `stream(row)` yields plain values.
"""


class KeptModel(Protocol):
    """A version of a model: it never changes."""

    @property
    def name(self) -> str:
        """Its name in the project."""
        ...

    @property
    def version(self) -> int:
        """Its number, from 1."""
        ...

    @property
    def fingerprint(self) -> str:
        """The same for equal content."""
        ...

    @property
    def flavour(self) -> str:
        """How it is kept, such as `torch` or `sklearn`; registered in `models/flavours`."""
        ...

    @property
    def signature(self) -> Signature | None:
        """What it takes and returns; `None` if that is not known."""
        ...

    @property
    def example(self) -> list[Any] | None:
        """A few rows to try it with; `None` if none were given."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]:
        """What was measured of it."""
        ...

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules to import before it is loaded, so that processes can be forked warm: `("torch",)`."""
        ...

    @property
    def requirements(self) -> str:
        """The packages that it needs, as a lock file; empty if they are not known."""
        ...

    def copy_to(self, project: ProjectFolder) -> None:
        """Write it into another project, under the same name and number: for images that serve it."""
        ...

    def predictor(self, *, trust: bool = False) -> Predictor:
        """Load it, and return what predicts.

        Raises:
            UntrustedError: If loading it means running code of a file that was brought in from elsewhere, and `trust`
                was not said.
        """
        ...


class ModelKeeper(Protocol):
    """The door of the product that keeps models."""

    def get(self, reference: str) -> KeptModel:
        """Return a version: `digits:3`, `digits@champion`, or the newest, `digits`; raises `NotFoundError`."""
        ...

    def register(
        self,
        name: str,
        model: Any = None,
        *,
        files: Any = None,
        metrics: Mapping[str, float] | None = None,
        signature: Any = None,
        example: Any = None,
        description: str = "",
        made_from: Sequence[Thing] = (),
        requirements: str = "",
        project: ProjectFolder | None = None,
    ) -> KeptModel:
        """Keep a model as the next version of its name, which appears at once or not at all."""
        ...


def model_keeper() -> ModelKeeper:
    """Return the door of the product that keeps models."""
    keeper: ModelKeeper = next(load(product.models) for product in products() if product.models)
    return keeper

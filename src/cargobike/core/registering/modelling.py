"""Models that a product keeps for others: where what trains, what keeps and what serves models meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.core.registering.tracing import Thing
from cargobike.core.signatures import Signature

Predictor = Callable[[list[Any]], Sequence[Any]]
"""Takes a list of rows as `Signature` describes them, and returns one answer for each, in their order.

A predictor with an attribute `stream` can also answer one row piece by piece: `stream(row)` yields plain values.
"""


class Training(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The trial that made a model, as far as that is known.

    Attributes:
        experiment: Id of the experiment; empty if it was made outside one.
        trial: Number of the trial.
        attempt: Which attempt of it, if the model was kept while it ran.
        function: What the train function is called.
        params: The hyperparameters.
        code: Fingerprint of the code that was run.
        commit: The commit of the user's repository, if it is in one.
        data: What it was trained on, as people call it.
        data_version: The version of that.
        data_fingerprint: What its content was.
    """

    experiment: str = ""
    trial: int | None = None
    attempt: int = 0
    function: str = ""
    params: dict[str, Any] = {}
    code: str = ""
    commit: str = ""
    data: str = ""
    data_version: str = ""
    data_fingerprint: str = ""


class TrainedTrial(Protocol):
    """A trial that a model can be made from."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """What its train function returned."""
        ...

    def trained(self) -> Trained:
        """Return what is known of it, and what it left that can be kept as a model."""
        ...


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial leaves behind for the product that keeps models.

    Attributes:
        training: What is known of the trial.
        metrics: What was measured.
        requirements: The packages that it ran with, as a lock file.
        made_from: Other things of the project that it was trained on.
        packed: Folders in which the train function has packed models, by the models' names.
        load_state: Loads its best checkpoint; `None` if it saved none.
        project: The project of its experiment.
    """

    training: Training
    metrics: dict[str, float]
    requirements: str
    made_from: tuple[Thing, ...]
    packed: dict[str, Path]
    load_state: Callable[[], Any] | None
    project: ProjectFolder


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

    def promote(self, alias: str, *, when: str = "") -> Any:
        """Let an alias point at it, if it passes a gate; raises `GateError`."""
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
        trial: TrainedTrial | None = None,
        factory: Any = None,
        signature: Any = None,
        example: Any = None,
        description: str = "",
        tags: Any = (),
        made_from: Sequence[Thing] = (),
        requirements: str = "",
        project: ProjectFolder | None = None,
    ) -> KeptModel:
        """Keep a model as the next version of its name, which appears at once or not at all."""
        ...

    def export_to(self, reference: str, path: Path) -> Path:
        """Write a version with everything that is known of it into a folder that is not there yet."""
        ...

    def import_from(self, path: Path, name: str = "") -> KeptModel:
        """Take what `export_to` wrote as the next version of its name; code in it is not trusted."""
        ...

    def check_name(self, name: str) -> str:
        """Return the name of a model; raises `InvalidInputError` if it can be none."""
        ...

    def pack(self, folder: Path, name: str, model: Any = None, **said: Any) -> None:
        """Write a model and what is said about it into a folder of this machine, to be registered later.

        What can be said is what `register` takes.
        """
        ...

    def made_by(self, step: str, name: str, project: ProjectFolder | None = None) -> KeptModel | None:
        """Return the version of a model that a step of a pipeline registered; `None` if there is none."""
        ...

    def register_packed(self, folder: Path, trained: Trained) -> KeptModel:
        """Register what `pack` wrote; the same trial's model is registered once, however often this is called."""
        ...


def model_keeper() -> ModelKeeper:
    """Return the door of the product that keeps models."""
    keeper: ModelKeeper = next(load(product.models) for product in products() if product.models)
    return keeper


def find_trial(reference: str) -> TrainedTrial:
    """Return the trial that a person means by `EXPERIMENT/NUMBER`, or the best one of `EXPERIMENT`.

    Raises:
        NotFoundError: If there is none.
    """
    find: Callable[[str], TrainedTrial] = next(load(product.trials) for product in products() if product.trials)
    return find(reference)

"""The door of models: finding versions, comparing them, removing them."""

from __future__ import annotations

import builtins
import math
import re
from typing import Final, Literal

from cargobike.core.errors import InvalidInputError, NotFoundError, nearest, nearest_names
from cargobike.models import removing
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.catalogue.summary import decode_summary
from cargobike.models.facts import AliasMoved, AliasRemoved
from cargobike.models.naming import check_alias, check_name, read_reference
from cargobike.models.promotion import promoting
from cargobike.models.version import ModelVersion
from cargobike.store.files import project

_SMALLER_IS_BETTER: Final = re.compile(r"loss|error|rmse|mse|mae|latency|perplexity|_(ms|s|bytes)$")
"""What the names of metrics contain of which less is better, unless said otherwise."""


def get(reference: str) -> ModelVersion:
    """Return a version: `digits:3`, `digits@champion`, or the newest, `digits`.

    Raises:
        NotFoundError: If there is no such model, version or alias, or it was removed; says which there are.
        InvalidInputError: If the text cannot be understood.

    Example:
        >>> from cargobike import models
        >>> _ = models.register("twice", lambda rows: [2 * row for row in rows])
        >>> models.get("twice").version
        1
    """
    catalogue = Catalogue(project.current())
    model, version = catalogue.resolve(read_reference(reference))
    if version in model.state.removed:
        raise NotFoundError(f"{model.name}:{version} was removed.", wanted=reference)
    return ModelVersion(catalogue, model, version)


def list(name: str | None = None, *, removed: bool = False) -> builtins.list[ModelVersion]:
    """Return the models of the project, of each its newest version; or all versions of one model, the newest first.

    Args:
        name: The model whose versions are wanted; all models if left out.
        removed: Whether versions whose files were deleted are listed, too.

    Raises:
        NotFoundError: If there is no model of that name.
    """
    catalogue = Catalogue(project.current())
    if name is None:
        return [ModelVersion(catalogue, model, version, summary=data) for model, version, data in catalogue.newest()]
    model, summaries = catalogue.summaries(name)
    gone = {} if removed else model.state.removed
    return [
        ModelVersion(catalogue, model, version, summary=data)
        for version, data in reversed(summaries)
        if version not in gone
    ]


def best(name: str, metric: str, direction: Literal["max", "min"] | None = None) -> ModelVersion:
    """Return the version of a model with the best value of a metric; of equal ones the newest.

    Args:
        name: The model.
        metric: A metric that its versions were registered with.
        direction: Whether a higher (`"max"`) or a lower value is better; by default `"min"` for names such as `loss`,
            `rmse` or `latency_ms`, and else `"max"`.

    Raises:
        NotFoundError: If no version has the metric; says which they have.
    """
    if direction not in {None, "max", "min"}:
        raise InvalidInputError(f"direction={direction!r} was given; allowed are 'max' and 'min'.")
    direction = direction or ("min" if _SMALLER_IS_BETTER.search(metric.lower()) else "max")
    sign = 1 if direction == "max" else -1
    catalogue = Catalogue(project.current())
    model, encoded = catalogue.summaries(name)
    summaries = [decode_summary(data) for version, data in encoded if version not in model.state.removed]
    values = [(float(one.metrics.get(metric, math.nan)), one.version) for one in summaries]
    measured = [(sign * value, version) for value, version in values if not math.isnan(value)]
    if not measured:
        metrics = sorted({key for one in summaries for key in one.metrics})
        raise NotFoundError(
            f"No version of the model {name} has the metric {metric!r}; they have {', '.join(metrics) or 'none'}."
            f"{nearest(metric, metrics)}",
            wanted=metric,
            nearest=nearest_names(metric, metrics),
        )
    return ModelVersion(catalogue, model, max(measured)[1])


def history(name: str, alias: str = "") -> builtins.list[AliasMoved | AliasRemoved]:
    """Return all moves of a model's aliases, or of one of them, the oldest first."""
    if alias:
        check_alias(alias)
    moves = Catalogue(project.current()).model(check_name(name)).state.moves
    return [move for move in moves if not alias or move.alias == alias]


def remove(reference: str) -> None:
    """Delete the files of a version, `digits:3`; what was known of it stays, and its number is never given again.

    Raises:
        InvalidInputError: If an alias points at it or a deployment uses it, or no version is named.
        NotFoundError: If there is no such version.
    """
    wanted = read_reference(reference)
    if wanted.version is None:
        raise InvalidInputError(
            f"{reference!r} was given; name the version that is to be removed, such as {wanted.name}:1. "
            f"An alias is taken away by models.remove_alias({wanted.name!r}, …)."
        )
    removing.remove_version(Catalogue(project.current()), wanted.name, wanted.version)


def remove_alias(name: str, alias: str) -> int:
    """Take an alias away, and return the version that it pointed at.

    Raises:
        NotFoundError: If there is no such alias.
    """
    return promoting.remove_alias(Catalogue(project.current()), check_name(name), alias)


def retain(name: str | None = None, *, keep: int = 5) -> builtins.list[str]:
    """Remove all versions but the newest few; never what an alias points at or a deployment uses.

    Args:
        name: The model; all models if left out.
        keep: How many of the newest versions of each stay.

    Returns:
        What was removed, such as `["digits:1", "digits:2"]`.
    """
    if type(keep) is not int or keep < 1:
        raise InvalidInputError(f"keep={keep!r} was given; at least one version is kept.")
    catalogue = Catalogue(project.current())
    names = [check_name(name)] if name is not None else [model.name for model in catalogue.models()]
    return [f"{each}:{version}" for each in names for version in removing.retain(catalogue, each, keep)]

"""Turns what a task made into plain data: things of a project become references to them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

LARGEST: Final = 256 * 1024
"""How many characters an answer may have: it becomes an XCom, a row in Airflow's database."""


class NotPlainError(TypeError):
    """What a function returned cannot be handed to other tasks."""


def plain(value: Any) -> Any:
    """Return a value as plain data.

    Raises:
        NotPlainError: If it is something that cannot be written as such, or is too long for an XCom.
    """
    converted = _plain(value, "what was returned", 0)
    if (size := len(json.dumps(converted))) > LARGEST:
        raise NotPlainError(
            f"What was returned has {size:,} characters; XComs lie in Airflow's database and may have {LARGEST:,} "
            "here. Keep it in the project (a table, a feature group, a file under project.path(…)), return its name."
        )
    return converted


def _plain(value: Any, where: str, depth: int) -> Any:
    if depth > 50:
        raise NotPlainError(f"{where} is nested more than 50 deep, or contains itself.")
    if value is None or type(value) in {bool, int, str}:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if (reference := reference_of(value)) is not None:
        return reference
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, f"{where}[{key!r}]", depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one, f"{where}[{place}]", depth + 1) for place, one in enumerate(value)]
    if hasattr(value, "item") and getattr(value, "size", 0) == 1:  # a number of NumPy or torch
        return _plain(value.item(), where, depth + 1)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__fspath__"):
        return str(value)
    raise NotPlainError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which other tasks cannot be given. Return "
        "numbers, texts, lists and dicts, or things of the project, of which references are handed on: results, "
        "model versions, deployments, feature groups."
    )


def reference_of(value: Any) -> dict[str, Any] | None:
    """Return a reference to a thing that a project keeps; `None` if it is no such thing."""
    kind = type(value)
    if not kind.__module__.startswith("cargobike."):
        return None
    describe = _DESCRIBED.get(kind.__name__)
    if describe is not None:
        return describe(value)
    if callable(kept := getattr(value, "kept_as", None)):
        named = kept()
        return {"kind": named.kind, "id": named.id}
    return None


def experiment_reference(result: Any) -> dict[str, Any]:
    """Return a reference to an experiment, with what the next tasks ask for."""
    best = result.best
    return {
        "kind": "experiment",
        "id": result.id,
        "name": result.name,
        "state": str(result.state),
        "trials": len(result.trials),
        "best": None
        if best is None
        else {
            "trial": best.number,
            "params": _plain_or_words(dict(best.params)),
            "value": best.value,
            "metrics": {name: float(number) for name, number in dict(best.metrics).items()},
        },
    }


def model_reference(version: Any) -> dict[str, Any]:
    """Return a reference to a version of a model."""
    return {
        "kind": "model",
        "id": version.reference,
        "name": version.name,
        "version": version.version,
        "metrics": {name: float(number) for name, number in dict(version.metrics).items()},
        "made_from": [
            f"{source.kind} {source.name}" + (f":{source.version}" if source.version else "")
            for source in version.sources
        ],
    }


def deployment_reference(deployment: Any) -> dict[str, Any]:
    """Return a reference to a deployment."""
    status = deployment.status()
    model = status.model.split(":")[0].split("@")[0]
    return {
        "kind": "deployment",
        "id": deployment.name,
        "name": deployment.name,
        "url": status.url,
        "state": str(status.state),
        "model": f"{model}:{status.version}",
        "version": status.version,
    }


def group_reference(group: Any) -> dict[str, Any]:
    """Return a reference to a feature group as it is now."""
    return {"kind": "group", "id": f"{group.name}:{group.version}", "name": group.name, "commit": group.commit}


def dataset_reference(dataset: Any) -> dict[str, Any]:
    """Return a reference to a training dataset."""
    return {
        "kind": "dataset",
        "id": f"{dataset.name}:{dataset.version}",
        "name": dataset.name,
        "version": dataset.version,
    }


def table_reference(table: Any) -> dict[str, Any]:
    """Return a reference to a version of a table."""
    return {
        "kind": "table",
        "id": f"{table.name}:{table.version}",
        "name": table.name,
        "version": table.version,
        "rows": table.num_rows,
    }


_DESCRIBED: Final = {
    "Result": experiment_reference,
    "ModelVersion": model_reference,
    "Deployment": deployment_reference,
    "Group": group_reference,
    "TrainingDataset": dataset_reference,
    "Table": table_reference,
}


def _plain_or_words(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data; of those that are none, how they are shown."""
    shown = {}
    for name, value in params.items():
        try:
            shown[name] = _plain(value, name, 0)
        except NotPlainError:
            shown[name] = repr(value)
    return shown

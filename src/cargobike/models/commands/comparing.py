"""`cargobike models compare`."""

from __future__ import annotations

from typing import Any

import typer

from cargobike.cli.printing import cell, print_json, print_table, table
from cargobike.core.values.words import MISSING, number
from cargobike.models import front
from cargobike.models.commands.naming import Json, Versions
from cargobike.models.version import ModelVersion


def compare(versions: Versions, as_json: Json = False) -> None:
    """Show versions side by side: metrics, parameters, flavour, signature, where they came from."""
    found = [front.get(version) for version in versions]
    rows = _rows(found)
    if as_json:
        columns = [{name: values[index] for name, values in rows.items()} for index in range(len(found))]
        print_json([{"model": one.reference, **column} for one, column in zip(found, columns, strict=True)])
        return
    if len(found) < 2:
        raise typer.BadParameter("give at least two versions, such as digits:3 digits@champion")
    made = table("", *_headings(found))
    for name, values in rows.items():
        differs = len({str(value) for value in values}) > 1
        made.add_row(cell(name, "bold" if differs else ""), *(cell(_shown(value)) for value in values))
    print_table(made)


def _headings(versions: list[ModelVersion]) -> list[str]:
    names: list[str] = []
    for version in versions:
        name = version.reference
        while name in names:
            name += " "  # the same version twice
        names.append(name)
    return names


def _rows(versions: list[ModelVersion]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"aliases": [", ".join(version.aliases) for version in versions]}
    for name in sorted({name for version in versions for name in version.metrics}):
        rows[name] = [version.metrics.get(name) for version in versions]
    for name in sorted({name for version in versions for name in version.training.params}):
        rows[f"parameter {name}"] = [version.training.params.get(name) for version in versions]
    rows["flavour"] = [version.flavour for version in versions]
    rows["size_bytes"] = [version.size_bytes for version in versions]
    rows["same signature"] = [version.signature == versions[0].signature for version in versions]
    rows["same content"] = [version.fingerprint == versions[0].fingerprint for version in versions]
    rows["experiment"] = [version.training.experiment for version in versions]
    rows["trial"] = [version.training.trial for version in versions]
    rows["data"] = [version.training.data for version in versions]
    rows["code"] = [version.training.code[:12] for version in versions]
    return {name: values for name, values in rows.items() if any(value is not None and value != "" for value in values)}


def _shown(value: Any) -> str:
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)

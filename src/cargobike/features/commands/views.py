"""`cargobike features views | datasets | show` for what models take and learn from."""

from __future__ import annotations

from typing import Any

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.values.times import on_calendar
from cargobike.core.values.words import MISSING
from cargobike.features.commands.naming import Json, named_version
from cargobike.features.datasets import describing as describing_datasets
from cargobike.features.datasets.finding import list_training_datasets
from cargobike.features.datasets.record import find_dataset
from cargobike.features.views import describing as describing_views
from cargobike.features.views.front import list_views
from cargobike.features.views.record import find_view
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


def views(as_json: Json = False) -> None:
    """List the views of the project, each in its newest version."""
    found = list_views()
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "version": one.version,
                    "features": one.features,
                    "groups": one.groups,
                    "label": one.label,
                }
                for one in found
            ]
        )
        return
    made = table("VIEW", "LABEL", "GROUPS", "FEATURES", shortened=("FEATURES",))
    for one in found:
        made.add_row(
            cell(f"{one.name}:{one.version}", "bold"),
            cell(one.label),
            cell(", ".join(one.groups)),
            cell(", ".join(one.features)),
        )
    print_table(made)


def datasets(as_json: Json = False) -> None:
    """List the training datasets of the project in all versions."""
    found = list_training_datasets()
    if as_json:
        print_json(
            [
                {
                    "id": one.id,
                    "view": f"{one.record.view}:{one.record.view_version}",
                    "parts": {part.name: part.rows for part in one.record.parts},
                    "fingerprint": one.fingerprint,
                    "commits": one.commits,
                    "written_at": on_calendar(one.record.at).isoformat(timespec="seconds"),
                }
                for one in found
            ]
        )
        return
    made = table("DATASET", "VIEW", "PARTS", "COMMITS")
    for one in found:
        made.add_row(
            cell(one.id, "bold"),
            cell(f"{one.record.view}:{one.record.view_version}"),
            cell(", ".join(f"{part.name} {part.rows:,}" for part in one.record.parts)),
            cell(", ".join(f"{name}@{number}" for name, number in one.commits.items())),
        )
    print_table(made)


def show_view(name: str, as_json: bool) -> None:
    """Show one view: its features, where they come from, what is done to them."""
    storage = storage_of(project.current())
    facts = describing_views.described(storage, find_view(storage, *named_version("view", name)))
    if as_json:
        print_json(facts)
        return
    label = f", learns {facts['label']}" if facts["label"] else ""
    console().print(cell(f"{facts['name']}:{facts['version']}: a view{label}", "bold"))
    if facts["description"]:
        console().print(cell(facts["description"]))
    made = table("FEATURE", "TYPE", "FROM", "TRANSFORMATION")
    for column in facts["columns"]:
        made.add_row(
            cell(column["name"]),
            cell(column["type"] or MISSING),
            cell(_origin(column)),
            cell(column["transformation"] or MISSING),
        )
    print_table(made)
    if facts["fitted_for"]:
        console().print(cell(f"fitted for {', '.join(facts['fitted_for'])}"))


def show_dataset(name: str, as_json: bool) -> None:
    """Show one training dataset: its parts, what it was made from."""
    storage = storage_of(project.current())
    facts = describing_datasets.described(storage, find_dataset(storage, *named_version("training dataset", name)))
    if as_json:
        print_json(facts)
        return
    view = f"{facts['view']}:{facts['view_version']}"
    console().print(cell(f"{facts['id']}: {facts['rows']:,} rows of the view {view}", "bold"))
    words = [f"split by {facts['by']}, seed {facts['seed']}", f"fingerprint {facts['fingerprint']}"]
    words += [f"made of {one['group']}:{one['version']} at commit {one['commit']}" for one in facts["commits"]]
    for word in words:
        console().print(cell(word))
    made = table("PART", "ROWS", "FINGERPRINT", "AT", right=("ROWS",))
    for part in facts["part_list"]:
        made.add_row(cell(part["name"]), cell(f"{part['rows']:,}"), cell(part["fingerprint"]), cell(part["url"]))
    print_table(made)


def _origin(column: dict[str, Any]) -> str:
    if not column["group"]:
        return f"computed by {column['computed_by']}"
    called = "" if column["feature"] == column["name"] else f".{column['feature']}"
    return f"{column['group']}:{column['group_version']}{called}"

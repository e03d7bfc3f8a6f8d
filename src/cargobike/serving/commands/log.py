"""`cargobike deployments log` and `cargobike deployments tidy`: what a deployment was asked and has answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.errors import InvalidInputError
from cargobike.core.values.words import MISSING
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.reading import read_log
from cargobike.serving.inference_log.upkeep import tidy as tidy_files
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of

_SHOWN_NUMBERS = 4

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment.")]


def log(
    name: Name,
    *,
    since: Annotated[str, typer.Option(help="From when on: 30min, 12h, 7d, or a time in UTC.")] = "",
    until: Annotated[str, typer.Option(help="Until when.")] = "",
    version: Annotated[int | None, typer.Option(help="Only what this version of the model answered.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show only the last ones; 0 shows all.")] = 20,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a .parquet or .csv file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a deployment was asked and has answered."""
    rows = read_log(name, since or None, until or None, version=version)
    if output is not None:
        _write(rows, output)
        console().print(f"{rows.num_rows} rows are in {output}.")
        return
    shown = rows.slice(max(0, rows.num_rows - limit)) if limit else rows
    if as_json:
        print_json([_plain(row) for row in shown.to_pylist()])
        return
    if not rows.num_rows:
        console().print(cell(f"{name} has answered no requests that were kept, in this time."))
        return
    grid = table(
        "TIME (UTC)", "REQUEST", "VERSION", "STATUS", "LATENCY", "INPUT", "OUTPUT", right=("VERSION", "LATENCY")
    )
    for row in shown.to_pylist():
        grid.add_row(
            cell(row["at"].strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]),
            cell(row["request_id"]),
            cell(row["version"]),
            cell(row["status"]),
            cell(f"{row['latency_ms']:.1f} ms"),
            cell(_side(row, "input")),
            cell(_side(row, "output")),
        )
    print_table(grid)
    if shown.num_rows < rows.num_rows:
        console().print(f"{rows.num_rows - shown.num_rows} more; --limit 0 shows all.", style="dim")


def tidy(
    name: Name,
    *,
    keep_days: Annotated[float, typer.Option(min=0, help="Delete days that are older; 0 keeps all.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Merge the small files of a deployment's log, and delete what is too old."""
    read_log(name, "1s", columns=["at"])  # says so if there is no such deployment
    done = tidy_files(storage_of(project.current()), log_folder(name), keep_days=keep_days, whole=True)
    if as_json:
        print_json({key: getattr(done, key) for key in done.__struct_fields__})
        return
    words = f"{done.merged} files became {done.written}, {done.deleted} were deleted"
    console().print(f"{words}; {done.days_deleted} days are gone." if done.days_deleted else f"{words}.")


def _write(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    elif path.suffix == ".csv":
        pa_csv.write_csv(_flat(rows), path)
    else:
        raise InvalidInputError(f"{path} ends in {path.suffix!r}; write to a file that ends in .parquet or .csv.")


def _flat(rows: pa.Table) -> pa.Table:
    """Return a table whose lists are texts, since CSV has none."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else str(value) for value in rows.column(place).to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": row["at"].isoformat()}


def _side(row: dict[str, Any], side: str) -> str:
    """Return a row or an answer in a few words."""
    if row[side] is not None:
        return str(row[side])
    parts = {key.partition(".")[2]: value for key, value in row.items() if key.startswith(f"{side}.")}
    words = [f"{name}={_short(value)}" for name, value in parts.items() if value is not None]
    return ", ".join(words) or MISSING


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        shown = ", ".join(_short(item) for item in value[:_SHOWN_NUMBERS])
        return f"[{shown}, … {len(value)} values]" if len(value) > _SHOWN_NUMBERS else f"[{shown}]"
    return str(value)

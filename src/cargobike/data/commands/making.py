"""`cargobike data write` and `cargobike data pack`."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import print_json
from cargobike.data.commands.progress import progress_line
from cargobike.data.keeping import kept
from cargobike.data.tables.packing import Label
from cargobike.data.tables.packing import pack as pack_files
from cargobike.data.tables.table import Table
from cargobike.data.tables.writing import write as write_table

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
_Table = Annotated[str, typer.Argument(metavar="TABLE", help="A name, kept in the project; or a path or URL.")]


def write(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Files, a glob, a URL or a table.")],
    table: _Table,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Write files (Parquet, CSV, JSON-lines) as the next version of a table."""
    with progress_line("written", quiet=quiet or as_json) as line:
        made = write_table(sources if len(sources) > 1 else sources[0], table, progress=line)
    _say(made, as_json)


def pack(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder, a glob, or either on a storage.")],
    table: _Table,
    *,
    no_label: Annotated[bool, typer.Option("--no-label", help="Do not take labels from folders.")] = False,
    threads: Annotated[int, typer.Option(help="How many files are read at once.", min=1, max=256)] = 16,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Pack many small files into the next version of a table: file, label, bytes."""
    label: Label = None if no_label else "folder"
    with progress_line("packed", quiet=quiet or as_json) as line:
        made = pack_files(folder, table, label=label, threads=threads, progress=line)
    _say(made, as_json)


def _say(table: Table, as_json: bool) -> None:
    if as_json:
        print_json(kept(table).as_json())
        return
    size = f"{table.size_bytes / 1e6:,.1f} MB"
    typer.echo(f"Wrote {table.name}:{table.version}: {table.num_rows:,} rows, {len(table.files)} files, {size}.")

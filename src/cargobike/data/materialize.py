"""Data that is given to an experiment, written once into the project as a table, for all readers.

Its name is an id that nothing else has. A project on shared storage gets it there at once, so that workers anywhere
read it in place.
"""

from __future__ import annotations

import uuid

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.feeding import Feed
from cargobike.data.sources.source import Source
from cargobike.data.tables.addresses import named
from cargobike.data.tables.spark_writing import is_spark
from cargobike.data.tables.table import Table
from cargobike.data.tables.writing import write_to


def materialize(data: object, project: ProjectFolder) -> Feed:
    """Write data as a table into the project, and describe its files.

    Args:
        data: What `keep` takes.
        project: The project.

    Raises:
        InvalidInputError: If the data is of another type, or has no rows.
    """
    return described(keep(data, project))


def described(table: Table) -> Feed:
    """Return the files of a table of the project, for workers that fetch them from there."""
    return Feed(table.address.in_project, [file.path for file in table.files], [file.rows for file in table.files])


def keep(data: object, project: ProjectFolder) -> Table:
    """Write data as a table into the project, under a new id.

    Args:
        data: A Spark, pandas or polars DataFrame, a pyarrow Table, or any source of rows.
        project: The project; the files go to a new folder under its `data/`.

    Raises:
        InvalidInputError: If the data is of another type, or has no rows.
    """
    if not is_frame(data):
        raise InvalidInputError(
            f"data={type(data).__name__} was given; give a Spark DataFrame, a pandas DataFrame or a pyarrow Table."
        )
    return write_to(named(uuid.uuid4().hex[:12], project), data, may_be_empty=False)


def is_frame(data: object) -> bool:
    """Tell whether something is a table in memory or in Spark, or a source of rows."""
    module = type(data).__module__.partition(".")[0]
    if is_spark(data) or isinstance(data, Source):
        return True
    return isinstance(data, pa.Table) or (module in {"pandas", "polars"} and hasattr(data, "columns"))

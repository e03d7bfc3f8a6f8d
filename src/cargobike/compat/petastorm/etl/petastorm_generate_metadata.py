"""The command that adds metadata to a data set that has none, or whose files have changed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pydoc import locate
from typing import Any

from cargobike.compat.petastorm.etl.dataset_metadata import get_schema_from_dataset_url, materialize_dataset
from cargobike.compat.petastorm.unischema import Unischema
from cargobike.core.errors import InvalidInputError


def generate_petastorm_metadata(
    spark: Any,
    dataset_url: str,
    unischema_class: str | None = None,
    use_summary_metadata: bool = False,
    hdfs_driver: str = "libhdfs3",
) -> None:
    """Add the metadata of a data set that lies there already.

    Args:
        spark: Without effect: `None` will do.
        dataset_url: Where it is.
        unischema_class: The full name of its schema, such as `garden.schemas.Garden`; by default the one that it has.
        use_summary_metadata: Without effect.
        hdfs_driver: Without effect.

    Raises:
        InvalidInputError: If the name is not that of a schema.
    """
    if unischema_class:
        schema: Any = locate(unischema_class)
        if not isinstance(schema, Unischema):
            raise InvalidInputError(
                f"{unischema_class!r} is not an instance of a Unischema; give the full name of one, such as "
                "garden.schemas.Garden."
            )
    else:
        schema = get_schema_from_dataset_url(dataset_url)
    with materialize_dataset(None, dataset_url, schema):
        pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="petastorm_generate_metadata", description="Add necessary petastorm metadata to an existing data set."
    )
    parser.add_argument("--dataset_url", required=True, help="the address of the data set's folder")
    parser.add_argument("--unischema_class", help="the full name of its schema; by default the one that it has")
    for name in ("--master", "--spark-driver-memory", "--hdfs-driver"):
        parser.add_argument(name, help="without effect: no Spark is needed")
    parser.add_argument("--use-summary-metadata", action="store_true", help="without effect")
    given = parser.parse_args(arguments)
    generate_petastorm_metadata(None, given.dataset_url, given.unischema_class)


if __name__ == "__main__":
    main()

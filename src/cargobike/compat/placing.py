"""Where calls of older libraries run, which had no argument for it: they ran on the Spark that was there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError


def placement(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `engine` and `workers` for one of our own calls, as far as something says so.

    What a call gives goes first, then `CARGOBIKE_COMPAT_ENGINE` and `CARGOBIKE_COMPAT_WORKERS`. Otherwise it runs on
    Spark if the program has a Spark context, as it did with the older library, and on this machine if not.

    Args:
        given: The arguments of our own calls that a script gives beside the older ones.
    """
    chosen: dict[str, Any] = {}
    workers = os.environ.get(settings.COMPAT_WORKERS, "")
    if workers and "workers" not in given:
        if not workers.isdecimal():
            raise InvalidInputError(f"{settings.COMPAT_WORKERS}={workers!r}: give a whole number, such as 4.")
        chosen["workers"] = int(workers)
    engine = os.environ.get(settings.COMPAT_ENGINE, "")
    asks_for_here = given.get("workers", chosen.get("workers")) == 0
    if engine or (_has_spark() and not asks_for_here):
        chosen["engine"] = engine or "spark"
    return {**chosen, **given}


def _has_spark() -> bool:
    """Tell whether this program has started Spark; it is not imported for that."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None

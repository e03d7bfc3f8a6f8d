"""Which Python runs our tasks: where Spark runs on this machine, the one that runs this process.

Spark takes the first `python3` that an executor finds, which knows nothing of the virtual environment of the driver.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

_lending = threading.Lock()


def is_on_this_machine(master: str) -> bool:
    """Tell whether a master runs all tasks on this machine.

    Example:
        >>> [is_on_this_machine(master) for master in ("local[4]", "spark://127.0.0.1:7077", "spark://head:7077")]
        [True, True, False]
    """
    if master.startswith("local"):
        return True
    if not master.startswith("spark://"):
        return False
    hosts = [place.rpartition(":")[0] for place in master.removeprefix("spark://").split(",")]
    return all(host in ("localhost", "[::1]") or host.startswith("127.") for host in hosts)


@contextlib.contextmanager
def python_for_tasks(context: SparkContext) -> Iterator[None]:
    """Have tasks that are made meanwhile run under our own Python, if Spark is here and no other Python was named."""
    is_named = "PYSPARK_PYTHON" in os.environ or bool(context.getConf().get("spark.pyspark.python"))
    if is_named or not sys.executable or not is_on_this_machine(context.master):
        yield
        return
    with _lending:
        before = context.pythonExec
        context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = before

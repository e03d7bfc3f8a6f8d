"""The names of hops (HopsML) over our own calls.

Scripts write `from hops import experiment, hdfs` or `import hops.hdfs`: each module is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

MODULES: Final = frozenset(
    {
        "allreduce",
        "beam",
        "constants",
        "dataset",
        "devices",
        "elasticsearch",
        "exceptions",
        "experiment",
        "facets",
        "featurestore",
        "hdfs",
        "hive",
        "jobs",
        "kafka",
        "model",
        "numpy_helper",
        "pandas_helper",
        "project",
        "secret",
        "serving",
        "tensorboard",
        "tflauncher",
        "tls",
        "user",
        "util",
        "xattr",
    }
)
"""The modules that scripts import from hops."""


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})

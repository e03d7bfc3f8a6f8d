"""Start the program: `python -P path/to/program`, whatever else that Python has installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_NAME = "cargobike_airflow_program"


def _start() -> int:
    """Load this folder as a package that shadows no module of the user, and run it."""
    folder = Path(__file__).resolve().parent
    # Python puts the folder that it runs in front of all others; a user's module may be called as one of ours.
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None:
        raise ImportError(f"{folder} holds no program")
    sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    return int(importlib.import_module(f"{_NAME}.serving_requests").serve())


if __name__ == "__main__":
    sys.exit(_start())

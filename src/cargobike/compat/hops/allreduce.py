"""`hops.allreduce`: a notebook or script as a job of several processes that find each other."""

from __future__ import annotations

import logging
import os
import runpy
import sys
from pathlib import Path, PurePosixPath

from cargobike import experiment as ours
from cargobike import trial
from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.hops.translating.place import Place
from cargobike.compat.hops.translating.showing import ShownOutput
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, ProgramError, TrialFailedError
from cargobike.core.source_code import code_of_notebook
from cargobike.storage import open_storage

__all__ = ["launch"]

_STATUS = "exit-status.txt"
_log = logging.getLogger(__name__)


@formerly("hops.allreduce.launch")
def launch(spark_session: object, notebook: str) -> int:
    """Run a notebook or a script on all workers at once, and return its exit status.

    What it prints is shown while it runs, each line with its rank, and kept. `hvd.init()`, torch and TensorFlow find
    the other processes.

    Args:
        spark_session: Where to run: a Spark session, or `None` for workers of this machine.
        notebook: A `.ipynb` or `.py` in the project, on this machine, or at an address.

    Raises:
        TrialFailedError: If it raised an error; names the rank, and shows its traceback.
    """
    place = Place(spark_session)
    code, name = _read(notebook)
    with ShownOutput() as shown:
        try:
            ours.allreduce(
                run_program,
                params={"code": code, "name": name},
                workers=place.executors,
                name=name,
                engine=place.engine,
                callbacks=[shown],
                quiet=True,
            )
        except TrialFailedError as error:
            status = _status_of(error)
            if status is None:
                raise
            _log.error("%s ended with exit status %d.", name, status)
            return status
    return 0


def run_program(code: str, name: str) -> None:
    """Run a program as the main program of a rank.

    Raises:
        ProgramError: If it ends with an exit status other than 0.
    """
    path = trial.current().files / f"rank{trial.rank}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    sys.argv = [str(path)]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status:
            trial.artifact(text=str(status), name=_STATUS)
            raise ProgramError(f"{name} ended with sys.exit({end.code!r}).", exit_code=status) from None


def _read(notebook: str) -> tuple[str, str]:
    """Return the code of a notebook or script, and what to call its file."""
    text = os.fspath(notebook)
    if not text.endswith((".ipynb", ".py")):
        raise InvalidInputError(f"{text!r} is neither a notebook nor a script; give a file that ends in .ipynb or .py.")
    source = _bytes_of(text).decode("utf-8")
    name = f"{PurePosixPath(text).stem}.py"
    try:
        return (code_of_notebook(source) if text.endswith(".ipynb") else source), name
    except ValueError as error:
        raise InvalidInputError(f"{text} cannot be read as a notebook: {error}") from error


def _bytes_of(text: str) -> bytes:
    path = Path(text)
    if "://" not in text and path.is_file():
        return path.read_bytes()
    files = ProjectFiles()
    if "://" in text and not text.startswith((files.root, "hdfs:///", "hopsfs:///")):
        folder, _, name = text.rpartition("/")
        data = open_storage(folder).read(name)
        if data is None:
            raise InvalidInputError(f"There is no file {text}.")
        return data
    with files.open_read(files.inner(text)) as file:
        return file.read()


def _status_of(error: TrialFailedError) -> int | None:
    if error.result is None or not error.result.trials:
        return None
    kept = [path for path in error.result.trials[0].artifacts if path.name == _STATUS]
    return int(kept[0].read_text()) if kept else None

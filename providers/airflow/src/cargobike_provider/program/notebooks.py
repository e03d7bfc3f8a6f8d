"""Runs a notebook with parameters, and keeps it as it was run, also if a cell fails."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from cargobike import project
from cargobike.errors import FunctionError, InvalidInputError, MissingLibraryError, StoreError

Arguments = dict[str, Any]
Origin = dict[str, Any]


def run_notebook(arguments: Arguments, origin: Origin) -> Any:
    """Run all cells, behind one that sets parameters, and return where the executed notebook is."""
    try:
        import nbformat  # noqa: PLC0415 - only for notebooks
        from nbclient import NotebookClient  # noqa: PLC0415
        from nbclient.exceptions import CellExecutionError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        words = f"{sys.executable} cannot run notebooks: pip install nbclient ipykernel"
        raise MissingLibraryError(words, name=str(error.name)) from error
    source = Path(arguments["input_nb"]).expanduser().absolute()
    if not source.is_file():
        beside = ", ".join(sorted(other.name for other in source.parent.glob("*.ipynb"))[:8])
        raise FunctionError(f"There is no notebook {source}.{f' There is {beside} in that folder.' if beside else ''}")
    target = Path(arguments["output_nb"] or _place(source, origin)).expanduser().absolute()
    if target == source:
        raise InvalidInputError(f"output_nb={str(target)!r} is the notebook itself; name another file.")
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    _set_parameters(notebook, arguments["parameters"] or {}, nbformat)
    client = NotebookClient(
        notebook,
        timeout=arguments.get("cell_timeout_s"),
        kernel_name=arguments.get("kernel_name") or "python3",
        resources={"metadata": {"path": str(source.parent)}},
    )
    failed: Exception | None = None
    try:
        client.execute(cleanup_kc=True)
    except CellExecutionError as error:
        failed = error
    finally:
        _keep(notebook, target, nbformat)
        print(f"The executed notebook is {target}", flush=True)  # noqa: T201
    if failed is not None:
        print(re.sub(r"\x1b\[[0-9;]*m", "", str(failed)), file=sys.stderr, flush=True)  # noqa: T201
        raise RuntimeError(
            f"A cell of {source.name} failed: {getattr(failed, 'ename', '')}: {getattr(failed, 'evalue', '')}"
        )
    return {"kind": "notebook", "id": str(target), "name": source.name}


def _place(source: Path, origin: Origin) -> str:
    """Return where an executed notebook is kept if no place is named: in the project, by the run that made it."""
    parts = [str(origin.get(key) or "") for key in ("dag_id", "run_id", "task_id")]
    folders = [re.sub(r"[^\w.+-]", "_", part).strip(".") or "_" for part in parts if part]
    attempt = origin.get("try_number") or 1
    path = project.path("notebooks", *folders, f"{source.stem}-{attempt}.ipynb")
    if "://" in path:
        raise InvalidInputError(f"The project lies on shared storage ({path}); say where: output_nb='/…/out.ipynb'.")
    return path


def _set_parameters(notebook: Any, parameters: dict[str, Any], nbformat: Any) -> None:
    """Put a cell with parameters behind the one that is tagged `parameters`, or at the beginning."""
    if not parameters:
        return
    wrong = [name for name in parameters if not name.isidentifier()]
    if wrong:
        raise InvalidInputError(f"parameters: {', '.join(map(repr, wrong))} cannot be names of variables.")
    text = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cell = nbformat.v4.new_code_cell("# Parameters\n" + text, metadata={"tags": ["injected-parameters"]})
    tagged = [place for place, one in enumerate(notebook.cells) if "parameters" in one.metadata.get("tags", ())]
    notebook.cells.insert(tagged[0] + 1 if tagged else 0, cell)


def _keep(notebook: Any, target: Path, nbformat: Any) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        nbformat.write(notebook, aside)
        aside.replace(target)
    except OSError as error:
        raise StoreError(f"The executed notebook could not be kept in {target}: {error.strerror}") from error

"""Where a project lies: `.cargobike/` in the working directory, unless somebody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cargobike.core.errors import InvalidInputError
from cargobike.store.layout import ExperimentFolder, ProjectFolder

__all__ = ["current", "experiment_ids", "find_experiment", "path", "prepare", "use"]

VARIABLE = "CARGOBIKE_PROJECT"
DEFAULT = ".cargobike"

_chosen: ProjectFolder | None = None


def use(url: str | os.PathLike[str] | None) -> None:
    """Choose the project for this process; `None` goes back to `CARGOBIKE_PROJECT` or the working directory.

    Args:
        url: A folder, such as `~/searches` or `file:///data/searches`; it is created when first written to.

    Raises:
        InvalidInputError: If it is no local folder.

    Example:
        >>> from cargobike import project
        >>> project.use("~/searches")
        >>> project.use(None)
    """
    global _chosen
    _chosen = None if url is None else ProjectFolder(_folder(os.fspath(url)))


def current() -> ProjectFolder:
    """Return the project in use, with an absolute path; nothing is created."""
    return _chosen or ProjectFolder(_folder(os.environ.get(VARIABLE) or DEFAULT))


def prepare() -> ProjectFolder:
    """Return the project in use and create its folder if it is new, kept out of version control."""
    project = current()
    if project.experiments.is_dir():
        return project
    try:
        is_new = not project.root.exists() or not any(project.root.iterdir())
        project.experiments.mkdir(parents=True, exist_ok=True)
        if is_new:
            (project.root / ".gitignore").write_text("*\n")
    except OSError as error:
        raise InvalidInputError(
            f"The project {project.root} cannot be created: {error.strerror}. "
            f"Choose a folder that you may write to, with project.use(...) or {VARIABLE}."
        ) from error
    return project


def path(*parts: str) -> str:
    """Return a path inside the project, for files that belong to the team rather than to one trial.

    Works in a train function on a worker as it does outside. The project's own folder is created, the rest is
    yours.

    Raises:
        InvalidInputError: If the parts lead out of the project.

    Example:
        >>> from cargobike import project
        >>> project.path("data", "digits.npz").endswith(".cargobike/data/digits.npz")
        True
    """
    root = prepare().root
    joined = Path(os.path.normpath(root.joinpath(*parts)))
    if joined != root and root not in joined.parents:
        raise InvalidInputError(f"{'/'.join(parts)!r} leads out of the project {root}; give parts inside it.")
    return str(joined)


def experiment_ids() -> list[str]:
    """Return the ids of all experiments of the project, oldest first."""
    return sorted(path.parent.name for path in current().experiments.glob("[!.]*/journal.jsonl"))


def find_experiment(text: str) -> ExperimentFolder:
    """Find an experiment by its id, its unique name, the unique start or end of its id, or `last`.

    Looks at the folders themselves and needs no index.

    Raises:
        NotFoundError: If none fits, with the nearest one, or several do, with their list.
    """
    # Whoever launches an experiment needs neither, and their import would delay its first trial.
    from cargobike.store.index import resolve  # noqa: PLC0415
    from cargobike.store.journal import read_header  # noqa: PLC0415

    def name_of(folder: ExperimentFolder) -> str:
        header = read_header(folder.journal)
        return "" if header is None else header.name

    project = current()
    journals = sorted(project.experiments.glob("[!.]*/journal.jsonl"), reverse=True)  # ids sort by time
    folders = [ExperimentFolder(journal.parent) for journal in journals]
    if text in {folder.id for folder in folders}:
        return project.experiment(text)
    return project.experiment(resolve(text, [(folder.id, name_of(folder)) for folder in folders]))


def _folder(url: str) -> Path:
    scheme, separator, _ = url.partition("://")
    if not separator:
        return Path(os.path.abspath(os.path.expanduser(url)))
    if scheme.lower() != "file":
        raise InvalidInputError(
            f"The project {url!r} is on {scheme}://, and shared storage is not supported yet. "
            "Give a local folder (a path, ~/path or file:///path)."
        )
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise InvalidInputError(f"The project {url!r} names no local folder; write file:///absolute/path.")
    return Path(os.path.abspath(unquote(parts.path)))

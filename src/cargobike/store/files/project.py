"""Where a project lies: `.cargobike/` in the working directory unless chosen otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder

DEFAULT = ".cargobike"

_chosen: ProjectFolder | None = None


def use(url: str | os.PathLike[str] | None) -> None:
    """Choose the project for this process; `None` goes back to `CARGOBIKE_PROJECT` or the working directory.

    Args:
        url: A folder, such as `~/searches` or `file:///data/searches`, created when first written to; or shared
            storage, such as `s3://bucket/searches`, for which `cargobike[s3]` must be installed.

    Raises:
        InvalidInputError: If it cannot be a project.

    Example:
        >>> from cargobike import project
        >>> project.use("~/searches")
        >>> project.use(None)
    """
    global _chosen
    _chosen = None if url is None else ProjectFolder(_folder(os.fspath(url)))


def current() -> ProjectFolder:
    """Return the project in use, with an absolute path; nothing is created."""
    return _chosen or ProjectFolder(_folder(settings.project_url() or DEFAULT))


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
            f"Choose a folder that you may write to, with project.use(...) or {settings.PROJECT}."
        ) from error
    return project


def path(*parts: str) -> str:
    """Return a path inside the project, for files that belong to the team rather than to one trial.

    Works in a train function on a worker as it does outside. The project's own folder is created, the rest is
    yours. Of a project on shared storage it is a URL, for libraries that read such (fsspec, pandas, PyArrow).

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
    if (shared := ProjectFolder(root).remote_url).exists():
        return "/".join([shared.read_text().strip(), *joined.relative_to(root).parts])
    return str(joined)


def _folder(url: str) -> Path:
    scheme, separator, _ = url.partition("://")
    if not separator:
        return Path(os.path.abspath(os.path.expanduser(url)))
    if scheme.lower() != "file":
        return _local_copy(url)
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise InvalidInputError(f"The project {url!r} names no local folder; write file:///absolute/path.")
    return Path(os.path.abspath(unquote(parts.path)))


def _local_copy(url: str) -> Path:
    """Return the folder on this host that a project on shared storage is written to first, and read from."""
    url = url.rstrip("/")
    scheme, _, rest = url.partition("://")
    if not rest or not scheme.replace("+", "").isalnum():
        raise InvalidInputError(f"The project {url!r} names no storage; write s3://bucket/path or hdfs://host/path.")
    from hashlib import sha256  # noqa: PLC0415 - only for shared storage

    root = Path(settings.cache_folder()) / "projects" / sha256(url.encode()).hexdigest()[:20]
    place = ProjectFolder(root)
    if not place.remote_url.exists():
        root.mkdir(parents=True, exist_ok=True)
        place.remote_url.write_text(url + "\n")
    return root

"""Where a project lies: `.cargobike/` in the working directory or a folder above it, unless chosen otherwise."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.kinds import read_path
from cargobike.store.files.shared import copy_of, shared_url

DEFAULT = ".cargobike"

_chosen: ProjectFolder | None = None
_announced: set[Path] = set()

_log = logging.getLogger(__name__)


def use(url: str | os.PathLike[str] | None) -> None:
    """Choose the project for this process; `None` goes back to `CARGOBIKE_PROJECT` or the default.

    Args:
        url: A folder, such as `~/searches` or `file:///data/searches`, created when first written to; or shared
            storage, such as `s3://bucket/searches` or `hdfs://host:9000/searches`, for which `cargobike[s3]` or
            `cargobike[hdfs]` must be installed.

    Raises:
        InvalidInputError: If it cannot be a project.

    Example:
        >>> from cargobike import project
        >>> project.use("~/searches")
        >>> project.use(None)
    """
    global _chosen
    _chosen = None if url is None else ProjectFolder(_folder(read_path("url", url)))


def current() -> ProjectFolder:
    """Return the project in use, with an absolute path; nothing is created."""
    if _chosen is not None:
        return _chosen
    return ProjectFolder(_folder(settings.project_url()) if settings.project_url() else _nearest())


def at(url: str) -> ProjectFolder:
    """Return the project at an address, without choosing it for this process.

    Raises:
        InvalidInputError: If it cannot be a project.
    """
    return ProjectFolder(_folder(read_path("url", url)))


def lies_above() -> bool:
    """Tell whether the project in use was not chosen, but found in a folder above the working directory."""
    return _chosen is None and not settings.project_url() and current().root.parent != Path.cwd()


def prepare() -> ProjectFolder:
    """Return the project in use and create its folder if it is new, kept out of version control."""
    project = current()
    _check_text(project.root)
    if lies_above() and project.root not in _announced:
        _announced.add(project.root)
        _log.warning(
            "This is kept in %s, the project of a folder above; project.use(%r) or --project %s makes one here.",
            project.root,
            DEFAULT,
            DEFAULT,
        )
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


def _check_text(root: Path) -> None:
    """Refuse a project whose path cannot be written down: journals, workers and the index name files as text."""
    try:
        str(root).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"The path of the project {str(root)!r} is not UTF-8, and cannot be written down. Rename the folder, "
            f"or choose another with project.use(...) or {settings.PROJECT}."
        ) from error


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
    for part in parts:
        read_path("a part of a path", part, may_be_empty=True)
    root = prepare().root
    joined = Path(os.path.normpath(root.joinpath(*parts)))
    if joined != root and root not in joined.parents:
        raise InvalidInputError(f"{'/'.join(parts)!r} leads out of the project {root}; give parts inside it.")
    if url := shared_url(ProjectFolder(root)):
        return "/".join([url, *joined.relative_to(root).parts])
    return str(joined)


def _nearest() -> Path:
    """Return the project of the working directory, or else of the nearest folder above it that has one."""
    check_directory()
    here = Path.cwd()
    if (here / DEFAULT).is_dir():
        return here / DEFAULT
    for folder in _folders_above(here):
        project = ProjectFolder(folder / DEFAULT)
        # Whose folder it is matters: a project of another user in /tmp or a shared folder is not to be trusted.
        if project.experiments.is_dir() and project.root.stat().st_uid == os.geteuid():
            return project.root
    return here / DEFAULT


def _folders_above(here: Path) -> Iterator[Path]:
    """Yield the folders above one, up to its repository or file system; the home folder and the root are not."""
    device, home = here.stat().st_dev, Path(os.path.expanduser("~")).resolve()
    for folder, inner in zip(here.parents, (here, *here.parents), strict=False):
        if inner == home or (inner / ".git").exists():
            return
        if folder in {home, Path(folder.anchor)} or folder.stat().st_dev != device:
            return
        yield folder


def check_directory() -> None:
    """Make sure that this process has a working directory: names without a path lead from there.

    Raises:
        InvalidInputError: If it was deleted.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise InvalidInputError(
            "The working directory of this process was deleted. Change to one that exists (cd, os.chdir) and try again."
        ) from error


def _folder(url: str) -> Path:
    scheme, separator, _ = url.partition("://")
    if not separator:
        path = os.path.expanduser(url)
        if not os.path.isabs(path):
            check_directory()
        return Path(os.path.abspath(path))
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
    root = copy_of(url)
    place = ProjectFolder(root)
    if not place.remote_url.exists():
        root.mkdir(parents=True, exist_ok=True)
        aside = place.remote_url.with_name(f".{place.remote_url.name}.{os.getpid()}.{threading.get_ident()}")
        aside.touch(mode=0o600)  # an address may hold a password
        aside.write_text(url + "\n")
        aside.replace(place.remote_url)
    return root

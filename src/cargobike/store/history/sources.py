"""The user's own Python files as they were at launch, in one zip file.

Its entries are `<number of a root>/<path below it>`; a root is a folder from which modules were imported. Files of a
git repository are taken if git knows them or would; of other folders what was imported from there, and what lies beside
the script, in packages or by itself.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.package import PACKAGE_FOLDER
from cargobike.store.history.git_state import known_files

MOST_FILES: Final = 2000
MOST_BYTES: Final = 16 << 20
MOST_FILE_BYTES: Final = 1 << 20
_DEEPEST: Final = 4
_MOST_BESIDE: Final = 300
_INSTALLED: Final = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {PACKAGE_FOLDER + os.sep}
)
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the zip file.

    Attributes:
        roots: The folders that the numbers at the beginning of entries stand for.
        files: SHA-256 of each entry.
        left_out: How many files were not kept because there were too many or they were too large.
    """

    roots: tuple[str, ...] = ()
    files: dict[str, str] = {}
    left_out: int = 0


def collect_sources(repository: Path | None, beside: Path | None) -> tuple[Sources, bytes]:
    """Collect the user's own files: loaded modules first, then the repository, or what lies beside the script."""
    roots: list[Path] = [] if repository is None else [repository]
    files: dict[Path, None] = {}
    for file, root in _own_modules():
        files[file] = None
        if not any(_below(file, top) for top in roots):
            roots.append(root)
    if repository is not None:
        files.update(dict.fromkeys(known_files(repository, (".py",))))
    elif beside is not None and beside not in {Path.home(), Path(beside.anchor)}:
        if beside not in roots:
            roots.append(beside)
        files.update(dict.fromkeys(_python_files(beside)))
    return _pack(roots, list(files))


def is_own(path: Path) -> bool:
    """Tell whether a file is the user's own: not Python's, not installed, not ours."""
    return not str(path).startswith(_INSTALLED) and not {"site-packages", "dist-packages"} & set(path.parts)


def read_source(archive: Path, entry: str) -> str:
    """Return one file of a zip file of sources as text."""
    with zipfile.ZipFile(archive) as packed:
        return packed.read(entry).decode("utf-8", "replace")


def _own_modules() -> Iterator[tuple[Path, Path]]:
    """Yield the files of modules that are loaded and not installed, each with the folder it was imported from."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        path = Path(os.path.abspath(file))
        if not is_own(path):
            continue
        levels = name.count(".") + (path.name == "__init__.py")
        yield path, path.parents[min(levels, len(path.parents) - 1)]


def _python_files(folder: Path) -> Iterator[Path]:
    """Yield Python files in a folder without a repository and in packages below it, within limits."""
    count = 0
    for parent, folders, names in os.walk(folder):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(
            name for name in folders if depth < _DEEPEST and os.path.exists(os.path.join(parent, name, "__init__.py"))
        )
        for name in sorted(names):
            if name.endswith(".py") and not name.startswith("."):
                yield Path(parent, name)
                count += 1
                if count >= _MOST_BESIDE:
                    return


class _LastPack:
    """Remembers the last zip file, since a process that launches again has mostly the same files."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: object = None
        self.packed: tuple[Sources, bytes] = (Sources(), b"")


_last = _LastPack()


def _pack(roots: list[Path], paths: Iterable[Path]) -> tuple[Sources, bytes]:
    chosen, left_out = _choose(map(str, paths))
    key = (tuple(roots), tuple(chosen.items()))
    with _last.lock:
        if _last.key != key:
            _last.packed = _zip([str(root) for root in roots], list(chosen), left_out)
            _last.key = key
        return _last.packed


# From here on paths are texts: there are many, and a Path costs more than reading a small file.


def _choose(paths: Iterable[str]) -> tuple[dict[str, tuple[int, int]], int]:
    """Return the files to keep with size and time of change, and how many are left out."""
    chosen: dict[str, tuple[int, int]] = {}
    left_out = total = 0
    for path in paths:
        try:
            stat = os.stat(path)
        except OSError:
            continue
        if stat.st_size > MOST_FILE_BYTES or total + stat.st_size > MOST_BYTES or len(chosen) >= MOST_FILES:
            left_out += 1
            continue
        total += stat.st_size
        chosen[path] = (stat.st_size, stat.st_mtime_ns)
    return chosen, left_out


def _zip(roots: list[str], paths: list[str], left_out: int) -> tuple[Sources, bytes]:
    files: dict[str, str] = {}
    buffer = io.BytesIO()
    starts = [root.rstrip(os.sep) + os.sep for root in roots]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path in paths:
            number = next((i for i, start in enumerate(starts) if path.startswith(start)), None)
            if number is None:
                continue
            try:
                with open(path, "rb") as file:
                    data = file.read(MOST_FILE_BYTES)
            except OSError:
                left_out += 1
                continue
            name = f"{number}/{path[len(starts[number]) :]}".encode("utf-8", "replace").decode()
            files[name] = hashlib.sha256(data).hexdigest()
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED, 1)
    return Sources(roots=tuple(roots), files=files, left_out=left_out), buffer.getvalue()


def _below(path: Path, root: Path) -> bool:
    return root in path.parents

"""The object that pydoop calls a file system, over the project's files."""

from __future__ import annotations

import io
import stat as modes
from types import SimpleNamespace, TracebackType
from typing import IO, Any

from cargobike.compat.hops.translating.files import Item, ProjectFiles
from cargobike.core.errors import InvalidInputError, StoreError


class Handle:
    """The calls of `pydoop.hdfs.hdfs` that scripts use; a context manager, as that is."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    def open_file(self, path: str, mode: str = "r", *_: object, flags: str = "", **__: object) -> IO[Any]:
        """Open a file: `r`, `w` or `a`, with a `t` for text. What is written appears when the file is closed."""
        wanted = flags or mode
        kind = wanted.rstrip("tb+")
        inner = self._files.inner(path)
        if kind not in {"r", "w", "a", "rw"}:
            raise InvalidInputError(f"flags={wanted!r}; allowed are 'r', 'w' and 'a', with a 't' behind for text.")
        if kind == "rw":
            kind = "r" if self._files.look(inner) is not None else "w"
        file: Any = self._files.open_read(inner) if kind == "r" else self._files.open_write(inner)
        if kind == "a" and self._files.look(inner) is not None:
            with self._files.open_read(inner) as before:
                while piece := before.read(4 << 20):
                    file.write(piece)
        return io.TextIOWrapper(file, encoding="utf-8") if wanted.endswith("t") else file

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or folder."""
        return self._files.look(self._files.inner(path)) is not None

    def list_directory(self, path: str) -> list[dict[str, Any]]:
        """Return what is in a folder, of each a dict."""
        return [details(self._files, item) for item in self._files.list(self._files.find(path))]

    def get_path_info(self, path: str) -> dict[str, Any]:
        """Return what is known of a file or folder."""
        return details(self._files, self._files.find(path))

    def create_directory(self, path: str) -> bool:
        """Make a folder, and those above it."""
        self._files.make_folder(self._files.inner(path))
        return True

    def delete(self, path: str, recursive: bool = True) -> bool:
        """Delete a file or folder; tells whether there was one.

        Raises:
            StoreError: If a folder is not empty, and not `recursive`.
        """
        item = self._files.look(self._files.inner(path))
        if item is None:
            return False
        if item.is_folder and not recursive and self._files.list(item):
            raise StoreError(f"{path} is a folder that is not empty; recursive=True deletes what is in it.")
        self._files.remove(item)
        return True

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder."""
        item = self._files.find(source)
        self._files.copy(item, self._files.inner(target))
        self._files.remove(item)

    move = rename

    def working_directory(self) -> str:
        """Return where relative paths begin: at the project."""
        return self._files.root

    def close(self) -> None:
        """Accept the call: there is no connection to close."""

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def details(files: ProjectFiles, item: Item) -> dict[str, Any]:
    """Return what is known of a file or folder, as pydoop spells it."""
    return {
        "name": files.full(item.path),
        "path": files.full(item.path),
        "kind": "directory" if item.is_folder else "file",
        "size": item.size,
        "permissions": modes.S_IMODE(files.mode_of(item)),
        "last_mod": int(files.changed_at(item)),
        "last_access": int(files.changed_at(item)),
        "owner": "",
        "group": "",
        "replication": 0 if item.is_folder else 1,
        "block_size": 0,
    }


def status_of(files: ProjectFiles, item: Item) -> SimpleNamespace:
    """Return what `os.stat` would, as far as the storage knows it."""
    path = files.local(item.path)
    found = None if path is None else path.stat()
    changed = files.changed_at(item)
    return SimpleNamespace(
        st_mode=files.mode_of(item),
        st_size=item.size,
        st_mtime=changed,
        st_atime=changed if found is None else found.st_atime,
        st_ctime=changed if found is None else found.st_ctime,
        st_uid=0 if found is None else found.st_uid,
        st_gid=0 if found is None else found.st_gid,
        kind="directory" if item.is_folder else "file",
        path=files.full(item.path),
    )

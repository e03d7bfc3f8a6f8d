"""Where Estimators keep checkpoints, and find data for `fit_on_parquet`: any storage that Cargobike reads."""

from __future__ import annotations

from typing import Any

from cargobike.core.errors import NotFoundError
from cargobike.storage import Storage, open_storage


class Store:
    """Data, runs and checkpoints under one prefix.

    Args:
        prefix_path: A folder, or an address such as `hdfs://host:9000/team` or `s3://bucket/team`.
        train_path: Where data to train with lies; below the prefix by default.
        val_path: Where data to validate with lies.
        test_path: Where data to test with lies.
        runs_path: Where runs are kept.
        save_runs: Whether checkpoints are kept.
        **kwargs: Accepted: storages know their settings from the environment.
    """

    def __init__(
        self,
        prefix_path: str,
        train_path: str | None = None,
        val_path: str | None = None,
        test_path: str | None = None,
        runs_path: str | None = None,
        save_runs: bool = True,
        **kwargs: Any,
    ) -> None:
        self.prefix_path = self.get_full_path(str(prefix_path)).rstrip("/")
        self._train_path = train_path or f"{self.prefix_path}/intermediate_train_data"
        self._val_path = val_path or f"{self.prefix_path}/intermediate_val_data"
        self._test_path = test_path or f"{self.prefix_path}/intermediate_test_data"
        self._runs_path = runs_path or f"{self.prefix_path}/runs"
        self._save_runs = save_runs

    @staticmethod
    def create(prefix_path: str, *args: Any, **kwargs: Any) -> Store:
        """Return the kind of store that fits an address."""
        if prefix_path.startswith(("hdfs://", "viewfs://")):
            return HDFSStore(prefix_path, *args, **kwargs)
        if prefix_path.startswith(("dbfs:/", "/dbfs/", "file:///dbfs/")):
            return DBFSLocalStore(prefix_path, *args, **kwargs)
        return FilesystemStore(prefix_path, *args, **kwargs)

    def get_full_path(self, path: str) -> str:
        """Return an address in the form that Cargobike and Spark both read."""
        return path

    def get_train_data_path(self, idx: int | None = None) -> str:
        """Return where data to train with lies."""
        return _numbered(self._train_path, idx)

    def get_val_data_path(self, idx: int | None = None) -> str:
        """Return where data to validate with lies."""
        return _numbered(self._val_path, idx)

    def get_test_data_path(self, idx: int | None = None) -> str:
        """Return where data to test with lies."""
        return _numbered(self._test_path, idx)

    def saving_runs(self) -> bool:
        """Tell whether checkpoints are kept."""
        return self._save_runs

    def get_runs_path(self) -> str:
        """Return where runs are kept."""
        return self._runs_path

    def get_run_path(self, run_id: str) -> str:
        """Return where a run is kept."""
        return f"{self._runs_path}/{run_id}"

    def get_checkpoint_path(self, run_id: str) -> str | None:
        """Return where the checkpoint of a run is kept; `None` if they are not."""
        return self.get_run_path(run_id) if self._save_runs else None

    def get_logs_path(self, run_id: str) -> str | None:
        """Return where logs of a run are kept; `None` if they are not."""
        return f"{self.get_run_path(run_id)}/{self.get_logs_subdir()}" if self._save_runs else None

    def get_checkpoint_filename(self) -> str:
        """Return what checkpoints are called."""
        return "checkpoint"

    def get_logs_subdir(self) -> str:
        """Return what the folder of logs is called."""
        return "logs"

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or a folder."""
        folder, name = _open(path)
        return folder.stat(name) is not None or next(iter(folder.list(name, deep=True)), None) is not None

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            NotFoundError: If there is none.
        """
        folder, name = _open(path)
        content = folder.read(name)
        if content is None:
            raise NotFoundError(f"There is no file {path} in the store {self.prefix_path}.", wanted=path)
        return content

    def write(self, path: str, content: bytes) -> None:
        """Write a file."""
        folder, name = _open(path)
        folder.write(name, content)

    def write_text(self, path: str, text: str) -> None:
        """Write a file of text."""
        self.write(path, text.encode())


class FilesystemStore(Store):
    """A store in a folder, or wherever an address leads to."""


class LocalStore(FilesystemStore):
    """A store in a folder of this machine."""


class HDFSStore(Store):
    """A store on HDFS; `user`, `host` and `port` go into the address."""


class DBFSLocalStore(FilesystemStore):
    """A store on DBFS, which lies at `/dbfs` of each machine."""

    def get_full_path(self, path: str) -> str:
        """Return the path at which the machine has it."""
        return f"/dbfs/{path.removeprefix('file://').removeprefix('dbfs:').removeprefix('/dbfs').lstrip('/')}"


def _numbered(path: str, idx: int | None) -> str:
    return path if idx is None else f"{path}.{idx}"


def _open(path: str) -> tuple[Storage, str]:
    folder, _, name = path.rpartition("/")
    return open_storage(folder or "/"), name

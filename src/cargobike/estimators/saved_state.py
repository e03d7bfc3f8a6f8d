"""The state of a model as files: copied from a checkpoint, kept beside a saved model, sent to where it predicts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.experiments.results.trial import TrialCheckpoint
from cargobike.experiments.trial.checkpoints.files import Kind
from cargobike.experiments.trial.checkpoints.folder import read_meta
from cargobike.experiments.trial.checkpoints.state import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cargobike.store.files.storage import Storage

FUNCTIONS = "functions.pkl"
STATE = "state"
_PLAIN = ("bytes", "file", "folder")
"""Kinds of states that run no code when they are read."""

_TRUSTED: ContextVar[bool] = ContextVar("cargobike_trusted", default=False)


@contextmanager
def trusting() -> Iterator[None]:
    """Say yes to everything that is loaded inside: functions and pickles of a saved model run code.

    Example:
        >>> with trusting():
        ...     pass  # model = PipelineModel.load("hdfs://host/models/prices")
    """
    token = _TRUSTED.set(True)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


@dataclass(frozen=True)
class SavedState:
    """What a train function saved.

    Attributes:
        kind: What it is.
        entry: The file, or the folder, that holds it.
        files: The content of all files, by their paths.
    """

    kind: Kind
    entry: str
    files: dict[str, bytes]

    @classmethod
    def of(cls, checkpoint: TrialCheckpoint) -> SavedState:
        """Return the newest state of a trial.

        Raises:
            InvalidInputError: If it is of a kind that cannot be moved.
        """
        folder = checkpoint.path
        meta = read_meta(folder)
        if meta.kind == "sharded" or meta.links:
            raise InvalidInputError(
                "The model was saved with save_sharded, or holds links; save it whole: trial.checkpoint.save(model)."
            )
        return cls(meta.kind, meta.entry, {name: (folder / name).read_bytes() for name in meta.sizes})

    def write(self, storage: Storage) -> None:
        """Write the files beside a saved model."""
        for name, content in self.files.items():
            storage.write(f"{STATE}/{name}", content)

    @classmethod
    def read(cls, storage: Storage, told: dict[str, Any]) -> SavedState:
        """Read the files of a saved model.

        Raises:
            StoreError: If a file is not there.
        """
        files = {}
        for name in told["files"]:
            if name.startswith("/") or ".." in name.split("/"):
                raise StoreError(f"The saved model {storage} names a file outside of it: {name!r}.")
            content = storage.read(f"{STATE}/{name}")
            if content is None:
                raise StoreError(f"The saved model {storage} lacks its file {STATE}/{name}. Save it again.")
            files[name] = content
        return cls(told["kind"], told["entry"], files)

    def described(self) -> dict[str, Any]:
        """Return what a saved model says about it."""
        return {"kind": self.kind, "entry": self.entry, "files": sorted(self.files)}

    @property
    def runs_code(self) -> bool:
        """Whether reading it runs what its writer put into it."""
        return self.kind not in _PLAIN

    def load(self) -> Any:
        """Return the state, as the train function saved it; of files and folders nothing, since they go along."""
        if not self.runs_code:
            return self.files[self.entry] if self.kind == "bytes" else None
        with tempfile.TemporaryDirectory(prefix="cargobike-model-") as folder:
            _write_files(self.files, folder)
            return read_state(self.kind, Path(folder, self.entry))


def check_trusted(where: str, trust: bool, otherwise: str) -> None:
    """Raise an error if nobody has said that a writer is trusted.

    Raises:
        InvalidInputError: If so; says how.
    """
    if not trust and not _TRUSTED.get():
        raise InvalidInputError(
            f"{where} holds Python functions or pickles, which can run any code when they are loaded.",
            [
                "If you trust its writer: load(path, trust=True), or `with cargobike.spark.trusting():` around "
                "PipelineModel.load(path)",
                otherwise,
            ],
        )


def write_functions(storage: Storage, functions: dict[str, Any]) -> None:
    """Keep functions beside a saved model."""
    storage.write(FUNCTIONS, cloudpickle.dumps(functions))


def read_functions(storage: Storage) -> dict[str, Any]:
    """Read them again, which runs code.

    Raises:
        StoreError: If they are not there.
    """
    data = storage.read(FUNCTIONS)
    if data is None:
        raise StoreError(f"The saved model {storage} lacks its file {FUNCTIONS}. Save it again.")
    functions: dict[str, Any] = cloudpickle.loads(data)
    return functions


def _write_files(files: dict[str, bytes], folder: str) -> None:
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def batch_function(predict: Callable[[Any, Any], Any], saved: SavedState, state: Any) -> Callable[[Any], Any]:
    """Return a function of a batch alone, which travels by value: executors may lack Cargobike, so it uses none of it.

    A model that is files or a folder is written anew where it predicts, into the folder that Spark removes at its end.
    """
    files = saved.files if saved.kind in ("file", "folder") else None
    entry = saved.entry
    held: list[Any] = [] if files is not None else [state]

    @wraps(predict)
    def predict_batch(batch: Any) -> Any:
        if not held:
            below = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
            folder = tempfile.mkdtemp(prefix="cargobike-model-", dir=below)
            for name, content in (files or {}).items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            held.append(Path(folder, entry))
        return predict(held[0], batch)

    return predict_batch

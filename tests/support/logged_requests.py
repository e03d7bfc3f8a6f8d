"""Deployments with an inference log, and storages that can be gone, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cargobike.core.errors import StoreError
from cargobike.core.signatures import Field, Signature
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.inference_log.sink import Sink
from cargobike.serving.specification import Logging, Specification
from cargobike.store.files.storage import Entry, Storage

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()
VECTORS = Signature((Field("x", "FP32", (3,)),), (Field("score", "FP64"),))
RECORDS = Signature((Field("age", "INT64"), Field("town", "BYTES", nullable=True)), (Field("score", "FP64"),))


@contextmanager
def logging_to(
    project: Path | str,
    signatures: Mapping[int, Signature | None] | None = None,
    sink: Sink | None = None,
    name: str = "digits",
    **chosen: Any,
) -> Iterator[InferenceLog]:
    """Keep requests of a deployment, `digits` by default; all of them are kept when the context is left."""
    log = InferenceLog(
        Specification(name=name, model=name, logging=Logging(**{"flush_s": 0.05, **chosen})),
        str(project),
        name,
        {1: VECTORS} if signatures is None else signatures,
        sink=sink,
    )
    try:
        yield log
    finally:
        log.close()


def take_some(log: InferenceLog, count: int, *, start: int = 0, at: float = NOON, version: int = 1) -> None:
    """Log requests of one row: `r0`, `r1`, … a second after each other."""
    for number in range(start, start + count):
        row = [float(number), 0.5, -1.0]
        log.take(f"r{number}", at + number, 0.002, version, 200, [row], [number / 2])


class Faulty(Storage):
    """A storage that fails when told to, and counts what is done with it."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.url = inner.url
        self.is_gone = False
        self.fails_after_writing = False
        self.calls: list[tuple[str, str]] = []
        self.fails_at = -1

    def _step(self, what: str, path: str) -> None:
        if self.is_gone or len(self.calls) == self.fails_at:
            raise StoreError(f"cannot {what} {path}: gone")
        self.calls.append((what, path))

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        self._step("read", path)
        return self.inner.read(path, start, length)

    def write(self, path: str, data: bytes | Path) -> None:
        self._step("write", path)
        self.inner.write(path, data)
        if self.fails_after_writing:
            raise StoreError("the answer was lost")

    def create(self, path: str, data: bytes) -> bool:
        self._step("create", path)
        return self.inner.create(path, data)

    def list(self, folder: str = "", *, deep: bool = False) -> Iterator[Entry]:
        self._step("list", folder)
        return self.inner.list(folder, deep=deep)

    def stat(self, path: str) -> Entry | None:
        self._step("stat", path)
        return self.inner.stat(path)

    def delete(self, *paths: str) -> None:
        for path in paths:
            self._step("delete", path)
            self.inner.delete(path)

    def arrow(self) -> tuple[Any, str]:
        return self.inner.arrow()

"""The client of HDFS: hdfs-native's, made safe for processes that are forked and for servers that fall silent."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

CALL_S = 30.0
"""How long one call of the client may take; files are read and written in pieces."""

_OPTIONS: Final = {
    # It would try for minutes by itself. Two attempts find the active one of two NameNodes.
    "dfs.client.failover.max.attempts": "2",
    "dfs.client.failover.sleep.base.millis": "50",
    "dfs.client.failover.sleep.max.millis": "200",
}

_T = TypeVar("_T")
_loaded: tuple[int, ModuleType] | None = None


def connect(url: str) -> Any:
    """Return a client for the NameNode, or the service, that a URL names."""
    client: Any = library().RawClient(url, _OPTIONS, None, None, None, None)
    return client


def library() -> ModuleType:
    """Return hdfs-native's compiled module, of which each process has its own.

    The module starts threads once and keeps them. They do not exist in a forked copy of the process, where every call
    would wait for ever. A copy of the process therefore loads a copy of the module, which starts threads of its own.
    """
    global _loaded
    if _loaded is None:
        from hdfs_native import _internal  # noqa: PLC0415 - optional, and only for HDFS

        _loaded = os.getpid(), _internal
    elif _loaded[0] != os.getpid():
        _loaded = os.getpid(), _load_copy(_file_of(_loaded[1]))
    return _loaded[1]


def _file_of(module: ModuleType) -> Path:
    assert module.__spec__ is not None
    return Path(str(module.__spec__.origin))


def _load_copy(file: Path) -> ModuleType:
    folder = tempfile.mkdtemp(prefix="cargobike-")
    try:
        copy = os.path.join(folder, file.name)
        shutil.copyfile(file, copy)
        loader = importlib.machinery.ExtensionFileLoader("_internal", copy)
        spec = importlib.util.spec_from_file_location("_internal", copy, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        spec.origin = str(file)  # where a copy of the copy is made from
        return module
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_time(call: Callable[[], _T], timeout_s: float | None = None) -> _T:
    """Do something in a thread, and wait for it `CALL_S` or as long as said: the client itself waits without an end.

    Raises:
        TimeoutError: If it takes longer; the thread ends when the connection does, or with the process.
    """
    outcome: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            outcome.append((False, error))

    thread = threading.Thread(target=run, name="cargobike-hdfs", daemon=True)
    thread.start()
    patience_s = CALL_S if timeout_s is None else timeout_s
    thread.join(patience_s)
    if not outcome:
        raise TimeoutError(f"there was no answer within {patience_s:g} s")
    is_fine, value = outcome[0]
    if not is_fine:
        raise value
    result: _T = value
    return result

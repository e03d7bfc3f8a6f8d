"""A checkpoint that all ranks of a gang write together, each its own part, in torch's distributed format.

It becomes a checkpoint when all parts are there: rank 0 collects what each rank has written, and renames the folder. It
can be read by any number of ranks.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import BlockingAsyncStager

from cargobike.core.errors import StoreError
from cargobike.core.running.member import Alone
from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint, StoredState
from cargobike.experiments.trial.checkpoints.folder import Meta, read_meta
from cargobike.experiments.trial.checkpoints.surroundings import Surroundings

if TYPE_CHECKING:
    from cargobike.core.running.member import Gang

_LOG = logging.getLogger(__name__)
FOLDER = "shards"
_SHARED_DISK = "what ranks save together must lie on a disk that all of them see"


class _Part(msgspec.Struct, frozen=True):
    """What one rank has written, or why it could not."""

    sizes: dict[str, int] = {}
    sha256: dict[str, str] = {}
    error: str = ""


_decode = msgspec.msgpack.Decoder(_Part).decode


class ShardedCheckpoints:
    """Saves and loads states of which every rank holds a part.

    Args:
        save: Makes a checkpoint of something; called by rank 0 only.
        gang: The other ranks, `None` if there are none.
        rank: Our own.
    """

    def __init__(self, save: Callable[..., SavedCheckpoint], gang: Gang | None, rank: int) -> None:
        self._save = save
        self._gang = gang or Alone()
        self._rank = rank
        self._count = 0
        self._group: Any = None
        self._pending: Future[SavedCheckpoint] | None = None

    def save(
        self,
        state: dict[str, Any],
        step: int,
        metric: float | None,
        surroundings: Surroundings | None = None,
        *,
        asynchronous: bool,
    ) -> SavedCheckpoint | None:
        """Save a state with all others, now or beside the training."""
        self.wait()
        self._count += 1
        name = f"checkpoint#{self._count}"
        if not asynchronous:
            shards = Shards(state, self._gang, self._rank, name, surroundings=surroundings)
            return self._save_together(shards, step, metric)
        staged = BlockingAsyncStager().stage(state)  # training goes on, and changes the tensors, while they are written
        shards = Shards(staged, self._gang, self._rank, name, self._side_group(), surroundings)
        pool = ThreadPoolExecutor(1, "cargobike-checkpoint")
        self._pending = pool.submit(self._save_together, shards, step, metric)
        pool.shutdown(wait=False)
        return None

    def load(self, state: dict[str, Any], entry: object) -> Meta | None:
        """Fill a state from the checkpoint that rank 0 names; returns its description."""
        self._count += 1
        is_sharded = isinstance(entry, Path) and entry.name == FOLDER
        answer = self._gang.exchange(
            f"checkpoint#{self._count}.load", str(entry).encode() if is_sharded else b"", of="workers"
        )[0]
        if not answer:
            return None
        folder = Path(answer.decode())
        read_shards(state, folder)
        return read_meta(folder.parent)

    def wait(self) -> None:
        """Wait for what is being written."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _side_group(self) -> Any:
        """Return a process group for what runs beside the training: two threads must not share one."""
        if self._group is None and dist.is_initialized():
            self._group = dist.new_group(backend="gloo")
        return self._group

    def _save_together(self, shards: Shards, step: int, metric: float | None) -> SavedCheckpoint:
        if self._rank:
            shards.follow()
            result = msgspec.msgpack.decode(shards.agree(b""), type=tuple[str, str, int])
        else:
            result = self._save_and_tell(shards, step, metric)
        error, path, size_bytes = result
        if error:
            raise StoreError(error)
        return SavedCheckpoint(step, Path(path), size_bytes, metric)

    def _save_and_tell(self, shards: Shards, step: int, metric: float | None) -> tuple[str, str, int]:
        try:
            saved = self._save(shards, step, metric, shards.surroundings)
            result = ("", str(saved.path), saved.size_bytes)
        except StoreError as error:
            shards.give_up()
            result = (str(error), "", 0)
        shards.agree(msgspec.msgpack.encode(result))
        return result


@dataclass(slots=True)
class Shards:
    """One sharded checkpoint on its way to disk.

    Attributes:
        state: This rank's part of the state: tensors whole or sharded (`DTensor`), and plain values.
        gang: The other ranks.
        rank: Our own.
        name: The name under which the ranks talk about this checkpoint.
        group: The process group to write with, `None` for that of all ranks.
        surroundings: What is remembered beside it.
        has_begun: Whether the others know where to write.
    """

    state: dict[str, Any]
    gang: Gang
    rank: int
    name: str
    group: Any = None
    surroundings: Surroundings | None = None
    has_begun: bool = False

    def write_into(self, folder: Path) -> StoredState:
        """Write it together with the other ranks, as rank 0."""
        self.has_begun = True
        self.gang.exchange(f"{self.name}.where", str(folder / FOLDER).encode(), of="workers")
        parts = self._write(folder / FOLDER)
        problems = [f"rank {rank}: {part.error}" for rank, part in enumerate(parts) if part.error]
        if problems:
            raise OSError("; ".join(problems))
        stored = StoredState("sharded", FOLDER)
        for part in parts:
            stored.sizes.update(part.sizes)
            stored.sha256.update(part.sha256)
        return stored

    def follow(self) -> None:
        """Write our part where rank 0 says, as one of the other ranks."""
        where = self.gang.exchange(f"{self.name}.where", b"", of="workers")[0]
        if where:
            self._write(Path(where.decode()))

    def give_up(self) -> None:
        """Tell the other ranks, if they still wait for a folder, that there is none."""
        if not self.has_begun:
            self.gang.publish(f"{self.name}.where", b"")

    def agree(self, result: bytes) -> bytes:
        """Wait until rank 0 has made a checkpoint of it; returns what it says."""
        return self.gang.exchange(f"{self.name}.done", result, of="workers")[0]

    def _write(self, folder: Path) -> list[_Part]:
        seen = self.gang.exchange(f"{self.name}.seen", b"yes" if folder.parent.is_dir() else b"", of="workers")
        if not all(seen):  # none begins: torch would wait for those that cannot
            return [_Part(error="" if sees else f"it does not see {folder.parent}; {_SHARED_DISK}") for sees in seen]
        try:
            dcp.save(self.state, checkpoint_id=folder, process_group=self.group, no_dist=not dist.is_initialized())
            part = _describe(folder, self.rank)
        except Exception as error:  # noqa: BLE001 - torch wraps what the others and the disk do in errors of its own
            part = _Part(error=f"{type(error).__name__}: {error}"[:2000])
        parts = self.gang.exchange(f"{self.name}.part", msgspec.msgpack.encode(part), of="workers")
        return [_decode(data) for data in parts]


def read_shards(state: dict[str, Any], folder: Path) -> None:
    """Fill a state in place from a sharded checkpoint, also of another number of ranks.

    Plain values that an earlier version of the train function did not save stay as they are.
    """
    try:
        saved = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
        known = {name: value for name, value in state.items() if name in saved or not _is_plain(value)}
        if unknown := state.keys() - known.keys():
            _LOG.warning("The checkpoint %s does not hold %s.", folder, ", ".join(sorted(unknown)))
        dcp.load(known, checkpoint_id=folder, no_dist=not dist.is_initialized())
        state.update(known)
    except Exception as error:
        raise StoreError(
            f"The sharded checkpoint {folder} could not be loaded into this state: {type(error).__name__}: {error}"
        ) from error


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | bytes | int | float)


def _describe(folder: Path, rank: int) -> _Part:
    """Say what this rank has written: its own files and, from rank 0, the table of contents."""
    sizes: dict[str, int] = {}
    sha256: dict[str, str] = {}
    for path in folder.iterdir():
        if path.name.startswith(f"__{rank}_") or (rank == 0 and path.name == ".metadata"):
            with path.open("rb") as file:
                sha256[f"{FOLDER}/{path.name}"] = hashlib.file_digest(file, "sha256").hexdigest()
            sizes[f"{FOLDER}/{path.name}"] = path.stat().st_size
    return _Part(sizes, sha256)

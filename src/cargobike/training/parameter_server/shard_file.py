"""Keeps a shard on disk, so that a server that dies can be replaced by one that goes on where it was."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import msgspec
import torch

from cargobike.core.errors import StoreError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.training.parameter_server.codecs import make_memory, memory_of
from cargobike.training.parameter_server.messages import Declare
from cargobike.training.parameter_server.shard import Shard

_MAGIC = b"cargobike shard 1\n"
_LENGTH = struct.Struct("!I")


class _Head(msgspec.Struct, frozen=True):
    declared: Declare
    version: int
    restored: int
    steps: tuple[int, ...]
    sequences: dict[str, tuple[int, int, int]]


def save_shard(shard: Shard, path: Path) -> int:
    """Write one version of a shard, all or nothing; return the version."""
    rules = [shard.dense_rule, *shard.row_rules]
    with shard.changed:
        head = _Head(
            shard.declared,
            shard.version,
            shard.numbers.restored,
            tuple(rule.steps for rule in rules),
            {name: (w.rank, w.clock, w.last_sequence) for name, w in shard.workers.items()},
        )
        tensors = [tensor.clone() for rule in rules for tensor in (rule.weights, *rule.slots)]
    encoded = msgspec.msgpack.encode(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as file:
            file.write(_MAGIC + _LENGTH.pack(len(encoded)) + encoded)
            for tensor in tensors:
                file.write(memory_of(tensor))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            scratch.unlink()
    return head.version


def load_shard(path: Path) -> Shard | None:
    """Read a shard back; None if there is no file.

    Raises:
        StoreError: If the file is not one of our shards, or not complete.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise StoreError(f"{path} is not a parameter server's checkpoint. Move it away, or give another path.")
        try:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            head = msgspec.msgpack.decode(file.read(length), type=_Head)
            size = sum(spec.size for spec in head.declared.tensors)
            shard = Shard(head.declared, torch.zeros(4 * size, dtype=torch.uint8))
            for rule in [shard.dense_rule, *shard.row_rules]:
                for tensor in (rule.weights, *rule.slots):
                    body, view = make_memory(tensor.numel() * 4)
                    if file.readinto(view) != len(view):
                        raise EOFError("too short")
                    tensor.copy_(body.view(torch.float32).view(tensor.shape))
        except (struct.error, EOFError, *UNDECODABLE) as error:
            raise StoreError(f"{path} is damaged ({error}). Remove it to start the server afresh.") from error
    for rule, steps in zip([shard.dense_rule, *shard.row_rules], head.steps, strict=True):
        rule.steps = steps
    shard.version = head.version
    shard.numbers.restored = head.restored + 1
    for name, (rank, clock, sequence) in head.sequences.items():
        shard.enter(name, rank)
        shard.leave(name)
        shard.workers[name].clock, shard.workers[name].last_sequence = clock, sequence
    return shard

"""Process groups of torch outlive the code that made them.

torch's gloo group joins its threads when it is destroyed. When the last reference to it goes away with a model that was
wrapped in DistributedDataParallel, that happens while the interpreter's lock is held, and a thread that is being joined
may be waiting for this lock: the process hangs for ever. It cannot happen as long as there is a reference to the
group. So the runner holds every group that is made, and leaves without destroying anything.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_MAKER = "_new_process_group_helper"
_kept: list[Any] = []


def keep_process_groups() -> bool:
    """Hold every process group that will be made; returns whether torch is loaded and can make any."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return False
    module: Any = sys.modules["torch.distributed.distributed_c10d"]
    make = getattr(module, _MAKER, None)
    if make is not None and not hasattr(make, "__wrapped__"):

        @functools.wraps(make)
        def make_and_keep(*args: Any, **options: Any) -> Any:
            made = make(*args, **options)
            _kept.append(made)
            return made

        setattr(module, _MAKER, make_and_keep)
    return True


def keep_existing_groups() -> None:
    """Hold the groups that exist: those of code that loaded torch after we had looked."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        _kept.extend(sys.modules["torch.distributed.distributed_c10d"]._world.pg_map)

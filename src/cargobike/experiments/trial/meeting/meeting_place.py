"""Leads the ranks of a gang to the store where they meet, wherever their program thinks that is.

Many programs set `MASTER_ADDR` and `MASTER_PORT` themselves, as torch's tutorial does, or name an address in
`init_method`: there nobody would listen, because all ranks are clients of a store that is open already, and on several
machines it could not be right. The address of the gang's store is known, so all ranks go there.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from dataclasses import dataclass
from multiprocessing.process import current_process
from types import ModuleType
from typing import Any

from cargobike.experiments.trial.meeting.later import when_imported

_MODULE = "torch.distributed.rendezvous"
_OPENER = "_create_c10d_store"
_KEPT_AS = "cargobike"


@dataclass(frozen=True, slots=True)
class MeetingPlace:
    """Where the ranks of a gang meet.

    Attributes:
        host: Where the store is, or will be opened by rank 0.
        port: The port of the store.
        rank: Which rank this process is.
        world_size: How many there are: a group of another size is one that the program forms for itself.
        pid: This process: those that it starts are no ranks of the gang.
    """

    host: str
    port: int
    rank: int
    world_size: int
    pid: int

    def lead_there(self) -> None:
        """Lead this process there as soon as it uses torch; those that it starts form groups of their own."""
        when_imported(_MODULE, self._lead)
        # What `multiprocessing` keeps here travels to every process that it starts anew.
        current_process()._config[_KEPT_AS] = self  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        """Arrive in a process that `multiprocessing` has started anew, by which torch is not led there yet."""
        return _arrive, (self.host, self.port, self.rank, self.world_size, self.pid)

    def _lead(self, module: ModuleType) -> None:
        opener = getattr(module, _OPENER, None)
        if opener is None:
            return
        open_store = getattr(opener, "__wrapped__", opener)

        signature = inspect.signature(open_store)

        @functools.wraps(open_store)
        def open_ours(*args: Any, **options: Any) -> Any:
            call = signature.bind(*args, **options)
            asked = call.arguments
            hostname, port = asked["hostname"], asked["port"]
            if (hostname, port) == (self.host, self.port):
                return open_store(*args, **options)
            if os.getpid() == self.pid and asked["world_size"] == self.world_size:
                if port != self.port:
                    self._tell(hostname, port)
                asked.update(hostname=self.host, port=self.port, rank=self.rank)
                return open_store(*call.args, **call.kwargs)
            # A group of the program's own: nobody else opens a store for it, although the environment says so of ours.
            return module.TCPStore(
                hostname, port, asked["world_size"], asked["rank"] == 0, asked["timeout"], multi_tenant=True
            )

        setattr(module, _OPENER, open_ours)

    def _tell(self, hostname: str, port: int) -> None:
        with contextlib.suppress(Exception):  # the program may have closed or replaced it
            sys.stderr.write(
                f"cargobike: the ranks of this gang meet at {self.host}:{self.port}, not at {hostname}:{port} as the "
                "program says (MASTER_ADDR and MASTER_PORT, or init_method): it need not say so.\n"
            )


def _arrive(host: str, port: int, rank: int, world_size: int, pid: int) -> MeetingPlace:
    place = MeetingPlace(host, port, rank, world_size, pid)
    place.lead_there()
    return place

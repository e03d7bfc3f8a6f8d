"""A program as the ranks of a job: what each rank runs in place of a function."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cargobike.compat.horovod.common.variables import ELASTIC, rank_variables
from cargobike.core import settings
from cargobike.core.errors import ProgramError
from cargobike.experiments.trial.command.process import run_process
from cargobike.training.regrouping.line import extended
from cargobike.training.regrouping.member import Regrouping, here_regrouping


@dataclass(frozen=True)
class ProgramRank:
    """Runs the program, and ends as it ends.

    Attributes:
        command: Program and arguments.
        directory: Where it works.
        is_elastic: Whether its ranks may come and go: then it meets the others itself, in `init`.
        env: Variables to set for it.
    """

    command: Sequence[str]
    directory: str
    is_elastic: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    def __call__(self) -> None:
        """Run it.

        Raises:
            SystemExit: If it ends with an error.
        """
        here = here_regrouping()
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", **self.env}
        if self.is_elastic:
            with extended(here.line) as descriptor:
                code = self._run({**variables, ELASTIC: "1", **here.for_programs(descriptor)}, [descriptor])
        else:
            here.meet()
            gang = _gang_variables(here)
            quiet = {settings.COMPAT_QUIET: "1"} if here.rank else {}  # what older calls are called is said once
            code = self._run({**variables, **quiet, **gang, **rank_variables(gang)}, [])
        if code < 0:
            _die_of(-code)
        if code:
            raise SystemExit(code)

    def _run(self, variables: dict[str, str], descriptors: list[int]) -> int:
        try:
            return run_process(
                self.command,
                directory=self.directory,
                variables=variables,
                on_line=_nothing,
                on_tick=_nothing,
                descriptors=descriptors,
            )
        except ProgramError as error:
            sys.stderr.write(f"{error}\n")
            raise SystemExit(127) from None


def _gang_variables(here: Regrouping) -> dict[str, str]:
    """Return what torchrun would set."""
    host, _, port = here.meeting_place.rpartition(":")
    hosts = list(dict.fromkeys(here.hosts))
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "RANK": str(here.rank),
        "WORLD_SIZE": str(here.world_size),
        "LOCAL_RANK": str(here.local_rank),
        "LOCAL_WORLD_SIZE": str(here.local_world_size),
        "GROUP_RANK": str(hosts.index(here.hosts[here.rank])),
        "GROUP_WORLD_SIZE": str(len(hosts)),
    }


def _nothing(*_: Any) -> None:
    pass


def _die_of(number: int) -> None:
    """End this process by the signal that ended the program: to the driver, the rank is lost, not faulty."""
    faulthandler.disable()
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)

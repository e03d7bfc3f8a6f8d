"""`horovodrun`: a program as the ranks of a job on this machine."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

from cargobike.compat.as_is.surroundings import FOLDER
from cargobike.compat.horovod.runner.discovery import ANY_NUMBER, Discovery, looking
from cargobike.compat.horovod.runner.front import elastic_terms
from cargobike.compat.horovod.runner.hosts import read_hostfile, read_hosts, slots_here
from cargobike.compat.horovod.runner.jobs import run_job
from cargobike.compat.horovod.runner.options import VARIABLES, read_options
from cargobike.compat.horovod.runner.output import RankOutput
from cargobike.compat.horovod.runner.program import ProgramRank
from cargobike.core.errors import CargobikeError, InvalidInputError, ProgramError
from cargobike.core.version import __version__
from cargobike.training.regrouping.driving import JobFailedError


def run_commandline(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for and return the exit code: that of the first rank that failed.

    Raises:
        InvalidInputError: If hosts were named that cannot be used.
    """
    asked, ignored = read_options(sys.argv[1:] if arguments is None else arguments)
    if asked.check_build:
        sys.stdout.write(check_build())
        return 0
    if ignored:
        sys.stderr.write(f"cargobike: {', '.join(ignored)}: accepted, and without a meaning here\n")
    try:
        return _run(asked)
    except KeyboardInterrupt:
        sys.stderr.write("cargobike: interrupted; all ranks have been ended\n")
        return 130


def _run(asked: argparse.Namespace) -> int:
    discovery = Discovery(asked.host_discovery_script, asked.slots or 1) if asked.host_discovery_script else None
    is_elastic = bool(discovery or asked.min_num_proc or asked.max_num_proc)
    start = asked.num_proc or asked.min_num_proc
    try:
        slots = discovery.first() if discovery is not None else _slots(asked, start)
        terms = elastic_terms(
            start,
            asked.min_num_proc,
            _most(asked, start, slots),
            asked.start_timeout,
            asked.reset_limit,
            asked.elastic_timeout,
        )
        terms = replace(terms, is_elastic=is_elastic)
        if not is_elastic and slots < start:
            raise InvalidInputError(f"-np {start} ranks were asked for, and the hosts have room for {slots}.")
        output = RankOutput(
            terms.most if terms.most < ANY_NUMBER else start,
            folder=asked.output_filename,
            with_time=asked.prefix_output_with_timestamp,
        )
        run_job(
            ProgramRank(_found(asked.command), os.getcwd(), is_elastic, _variables(asked)),
            terms,
            output,
            look_around=looking(discovery, slots) if is_elastic else None,
        )
    except JobFailedError as failure:
        sys.stderr.write(f"cargobike: the job failed: {failure.why}\n")
        return failure.code
    finally:
        if discovery is not None:
            discovery.close()
    return 0


def _most(asked: argparse.Namespace, start: int, slots: int) -> int:
    """Return how many ranks there may be at most."""
    if asked.max_num_proc:
        return int(asked.max_num_proc)
    if asked.host_discovery_script:
        return ANY_NUMBER
    return max(start, slots) if asked.min_num_proc else start


def _slots(asked: argparse.Namespace, start: int) -> int:
    """Return how many ranks have room on this machine."""
    if asked.hosts is not None:
        return slots_here(read_hosts(asked.hosts))
    if asked.hostfile is not None:
        return slots_here(read_hostfile(asked.hostfile))
    return int(asked.slots or start)


def _variables(asked: argparse.Namespace) -> dict[str, str]:
    given = {VARIABLES[name]: value for name, value in vars(asked).items() if name in VARIABLES and value is not None}
    if "HOROVOD_TIMELINE" in given:
        given["HOROVOD_TIMELINE"] = os.path.abspath(given["HOROVOD_TIMELINE"])
    # `import horovod` finds ours in the ranks, so that programs run as they are.
    path = [str(FOLDER / "horovod"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), **{name: str(value) for name, value in given.items()}}


def _found(command: list[str]) -> list[str]:
    """Return a command with the path of its program.

    Raises:
        ProgramError: If there is no such program.
    """
    is_python = command[0] in ("python", "python3")  # this one, even if its environment was not activated
    program = sys.executable if is_python else shutil.which(command[0])
    if program is None:
        raise ProgramError(f"There is no program {command[0]!r} that could be run.", exit_code=127)
    return [program, *command[1:]]


def check_build() -> str:
    """Return what ranks can use, as `horovodrun --check-build` prints it."""
    has_torch = importlib.util.find_spec("torch") is not None
    nccl = False
    if has_torch:
        from cargobike.compat.horovod.common.built import nccl_built  # noqa: PLC0415 - loads torch

        nccl = bool(nccl_built())
    tensorflow = importlib.util.find_spec("tensorflow") is not None
    parts = {
        "Available Frameworks": {"TensorFlow": tensorflow, "PyTorch": has_torch, "MXNet": False},
        "Available Controllers": {"MPI": False, "Gloo": has_torch},
        "Available Tensor Operations": {"NCCL": nccl, "DDL": False, "CCL": False, "MPI": False, "Gloo": has_torch},
    }
    lines = [f"cargobike {__version__}, as Horovod:"]
    for title, entries in parts.items():
        lines += ["", f"{title}:", *(f"    [{'X' if there else ' '}] {name}" for name, there in entries.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run `python -m cargobike.compat.horovod.runner`; our own errors are sentences, not tracebacks."""
    try:
        return run_commandline()
    except CargobikeError as error:
        sys.stderr.write(f"{error}\n")
        return int(getattr(error, "exit_code", None) or 1)

"""The options of `horovodrun`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from cargobike.core.version import __version__

VARIABLES: Final = {
    "timeline_filename": "HOROVOD_TIMELINE",
    "timeline_mark_cycles": "HOROVOD_TIMELINE_MARK_CYCLES",
    "no_stall_check": "HOROVOD_STALL_CHECK_DISABLE",
    "stall_check_warning_time_seconds": "HOROVOD_STALL_CHECK_TIME_SECONDS",
    "stall_check_shutdown_time_seconds": "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
    "gloo_timeout_seconds": "HOROVOD_GLOO_TIMEOUT_SECONDS",
    "log_level": "HOROVOD_LOG_LEVEL",
}
"""Options that ranks read as variables."""

_WITH_VALUE: Final = (
    "--fusion-threshold-mb",
    "--cycle-time-ms",
    "--cache-capacity",
    "--autotune-log-file",
    "--autotune-warmup-samples",
    "--autotune-steps-per-sample",
    "--autotune-bayes-opt-max-samples",
    "--autotune-gaussian-process-noise",
    "--mpi-args",
    "--binding-args",
    "--num-nccl-streams",
    "--thread-affinity",
    "--ssh-port",
    "--ssh-identity-file",
    "--network-interface",
    "--network-interfaces",
)
_SWITCHES: Final = (
    "--disable-cache",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--autotune",
    "--no-autotune",
    "--no-timeline-mark-cycles",
    "--stall-check",
    "--mpi-threads-disable",
    "--no-mpi-threads-disable",
    "--tcp",
    "--log-with-timestamp",
    "--log-without-timestamp",
    "--log-hide-timestamp",
    "--no-log-hide-timestamp",
    "--verbose",
)
_SHORT: Final = {"--ssh-port": "-p", "--ssh-identity-file": "-i"}


def read_options(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return what was asked for, and those options that mean nothing here; a wrong one ends the process with code 2."""
    parser = argparse.ArgumentParser(
        "horovodrun", description="Run a program for Horovod as several ranks.", allow_abbrev=False
    )
    parser.add_argument("-v", "--version", action="version", version=f"cargobike {__version__}, as horovodrun")
    parser.add_argument(
        "-np", "--num-proc", type=int, help="How many ranks; of an elastic job, how many to begin with."
    )
    parser.add_argument("-cb", "--check-build", action="store_true", help="Show what ranks can use, and end.")
    parser.add_argument("--start-timeout", type=float, help="How many seconds ranks have to come; 120 by default.")
    parser.add_argument("--output-filename", metavar="FOLDER", help="Write output to FOLDER/rank.N/stdout and stderr.")
    parser.add_argument("-prefix-timestamp", "--prefix-output-with-timestamp", action="store_true")
    where = parser.add_argument_group("hosts").add_mutually_exclusive_group()
    where.add_argument("-H", "--hosts", help="This machine only: localhost:4.")
    where.add_argument("-hostfile", "--hostfile", help="The same in a file: localhost slots=4.")
    where.add_argument("--host-discovery-script", metavar="PROGRAM", help="Prints host:slots, asked again and again.")
    elastic = parser.add_argument_group("ranks that come and go")
    elastic.add_argument("--min-np", "--min-num-proc", dest="min_num_proc", type=int, help="The fewest to go on with.")
    elastic.add_argument("--max-np", "--max-num-proc", dest="max_num_proc", type=int, help="The most there may be.")
    elastic.add_argument("--slots-per-host", dest="slots", type=int, help="How many have room on this machine.")
    elastic.add_argument("--elastic-timeout", type=float, help="How many seconds to wait for ranks; 600 by default.")
    elastic.add_argument("--reset-limit", type=int, help="How often ranks may change.")
    elastic.add_argument("--blacklist-cooldown-range", dest="cooldown_range", type=int, nargs=2, help="Accepted.")
    shown = parser.add_argument_group("what ranks read")
    shown.add_argument("--timeline-filename", metavar="FILE", help="Write a Chrome trace of all operations.")
    shown.add_argument("--timeline-mark-cycles", action="store_const", const="1")
    shown.add_argument("--no-stall-check", action="store_const", const="1")
    shown.add_argument("--stall-check-warning-time-seconds", type=float)
    shown.add_argument("--stall-check-shutdown-time-seconds", type=float)
    shown.add_argument("--gloo-timeout-seconds", type=float)
    shown.add_argument("--log-level", choices=["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"])
    how = parser.add_argument_group("controllers").add_mutually_exclusive_group()
    how.add_argument("--gloo", action="store_true", dest="use_gloo", help="The only one there is.")
    how.add_argument("--mpi", action="store_true", dest="use_mpi", help="Refused: there is no MPI here.")
    how.add_argument("--jsrun", action="store_true", dest="use_jsrun", help="Refused.")
    idle = parser.add_argument_group("accepted, and without a meaning here")
    for name in _WITH_VALUE:
        idle.add_argument(*([_SHORT[name]] if name in _SHORT else []), name, dest=_IDLE + name, help=argparse.SUPPRESS)
    for name in _SWITCHES:
        idle.add_argument(name, dest=_IDLE + name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="The program and its arguments.")
    asked = parser.parse_args(list(arguments))
    if asked.command[:1] == ["--"]:
        del asked.command[0]
    given = vars(asked)
    ignored = [name.removeprefix(_IDLE) for name, value in given.items() if name.startswith(_IDLE) and value]
    problems = _problems(asked)
    if problems:
        parser.error("; ".join(problems))
    return asked, [name for name in ignored if name != "--verbose"]


_IDLE: Final = "idle:"


def _problems(asked: argparse.Namespace) -> list[str]:
    if asked.check_build:
        return []
    problems = []
    if asked.num_proc is None and asked.min_num_proc is None:
        problems.append("say how many ranks: -np 2")
    elif asked.num_proc is not None and asked.num_proc < 1:
        problems.append(f"-np {asked.num_proc}: give at least 1")
    least, most = asked.min_num_proc, asked.max_num_proc
    start = asked.num_proc or least
    if least is not None and least < 1:
        problems.append(f"--min-np {least}: give at least 1")
    if start is not None and ((least is not None and least > start) or (most is not None and most < start)):
        problems.append(
            f"--min-np {least}, -np {start}, --max-np {most}: give them in this order, none less than before"
        )
    if asked.use_mpi or asked.use_jsrun:
        problems.append("there is no MPI here: use --gloo, or leave it out")
    if not asked.command:
        problems.append("say what to run: horovodrun -np 2 python train.py")
    return problems

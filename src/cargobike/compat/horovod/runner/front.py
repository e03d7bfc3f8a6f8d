"""`horovod.run`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cargobike.compat.horovod.runner.calling import call_in_ranks
from cargobike.compat.horovod.runner.deadlines import read_seconds
from cargobike.compat.horovod.runner.discovery import ANY_NUMBER, Discovery, looking
from cargobike.compat.horovod.runner.hosts import read_hostfile, read_hosts, slots_here
from cargobike.compat.horovod.runner.jobs import call_elastically
from cargobike.compat.horovod.runner.output import RankOutput
from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError
from cargobike.training.regrouping.roster import Terms


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: Sequence[int] | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    start_timeout: float | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: int | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
    host_discovery_script: str | None = None,
) -> list[Any]:
    """Call a function in several ranks on this machine and return what each of them returned, by rank.

    Args:
        func: The function; it may be a local one, or one of a script or notebook.
        args: Its arguments.
        kwargs: Its named arguments.
        num_proc: How many ranks.
        min_num_proc: The fewest ranks that an elastic job goes on with; with it, or with `max_num_proc`, it is one.
        max_num_proc: The most ranks of an elastic job.
        slots: How many ranks of an elastic job may be on this machine.
        reset_limit: How often an elastic job may change its ranks.
        cooldown_range: Accepted; a machine that has lost a rank is used again at once.
        hosts: Must name this machine only, as in `localhost:4`.
        hostfile: The same, in a file.
        start_timeout: How many seconds ranks of an elastic job have to come.
        ssh_port: Accepted; nothing is started over ssh.
        ssh_identity_file: Accepted.
        disable_cache: Accepted.
        output_filename: A folder for what ranks print: `rank.0/stdout`, `rank.0/stderr` and so on.
        verbose: Accepted.
        use_gloo: Accepted: ranks always meet over gloo, and train over NCCL where there are GPUs.
        use_mpi: Refused: there is no MPI here.
        mpi_args: Accepted.
        network_interface: Accepted.
        executable: Accepted; ranks run the interpreter of this process.
        np: An older name of `num_proc`.
        min_np: An older name of `min_num_proc`.
        max_np: An older name of `max_num_proc`.
        host_discovery_script: A program that prints `host:slots`, asked again and again; with it a job is elastic.

    Raises:
        InvalidInputError: If something given cannot be used.
        TrialFailedError: If a rank fails, which ends all of them; a `RuntimeError` with the rank's own traceback.
    """
    notice("horovod.run")
    ranks = np if np is not None and num_proc == 1 else num_proc
    least, most = min_num_proc or min_np, max_num_proc or max_np
    is_elastic = least is not None or most is not None or host_discovery_script is not None
    places = _check(ranks, least, most, hosts=hosts, hostfile=hostfile, use_gloo=use_gloo, use_mpi=use_mpi)
    output = RankOutput(most or ranks, folder=output_filename)
    if not is_elastic:
        return call_in_ranks(func, args, kwargs or {}, ranks=ranks, output=output)
    if host_discovery_script is not None:
        with contextlib.closing(Discovery(host_discovery_script, slots or 1)) as discovery:
            terms = elastic_terms(ranks, least, most or ANY_NUMBER, start_timeout, reset_limit)
            look_around = looking(discovery, discovery.first())
            return call_elastically(func, args, kwargs or {}, terms, output, look_around=look_around)
    room = slots or places or ranks
    terms = elastic_terms(ranks, least, most or max(ranks, room), start_timeout, reset_limit)
    return call_elastically(func, args, kwargs or {}, terms, output, look_around=lambda: room)


def elastic_terms(
    ranks: int,
    least: int | None,
    most: int,
    start_timeout: float | None,
    reset_limit: int | None,
    elastic_timeout: float | None = None,
) -> Terms:
    """Return how many ranks an elastic job may have, with Horovod's own deadlines unless others were given."""
    return Terms(
        start=ranks,
        least=least or ranks,
        most=most,
        start_s=read_seconds(start_timeout, "HOROVOD_START_TIMEOUT", 120.0),
        wait_s=read_seconds(elastic_timeout, "HOROVOD_ELASTIC_TIMEOUT", 600.0),
        reset_limit=reset_limit,
    )


def _check(
    ranks: int,
    least: int | None,
    most: int | None,
    *,
    hosts: str | None,
    hostfile: str | None,
    use_gloo: bool | None,
    use_mpi: bool | None,
) -> int | None:
    """Return how many ranks the named hosts have room for, `None` if none was named."""
    mistakes = sizes_mistakes(ranks, least, most)
    if hosts is not None and hostfile is not None:
        mistakes.append("hosts and hostfile were both given; give one of them")
    if use_mpi:
        more = " and use_gloo=True" if use_gloo else ""
        mistakes.append(f"use_mpi=True{more}; there is no MPI here: leave it out, ranks meet over gloo")
    if mistakes:
        raise InvalidInputError("The job cannot be started.", mistakes)
    named = read_hosts(hosts) if hosts is not None else read_hostfile(hostfile) if hostfile is not None else None
    if named is None:
        return None
    if (places := slots_here(named)) < (least or ranks):
        raise InvalidInputError(f"num_proc={ranks} ranks were asked for, and the hosts have room for {places}.")
    return places


def sizes_mistakes(ranks: object, least: object, most: object) -> list[str]:
    """Return what is wrong with how many ranks were asked for."""
    given = {"min_num_proc": least, "num_proc": ranks, "max_num_proc": most}
    numbers = {name: number for name, number in given.items() if number is not None}
    mistakes = [
        f"{name}={number!r}; give a whole number of at least 1"
        for name, number in numbers.items()
        if type(number) is not int or number < 1
    ]
    if not mistakes and list(numbers.values()) != sorted(numbers.values()):  # type: ignore[type-var]
        words = ", ".join(f"{name}={number}" for name, number in numbers.items())
        mistakes.append(f"{words}; give them in this order, none less than the one before")
    return mistakes

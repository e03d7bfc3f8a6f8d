"""Hosts as Horovod's users write them: `host1:2,host2:4`, a hostfile, or what a discovery script prints."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cargobike.core.errors import InvalidInputError, NotFoundError

_HERE: Final = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?P<name>[\w.-]+)(?::(?P<slots>\d+))?$")
_LINE = re.compile(r"(?P<name>[\w.-]+)(?:\s+slots\s*=\s*(?P<slots>\d+)|:(?P<more>\d+))?$")


def read_hosts(text: str) -> dict[str, int]:
    """Return how many ranks have room on each host.

    Raises:
        InvalidInputError: If that is no list of hosts; names every part that is wrong.

    Example:
        >>> read_hosts("localhost:2,tower:4")
        {'localhost': 2, 'tower': 4}
    """
    return _read([part.strip() for part in text.split(",")], _HOST, 1, f"hosts={text!r}", "host:slots, such as a:2,b:4")


def read_hostfile(path: str) -> dict[str, int]:
    """Return how many ranks have room on each host that a file names, one in each line.

    Raises:
        NotFoundError: If there is no such file.
        InvalidInputError: If a line of it is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NotFoundError(f"The hostfile {path} cannot be read: {error.strerror}.", wanted=path) from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return _read([line for line in lines if line], _LINE, 1, f"hostfile {path}", "lines such as: tower slots=4")


def read_discovered(text: str, slots: int) -> dict[str, int]:
    """Return how many ranks have room on each host that a discovery script has printed, one in each line.

    Args:
        text: What it printed.
        slots: How many on a host for which it does not say so.

    Example:
        >>> read_discovered("localhost:3", 1)
        {'localhost': 3}
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (
        _read(lines, _HOST, slots, "what the host discovery script printed", "host:slots in each line") if lines else {}
    )


def _read(parts: list[str], form: re.Pattern[str], slots: int, what: str, wanted: str) -> dict[str, int]:
    found: dict[str, int] = {}
    mistakes = []
    for part in parts:
        match = form.match(part)
        if match is None:
            mistakes.append(f"{part!r} is no host")
            continue
        groups = match.groupdict()
        number = groups.get("slots") or groups.get("more")
        found[match["name"]] = found.get(match["name"], 0) + (slots if number is None else int(number))
    if mistakes or not found:
        raise InvalidInputError(f"{what} cannot be used; give {wanted}.", mistakes)
    return found


def slots_here(hosts: Mapping[str, int]) -> int:
    """Return how many ranks have room on this machine, if no other one is named.

    Raises:
        InvalidInputError: If another machine is named; says how to use several.
    """
    elsewhere = [name for name in hosts if not is_here(name)]
    if elsewhere:
        raise InvalidInputError(
            f"{', '.join(elsewhere)}: ranks are started on this machine only, nothing is started over ssh. On several "
            "machines let Spark start them: horovod.spark.run(fn, num_proc=…), or experiment.allreduce(fn, "
            'engine="spark://host:7077"). Or start the program once for each rank, with HOROVOD_RANK, HOROVOD_SIZE, '
            "HOROVOD_LOCAL_RANK, MASTER_ADDR (the machine of rank 0) and MASTER_PORT set."
        )
    return sum(hosts.values())


def is_here(name: str) -> bool:
    """Tell whether a host is this machine."""
    names = {socket.gethostname(), socket.getfqdn(), socket.gethostname().partition(".")[0]}
    return name in _HERE or name in names

"""What runs in the background: ours as users start it, and peers. Each returns what was received, by 100 ms."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from figures import Receiver, Times, counts_of
from namespaces import HERE, RECEIVER, SENDER, Rig
from product import swarm

LIBTORRENT = HERE.parents[1] / ".venvs" / "libtorrent" / "bin" / "python"
Background = Callable[[Rig, Times, ExitStack], Callable[[], dict[int, int]]]
"""Starts it, and returns once it sends; what it returns reads the counts. The stack is closed after that."""


def product(made: Rig, times: Times, ending: ExitStack) -> Callable[[], dict[int, int]]:
    """Publish, serve and get a file: `cargobike share` as it is."""
    one = ending.enter_context(swarm(made, int(made.mbit / 8 * (times.all_s + 3))))
    process = one.get()
    return lambda: one.sockets.counts(process.pid)


def sender(role: str, control: str, connections: int = 1) -> Background:
    """Return what starts plain TCP or ours, and returns what reads its figures."""

    def start(made: Rig, times: Times, ending: ExitStack) -> Callable[[], dict[int, int]]:
        receiver = Receiver(made, 6000)
        made.python(made.sender, "flows.py", role, RECEIVER, "6000", str(times.all_s), control, str(connections))
        return receiver.counts

    return start


def torrent(transport: str) -> Background:
    """Return what starts libtorrent, as it comes."""

    def start(made: Rig, times: Times, ending: ExitStack) -> Callable[[], dict[int, int]]:
        folder = Path(tempfile.mkdtemp(prefix="cargobike-give-way-"))
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        program, seconds = [str(LIBTORRENT), "torrents.py"], str(times.all_s)
        subprocess.run([*program, "make", str(folder), "400"], cwd=HERE, check=True, timeout=120)
        made.start(made.sender, *program, "seed", str(folder), transport, SENDER, seconds)
        leech = made.start(made.receiver, *program, "leech", str(folder), transport, RECEIVER, seconds, SENDER)

        def counts() -> dict[int, int]:
            return counts_of(leech.communicate(timeout=30)[0])

        return counts

    return start


def rsync(limit_mbit: float | None) -> Background:
    """Return what starts rsync through a receiver that counts: its daemon has the file, and the client is limited."""

    def start(made: Rig, times: Times, ending: ExitStack) -> Callable[[], dict[int, int]]:
        folder = Path(tempfile.mkdtemp(prefix="cargobike-give-way-"))
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "file").write_bytes(bytes(1 << 20) * 500)
        (folder / "to").mkdir()
        (folder / "conf").write_text(f"use chroot = no\n[data]\npath = {folder}/to\nread only = no\nuid = 0\ngid = 0\n")
        daemon = ("rsync", "--daemon", "--no-detach", "--port=8730", f"--config={folder}/conf", f"--address={RECEIVER}")
        made.start(made.receiver, *daemon)
        time.sleep(0.5)
        limit = [] if limit_mbit is None else [f"--bwlimit={limit_mbit * 1000 / 8:.0f}"]
        target = f"rsync://{RECEIVER}:8730/data/"
        made.start(made.sender, "rsync", "--whole-file", "--inplace", *limit, f"{folder}/file", target)
        counter = made.python(made.receiver, "growth.py", str(folder / "to" / "file"), str(times.all_s))

        def counts() -> dict[int, int]:
            return counts_of(counter.communicate(timeout=times.all_s + 20)[0])

        return counts

    return start


BACKGROUNDS: dict[str, Background] = {
    "Cargobike": product,
    "its governor on bare sockets (cubic)": sender("paced", "cubic"),
    "its governor on bare sockets (bbr)": sender("paced", "bbr"),
    "plain TCP (cubic)": sender("send", "cubic"),
    "plain TCP (bbr)": sender("send", "bbr"),
    "libtorrent, TCP (cubic)": torrent("tcp"),
    "libtorrent, uTP": torrent("utp"),
    "rsync --bwlimit of half the link": rsync(40),
}
"""By name. The same congestion controls with and without the governor, since `bbr` alone does part of its work here."""

PEERS = ("libtorrent", "rsync")

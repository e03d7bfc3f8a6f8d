"""How much of a link a foreground flow gets beside transfers in the background, and how much they use when it is idle.

    python benchmarks/sharing/give_way.py [--mbit 80] [--buffers 50,300] [--only NAME] [--quick]

For each background: it runs alone for some seconds, then one TCP flow (CUBIC) sends beside it, then it is alone again.
Needs root; takes less than five minutes. What the governor does is printed to the standard error.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from namespaces import RECEIVER, SENDER, Rig, is_possible, rig

HERE = Path(__file__).resolve().parent
LIBTORRENT = HERE.parents[1] / ".venvs" / "libtorrent" / "bin" / "python"
STEP_S = 0.1


@dataclass(frozen=True)
class Times:
    """How long the background is alone, beside the foreground, and alone again."""

    alone_s: float = 7.0
    beside_s: float = 10.0
    after_s: float = 6.0

    @property
    def all_s(self) -> float:
        return self.alone_s + self.beside_s + self.after_s


@dataclass(frozen=True)
class Figures:
    """Shares of the link: of the foreground in its first 5 s and later, of the background before; time to come back."""

    first: float
    later: float
    idle: float
    back_s: float | None

    def row(self, name: str, buffer_ms: float) -> str:
        back = "not" if self.back_s is None else f"{self.back_s:.1f} s"
        return (
            f"| {buffer_ms:.0f} ms | {name:34} | {self.first:5.0%} | {self.later:5.0%} | {self.idle:5.0%} | {back:>7} |"
        )


def counts_of(text: str) -> dict[int, int]:
    """Read what a receiver printed."""
    return {int(moment): int(count) for moment, _, count in (item.partition(":") for item in text.split())}


class Receiver:
    """A receiver inside the rig that counts bytes by the tenth of a second."""

    def __init__(self, made: Rig, port: int) -> None:
        self._process = made.python(made.receiver, "flows.py", "receive", RECEIVER, str(port))
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def counts(self) -> dict[int, int]:
        return counts_of(self._process.communicate(timeout=20)[0])


def share(counts: dict[int, int], begin: float, end: float, mbit: float) -> float:
    """Return the share of the link between two moments. What TCP and IP add to each packet counts as used."""
    steps = range(round(begin / STEP_S), round(end / STEP_S))
    return sum(counts.get(step, 0) for step in steps) * 1.045 * 8e-6 / mbit / (len(steps) * STEP_S)


def sender(role: str, control: str, connections: int = 1) -> Callable[[Rig, Times], Callable[[], dict[int, int]]]:
    """Return what starts plain TCP or ours, and returns what reads its figures."""

    def start(made: Rig, times: Times) -> Callable[[], dict[int, int]]:
        receiver = Receiver(made, 6000)
        made.python(made.sender, "flows.py", role, RECEIVER, "6000", str(times.all_s), control, str(connections))
        return receiver.counts

    return start


def torrent(transport: str) -> Callable[[Rig, Times], Callable[[], dict[int, int]]]:
    """Return what starts libtorrent, as it comes."""

    def start(made: Rig, times: Times) -> Callable[[], dict[int, int]]:
        folder = Path(tempfile.mkdtemp(prefix="cargobike-give-way-"))
        program, seconds = [str(LIBTORRENT), "torrents.py"], str(times.all_s)
        subprocess.run([*program, "make", str(folder), "400"], cwd=HERE, check=True, timeout=120)
        made.start(made.sender, *program, "seed", str(folder), transport, SENDER, seconds)
        leech = made.start(made.receiver, *program, "leech", str(folder), transport, RECEIVER, seconds, SENDER)

        def counts() -> dict[int, int]:
            out = leech.communicate(timeout=30)[0]
            shutil.rmtree(folder, ignore_errors=True)
            return counts_of(out)

        return counts

    return start


def rsync(limit_mbit: float | None) -> Callable[[Rig, Times], Callable[[], dict[int, int]]]:
    """Return what starts rsync through a receiver that counts: its daemon has the file, and the client is limited."""

    def start(made: Rig, times: Times) -> Callable[[], dict[int, int]]:
        folder = Path(tempfile.mkdtemp(prefix="cargobike-give-way-"))
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
            out = counter.communicate(timeout=times.all_s + 20)[0]
            shutil.rmtree(folder, ignore_errors=True)
            return counts_of(out)

        return counts

    return start


BACKGROUNDS = {
    "Cargobike (bbr)": sender("paced", "bbr"),
    "Cargobike (cubic)": sender("paced", "cubic"),
    "plain TCP (cubic)": sender("send", "cubic"),
    "plain TCP (bbr), no governor": sender("send", "bbr"),
    "libtorrent, TCP": torrent("tcp"),
    "libtorrent, uTP": torrent("utp"),
    "rsync --bwlimit of half the link": rsync(40),
}
"""By name. The same congestion controls with and without the governor, since `bbr` alone does part of its work here."""

PEERS = ("libtorrent", "rsync")


def measure(made: Rig, start: Callable[[Rig, Times], Callable[[], dict[int, int]]], times: Times) -> Figures:
    """Run a background with a foreground in its midst."""
    try:
        foreground = Receiver(made, 5000)
        read = start(made, times)
        began = time.monotonic()
        time.sleep(times.alone_s)
        entered = time.monotonic()
        made.python(made.sender, "flows.py", "send", RECEIVER, "5000", str(times.beside_s), "cubic").wait(timeout=60)
        left = time.monotonic()
        time.sleep(max(0.0, began + times.all_s + 0.5 - time.monotonic()))
        front, back = foreground.counts(), read()
    finally:
        made.stop_all()
    entered = min(
        (step * STEP_S for step, count in front.items() if count), default=entered
    )  # after its program has started
    returned = [
        at
        for at in range(int(times.after_s * 10) - 5)
        if share(back, left + at / 10, left + at / 10 + 0.5, made.mbit) > 0.8
    ]
    return Figures(
        first=share(front, entered, entered + 5, made.mbit),
        later=share(front, entered + 5, entered + times.beside_s, made.mbit),
        idle=share(back, entered - times.alone_s + 3, entered - 0.3, made.mbit),
        back_s=returned[0] / 10 if returned else None,
    )


def fairness(made: Rig, seconds: float) -> tuple[float, float]:
    """Run two of ours from two processes, the second three seconds later; return their shares of the second half."""
    try:
        readers = []
        for number in range(2):
            receiver = Receiver(made, 7000 + number)
            made.python(made.sender, "flows.py", "paced", RECEIVER, str(7000 + number), str(seconds), "bbr")
            readers.append(receiver)
            time.sleep(3 if number == 0 else seconds - 3)
        now = time.monotonic()
        first, second = (share(reader.counts(), now - seconds / 2, now, made.mbit) for reader in readers)
    finally:
        made.stop_all()
    return first, second


def main() -> int:
    """Measure everything and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mbit", type=float, default=80)
    parser.add_argument("--buffers", default="50,300", help="depths of the queue, in ms")
    parser.add_argument("--only", help="a part of the name of the backgrounds to measure")
    parser.add_argument("--quick", action="store_true", help="ours and plain TCP, one depth")
    given = parser.parse_args()
    if reason := is_possible():
        print(f"give_way.py {reason}", file=sys.stderr)
        return 1
    if not LIBTORRENT.exists() and not given.quick and given.only is None:
        subprocess.run([sys.executable, "-m", "venv", str(LIBTORRENT.parents[1])], check=True)
        subprocess.run([str(LIBTORRENT), "-m", "pip", "install", "-q", "libtorrent==2.1.1"], check=True)
    depths = [float(text) for text in given.buffers.split(",")]
    names = [name for name in BACKGROUNDS if given.only is None or given.only in name]
    if given.quick:
        depths, names = depths[-1:], [name for name in names if name in ("Cargobike (bbr)", "plain TCP (cubic)")]
    if shutil.which("rsync") is None:
        names = [name for name in names if not name.startswith("rsync")]
    times = Times()
    with rig(given.mbit, depths[0]) as made:
        print(f"link of {given.mbit:.0f} Mbit/s; foreground: one TCP flow (CUBIC) for {times.beside_s:.0f} s\n")
        print(
            "| queue | background | foreground, first 5 s | after 5 s | background on the idle link | came back after |"
        )
        print("|---|---|---|---|---|---|")
        for depth in depths:
            made.shape(depth)
            # Peers are measured once, in the deepest queue.
            once = [name for name in names if depth == depths[-1] or not name.startswith(PEERS)]
            for name in once:
                print(measure(made, BACKGROUNDS[name], times).row(name, depth), flush=True)
        if any(name.startswith("Cargobike") for name in names):
            first, second = fairness(made, 20)
            print(f"\ntwo of ours, the second 3 s later, shares of the last 10 of 20 s: {first:.0%} and {second:.0%}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

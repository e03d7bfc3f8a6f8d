"""How fast sharing is on one machine: hashing, finding, getting over loopback, getting from several.

    python benchmarks/sharing/speed.py [--mb 1000] [--only hashing|finding|loopback|members]

Members are processes of their own, as `cargobike share serve` makes them. Run it on a quiet machine. We wait until a
file is on the disk, libtorrent does not: with `TMPDIR=/dev/shm` the disk has no say.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from rig import findings  # noqa: E402
from rig.venvs import python_of  # noqa: E402

from cargobike.sharing.catalogue.entry import Question  # noqa: E402
from cargobike.sharing.getting.front import get  # noqa: E402
from cargobike.sharing.hashing import choose_piece_size, hash_file  # noqa: E402
from support.publications import identity_of, new_catalogue, signed_manifest  # noqa: E402
from support.swarm import lab, project_at, publish, seeding  # noqa: E402

Found = list[findings.Target]


def write_random(path: Path, mb: int) -> Path:
    """Write a file that nothing can compress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for _ in range(mb):
            file.write(os.urandom(1_000_000))
    return path


def hashing(folder: Path, mb: int) -> Found:
    """Hash a file as publishing does: SHA-256 trees and SHA-1 pieces."""
    path = write_random(folder / "file", mb)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        hash_file(path, choose_piece_size(path.stat().st_size))
        seconds.append(time.perf_counter() - began)
    rate = mb / statistics.median(seconds)
    print(f"hashing: {rate:.0f} MB/s (wanted: 400)", flush=True)
    return [findings.at_least("a publication is hashed for v1 and v2", rate, 400, " MB/s")]


def finding(folder: Path, mb: int, count: int = 10_000) -> Found:
    """Find two words among many publications."""
    alice = identity_of("alice")
    nouns = ("fraud", "weather", "higgs", "street", "protein", "price", "galaxy", "traffic")
    with new_catalogue(folder) as catalogue:
        for number in range(count):
            words = f"{nouns[number % 8]} {nouns[number // 8 % 8]} of year {number % 97}"
            catalogue.add(
                signed_manifest(alice, number + 1, name=f"set-{number}", description=words, tags=(nouns[number % 7],))
            )
        seconds = []
        for number in range(50):
            began = time.perf_counter()
            catalogue.find(Question(words=(nouns[number % 8], nouns[(number + 3) % 8])))
            seconds.append(time.perf_counter() - began)
    print(
        f"finding in {count} entries: {statistics.median(seconds) * 1e3:.1f} ms, "
        f"at most {max(seconds) * 1e3:.1f} ms (wanted: 100)"
    )
    return [findings.at_most("words are found among 10,000 entries, the slowest of 50", max(seconds) * 1e3, 100, " ms")]


@contextmanager
def member(folder: Path, source: Path | str) -> Iterator[str]:
    """Run a member in a process of its own that has a folder, or gets it from an address; return where it is."""
    program = [sys.executable, str(HERE / "speed.py"), "--member", str(folder), "--source", str(source)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def serve(folder: Path, source: str) -> None:
    """Be a member until the caller is gone."""
    with seeding(folder) as seeder:
        if Path(source).is_dir():
            publish(seeder.membership, Path(source), piece_size=choose_piece_size(10**9))
        else:
            to, project = folder / "got", seeder.membership.project
            get("higgs", network=lab(), to=to, peers=[source], project=project, quiet=True, timeout_s=60)
        print(seeder.address, flush=True)
        sys.stdin.read()


def loopback(folder: Path, mb: int) -> Found:
    """Get a file over loopback, beside libtorrent's TCP; each in turn, three times."""
    text = f"{mb} MB over loopback: rate of libtorrent over TCP"
    source = write_random(folder / "source" / "file", mb).parent
    subprocess.run([*torrents(), "make", str(folder / "torrent"), str(mb)], cwd=HERE, check=True)
    ours, theirs = [], []
    with member(folder / "seed", source) as address:
        for number in range(3):
            os.sync()
            to, project = folder / "to", project_at(folder / f"getter{number}")
            began = time.perf_counter()
            get("higgs", network=lab(), to=to, peers=[address], project=project, quiet=True, timeout_s=60)
            ours.append(time.perf_counter() - began)
            shutil.rmtree(to)
            os.sync()
            theirs.append(torrent_seconds(folder / "torrent", number))
    ratio = statistics.median(their / our for our, their in zip(ours, theirs, strict=True))
    print(
        f"loopback, {mb} MB: {mb / statistics.median(ours):.0f} MB/s; libtorrent over TCP "
        f"{mb / statistics.median(theirs):.0f} MB/s; ratio {ratio:.2f} (wanted: 0.8)"
    )
    return [findings.at_least(text, ratio, 0.8, " ×", gate=True)]


def torrents() -> list[str]:
    """Return what starts the peer, in an environment that is made if there is none."""
    return [str(python_of("libtorrent", ROOT)), "torrents.py"]


def torrent_seconds(folder: Path, number: int) -> float:
    """Return how long libtorrent takes for the same, from the first byte to the last."""
    program = torrents()
    seed = subprocess.Popen([*program, "seed", str(folder), "tcp", "127.0.0.1", "600"], cwd=HERE)
    try:
        leech = [*program, "leech", str(folder), "tcp", "127.0.0.2", "600", "127.0.0.1"]
        out = subprocess.run(leech, cwd=HERE, check=True, capture_output=True, text=True, timeout=700).stdout
    finally:
        seed.kill()
        seed.wait()
    moments = [int(item.partition(":")[0]) for item in out.split() if not item.endswith(":0")]
    (folder / "leech" / "file").unlink()
    return max(0.1, (moments[-1] - moments[0] + 1) * 0.1)


def members(folder: Path, mb: int) -> Found:
    """Get the same from 1 to 8 members, three times each, in turn.

    On one machine the bottleneck is what its cores and its disk do for one transfer, so more members may not be slower.
    All of them run all the time, as processes of their own; what was written is on the disk before the next one begins.
    """
    source = write_random(folder / "source" / "file", mb).parent
    seconds: dict[int, list[float]] = {1: [], 2: [], 4: [], 8: []}
    again: dict[int, list[float]] = {count: [] for count in seconds}
    with ExitStack() as stack:
        addresses = [stack.enter_context(member(folder / "seed0", source))]
        for number in range(1, max(seconds)):
            addresses.append(stack.enter_context(member(folder / f"seed{number}", addresses[0])))
        for number in range(3):
            for count, runs in seconds.items():
                os.sync()
                to, project = folder / "to", project_at(folder / f"getter{number}-{count}")
                began = time.perf_counter()
                arrival = get(
                    "higgs", network=lab(), to=to, peers=addresses[:count], project=project, quiet=True, timeout_s=60
                )
                runs.append(time.perf_counter() - began)
                again[count].append(100 * arrival.progress.size_twice / (mb * 1e6))
                shutil.rmtree(to)
    alone, found = statistics.median(seconds[1]), []
    for count, runs in seconds.items():
        median = statistics.median(runs)
        ratio = statistics.median(one / first for one, first in zip(runs, seconds[1], strict=True))
        print(
            f"{count} members: {mb / median:.0f} MB/s, {median / alone:.2f} times the time of one (wanted: 1.3), "
            f"{ratio:.2f} in the same round; sent twice: {statistics.median(again[count]):.1f} %",
            flush=True,
        )
        if count > 1:
            found.append(findings.at_most(f"from {count} members: time of one", ratio, 1.3, " ×", gate=True))
    return found


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--only", choices=["hashing", "finding", "loopback", "members"])
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.member:
        serve(Path(given.member), given.source)
        return
    targets: Found = []
    for name, run in {"hashing": hashing, "finding": finding, "loopback": loopback, "members": members}.items():
        if given.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="cargobike-speed-") as folder:
                targets += run(Path(folder), given.mb)
    findings.hand_on("transfers", targets)


if __name__ == "__main__":
    main()

"""Measure packed small files beside reading them one by one: from a local disk, from HDFS, from S3.

    python benchmarks/data/packing.py --files 20000 local
    python benchmarks/data/packing.py --files 100000 --sample 1000 s3 hdfs

With `--sample`, only so many files are put on the storage and read one by one, and their time is scaled to all files;
the table is packed from a local folder and read whole. Files have 0.5 to 4 kB.

"one by one" opens and reads each, as a map-style dataset does: local files with `open`, others
with the storages' own clients (s3fs, hdfs-native). "16 threads" does the same with sixteen threads. "packed" reads the
table that `data.pack` made through `data.Loader`, in batches of 1,024, until each row is `bytes`. Every way adds up
what it read, and the sums are compared. Rounds alternate; medians are shown. Local files are read cold, after their
pages were given back to the kernel, and warm. The servers run on this machine, so there is no network between: a
storage that is farther away makes one by one slower, and the table hardly.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from cargobike import data
from cargobike.store.files.storages import open_storage

Read = Callable[[str], bytes]


def make_files(count: int) -> dict[str, bytes]:
    rng = np.random.default_rng(7)
    sizes = rng.integers(500, 4000, count)
    return {f"class{number % 10}/{number:06d}.bin": rng.bytes(int(size)) for number, size in enumerate(sizes)}


def weight(content: bytes) -> int:
    """Return a number that costs nothing to compute, and differs if something else was read."""
    return len(content) * (content[0] + content[-1] + 1)


def one_by_one(paths: list[str], read: Read) -> int:
    return sum(weight(read(path)) for path in paths)


def with_threads(paths: list[str], read: Read) -> int:
    with ThreadPoolExecutor(16) as threads:
        return sum(threads.map(lambda path: weight(read(path)), paths))


def packed(url: str) -> int:
    total = 0
    for batch in data.Loader(url, batch_size=1024, columns=["bytes"], to="arrow"):
        total += sum(map(weight, batch.column("bytes").to_pylist()))
    return total


@contextmanager
def local(files: dict[str, bytes]) -> Iterator[tuple[str, Read, Callable[[], None]]]:
    with tempfile.TemporaryDirectory(prefix="packing-") as folder:
        for path, content in files.items():
            place = Path(folder, "raw", path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        os.sync()

        def read(path: str) -> bytes:
            with open(f"{folder}/raw/{path}", "rb") as file:
                return file.read()

        def forget() -> None:
            for place in Path(folder).rglob("*.*"):
                fd = os.open(place, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)

        yield folder, read, forget


@contextmanager
def s3(files: dict[str, bytes]) -> Iterator[tuple[str, Read, Callable[[], None]]]:
    import s3fs

    from support.seaweed_server import KEY, SECRET, SeaweedServer

    server = SeaweedServer()
    try:
        settings = {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "ENDPOINT_URL": server.endpoint}
        os.environ.update({f"AWS_{name}": value for name, value in settings.items()}, AWS_DEFAULT_REGION="us-east-1")
        client = s3fs.S3FileSystem()
        client.mkdir("packing")
        send("s3://packing/raw", files)
        yield "s3://packing", lambda path: client.cat_file(f"packing/raw/{path}"), lambda: None
    finally:
        server.close()


@contextmanager
def hdfs(files: dict[str, bytes]) -> Iterator[tuple[str, Read, Callable[[], None]]]:
    from hdfs_native import Client

    from support.hdfs_server import HdfsServer

    server = HdfsServer()
    try:
        client = Client(server.url)
        send(f"{server.url}/packing/raw", files)

        def read(path: str) -> bytes:
            with client.read(f"/packing/raw/{path}") as file:
                return bytes(file.read())

        yield f"{server.url}/packing", read, lambda: None
    finally:
        server.close()


def send(url: str, files: dict[str, bytes]) -> None:
    storage = open_storage(url)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda item: storage.write(*item), files.items()))


def measure(name: str, count: int, sample: int, rounds: int) -> None:
    files = make_files(count)
    chosen = dict(list(files.items())[:sample])
    places = {"local": local, "s3": s3, "hdfs": hdfs}
    with ExitStack() as exits:
        url, read, forget = exits.enter_context(places[name](chosen))
        raw = f"{url}/raw" if len(chosen) == count else f"{exits.enter_context(local(files))[0]}/raw"
        began = time.monotonic()
        data.pack(raw, f"{url}/table")
        print(f"{name}: {count:,} files, packed in {time.monotonic() - began:.1f} s", flush=True)
        paths = list(chosen)
        np.random.default_rng(1).shuffle(paths)
        ways: dict[str, Callable[[], int]] = {
            "one by one": lambda: one_by_one(paths, read),
            "16 threads": lambda: with_threads(paths, read),
            "packed": lambda: packed(f"{url}/table"),
        }
        expected = dict.fromkeys(ways, sum(map(weight, chosen.values()))) | {"packed": sum(map(weight, files.values()))}
        scale = dict.fromkeys(ways, count / len(chosen)) | {"packed": 1.0}
        for state in ("cold", "warm") if name == "local" else ("",):
            took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, run in ways.items():
                    if state == "cold":
                        forget()
                    began, used = time.monotonic(), time.process_time()
                    assert run() == expected[way], way
                    times = time.monotonic() - began, time.process_time() - used
                    took[way].append((times[0] * scale[way], times[1] * scale[way]))
            middle = {
                way: [statistics.median(column) for column in zip(*pairs, strict=True)] for way, pairs in took.items()
            }
            for way, (wall, cpu) in middle.items():
                first_wall, first_cpu = middle["one by one"]
                rates = f"{count / wall:>10,.0f} files/s {wall:8.3f} s, {first_wall / wall:6.1f} x"
                print(f"  {name} {state:<5} {way:<11} {rates}; CPU {cpu:7.3f} s, {first_cpu / cpu:6.1f} x", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("storages", nargs="+", choices=["local", "s3", "hdfs"])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--sample", type=int, default=0, help="how many are read one by one; all of them if 0")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.storages:
        measure(name, options.files, options.sample or options.files, options.rounds)


if __name__ == "__main__":
    main()

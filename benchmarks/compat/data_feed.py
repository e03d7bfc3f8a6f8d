"""Rows a second through a feed: `python benchmarks/compat/data_feed.py [--rounds 3] [--seconds 2]`.

Beside ours stands a `JoinableQueue` that takes one row at a time through a manager of multiprocessing, as
TensorFlowOnSpark fed its nodes: the feeder puts each row, the node gets each row and says that it is done, all over a
Unix socket. In each round both have their turn,
with a feeder and a node in processes of their own; the ratio is the median of the ratios within rounds. Where other
programs take the cores, what a row costs in CPU time, all processes together, says more than rows a second: both
ratios are printed, and the gate is on that of CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.managers import BaseManager
from typing import Any

import numpy as np

from cargobike.compat.tensorflowonspark.TFManager import TFManager
from cargobike.compat.tensorflowonspark.TFNode import DataFeed
from cargobike.data.pushing.receiving import Receiver
from cargobike.data.pushing.sending import Node, push, tell_end_of_feed


def _image(number: int) -> list[int]:
    return [(number + pixel) % 256 for pixel in range(784)]


BATCH = 100
GATE = 10.0
KINDS: dict[str, Callable[[int], Any]] = {
    "a number, a float and a word": lambda number: (number, number / 3, f"word {number}"),
    "an image as a list of 784 numbers and a label": lambda number: (_image(number), number % 10),
    "an image as an array of 784 bytes and a label": lambda number: (np.array(_image(number), np.uint8), number % 10),
}


def rows_of(kind: str, count: int) -> Iterator[Any]:
    """Return rows from memory; no two in a chunk are the same object, which would be sent but once."""
    rows = [KINDS[kind](number) for number in range(4096)]
    return itertools.islice(itertools.cycle(rows), count)


class Queues(BaseManager):
    """The manager of a node, in a process of its own."""


_input: Any = multiprocessing.JoinableQueue()
Queues.register("get_input", callable=lambda: _input)


def feed_rows(address: str, kind: str, count: int) -> None:
    """Put one row after the other."""
    queues = Queues(address=address, authkey=b"bench")
    queues.connect()
    queue = queues.get_input()  # type: ignore[attr-defined]
    for row in rows_of(kind, count):
        queue.put(row, block=True)
    queue.put(None)


def take_rows(address: str, told: Connection) -> None:
    """Take one row after the other, in batches."""
    queues = Queues(address=address, authkey=b"bench")
    queues.connect()
    queue = queues.get_input()  # type: ignore[attr-defined]
    total, begun = 0, 0.0
    batch: list[Any] = []
    while (row := queue.get(block=True)) is not None:
        begun = begun or time.perf_counter()
        batch.append(row)
        queue.task_done()
        total += 1
        if len(batch) == BATCH:
            batch = []
    told.send(total / (time.perf_counter() - begun))


def push_rows(node: tuple[str, bytes], kind: str, count: int) -> None:
    """Push a partition, as a task of Spark does."""
    target = Node("worker:0", *node)
    push([target], rows_of(kind, count), turn=0, queue="input", patience_s=60.0)
    tell_end_of_feed(target)


def take_batches(told: Connection) -> None:
    """Take batches, as the function of a node does."""
    receiver = Receiver()
    told.send((receiver.address, receiver.secret))
    feed = DataFeed(TFManager(receiver))
    total, begun = 0, 0.0
    while not feed.should_stop():
        total += len(feed.next_batch(BATCH))
        begun = begun or time.perf_counter()
    told.send(total / (time.perf_counter() - begun))
    receiver.close()


def measure_queue(kind: str, count: int) -> float:
    """Return the rows a second of the queue."""
    with Queues(authkey=b"bench") as queues:
        ours, theirs = multiprocessing.Pipe()
        node = multiprocessing.Process(target=take_rows, args=[queues.address, theirs])
        feeder = multiprocessing.Process(target=feed_rows, args=[queues.address, kind, count])
        return _rate(node, feeder, ours)


def measure_feed(kind: str, count: int) -> float:
    """Return the rows a second of ours."""
    ours, theirs = multiprocessing.Pipe()
    node = multiprocessing.Process(target=take_batches, args=[theirs])
    node.start()
    feeder = multiprocessing.Process(target=push_rows, args=[ours.recv(), kind, count])
    return _rate(node, feeder, ours)


def _rate(node: multiprocessing.Process, feeder: multiprocessing.Process, told: Connection) -> float:
    if node.pid is None:
        node.start()
    feeder.start()
    rate: float = told.recv()
    feeder.join()
    node.join()
    return rate


def measured(measure: Callable[[str, int], float], kind: str, count: int) -> tuple[float, float]:
    """Return rows a second, and rows a second of CPU time of all processes; what it costs to begin is left out."""
    before = _cpu_s()
    measure(kind, 100)
    begun = _cpu_s()
    rate = measure(kind, count + 100)
    return rate, count / ((_cpu_s() - begun) - (begun - before))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure feeds beside each other.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="How long each measurement lasts, about.")
    arguments = parser.parse_args()
    os.environ["CARGOBIKE_COMPAT_QUIET"] = "1"
    for kind in KINDS:
        queued = max(500, int(measure_queue(kind, 1000) * arguments.seconds))
        pushed = max(20_000, int(measure_feed(kind, 20_000) * arguments.seconds))
        rounds = []
        for _ in range(arguments.rounds):
            rounds.append((*measured(measure_queue, kind, queued), *measured(measure_feed, kind, pushed)))
        their_rate, _, our_rate, _ = (statistics.median(rates) for rates in zip(*rounds, strict=True))
        by_clock = statistics.median(ours / theirs for theirs, _, ours, _ in rounds)
        by_cpu = statistics.median(ours / theirs for _, theirs, _, ours in rounds)
        print(f"{kind}: {their_rate:,.0f} rows/s through the queue, {our_rate:,.0f} through DataFeed")
        print(f"  {by_clock:.1f} times as many by the clock, {by_cpu:.1f} times as many for the same CPU time")
        print(f"  at least {GATE:g} times as many for the same CPU time: {by_cpu >= GATE}", flush=True)


if __name__ == "__main__":
    main()

"""The floor under `asha_real.py`: asynchronous halving by promotion in two bare processes on pipes.

What can be had at all on this machine, not a product: nothing is saved, recorded, isolated or retried. A process sleeps
through the epochs it is told to and says when it is done; the rule is the textbook's.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from asha_epochs import EPOCH_S, SLOWER
from curve_sets import Curves

ETA = 3


class Found(NamedTuple):
    """Seconds in all, until the winner was fully trained, epochs, and the winner's regret."""

    total_s: float
    until_best_s: float
    epochs: int
    regret: float


def run_floor(curves: Curves) -> Found:
    """Search one set with two processes, the first of them slow."""
    rungs = _rungs(len(curves[0]))
    pipes = [_worker(EPOCH_S * SLOWER), _worker(EPOCH_S)]
    scores: list[dict[int, float]] = [{} for _ in rungs]  # of those that reached each rung
    promoted: list[set[int]] = [set() for _ in rungs]
    fresh = iter(range(len(curves)))
    busy: dict[Connection, tuple[int, int]] = {}
    idle = list(pipes)
    ended: dict[int, float] = {}
    epochs = 0
    began = time.monotonic()
    while True:
        while idle and (job := _next(scores, promoted, fresh, rungs)) is not None:
            _, rung = job
            count = rungs[rung] - (rungs[rung - 1] if rung else 0)
            epochs += count
            pipe = idle.pop()
            busy[pipe] = job
            pipe.send(count)
        if not busy:
            break
        for pipe in [each for each in wait(list(busy)) if isinstance(each, Connection)]:
            pipe.recv()
            number, rung = busy.pop(pipe)
            idle.append(pipe)
            scores[rung][number] = curves[number][rungs[rung] - 1]
            if rung == len(rungs) - 1:
                ended[number] = time.monotonic() - began
    total_s = time.monotonic() - began
    for pipe in pipes:
        pipe.send(0)
    best = max(scores[-1], key=lambda number: scores[-1][number])
    return Found(total_s, ended[best], epochs, max(curve[-1] for curve in curves) - scores[-1][best])


def _next(
    scores: list[dict[int, float]], promoted: list[set[int]], fresh: Iterator[int], rungs: list[int]
) -> tuple[int, int] | None:
    """Return which configuration to train up to which rung: the highest promotion there is, else a new one."""
    for rung in reversed(range(len(rungs) - 1)):
        ranked = sorted(scores[rung], key=lambda number: -scores[rung][number])
        for number in ranked[: len(ranked) // ETA]:
            if number not in promoted[rung]:
                promoted[rung].add(number)
                return number, rung + 1
    new = next(fresh, None)
    return None if new is None else (new, 0)


def _rungs(epochs: int) -> list[int]:
    found = [1]
    while found[-1] * ETA <= epochs:
        found.append(found[-1] * ETA)
    return found


def _worker(epoch_s: float) -> Connection:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    context.Process(target=_work, args=(theirs, epoch_s), daemon=True).start()
    theirs.close()
    return ours


def _work(pipe: Connection, epoch_s: float) -> None:
    while count := pipe.recv():
        for _ in range(count):
            time.sleep(epoch_s)
        pipe.send(True)
